"""``dcqcn-gym hw rollback``, ``reconcile``, ``stop``: no device that is ill stops another's way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dcqcn_gym.core.errors import ConfigError, StateError, quote
from dcqcn_gym.hw.commands.fleet import (
    DevicesOption,
    FleetOption,
    WhyOption,
    known,
    open_fleet,
)
from dcqcn_gym.hw.commands.output import (
    PLACES,
    JsonOption,
    Output,
    output,
    show_differences,
    show_remedies,
)
from dcqcn_gym.hw.dependencies import require_grpc
from dcqcn_gym.hw.device_state import run_of

if TYPE_CHECKING:
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.rollback import Failures


def rollback(
    fleet: FleetOption,
    transaction: Annotated[
        str | None, typer.Option(help="The one to take back or undo; default: the newest.")
    ] = None,
    trial_only: Annotated[
        bool, typer.Option("--trial-only", help="Take back only what is on trial, or by hand.")
    ] = False,
    run: Annotated[
        str | None, typer.Option(help="To before this tuning run; best.json has its name.")
    ] = None,
    device: DevicesOption = None,
    why: WhyOption = "by hand",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go back.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what is on trial; if nothing is, undo the newest confirmed change.

    With --device on these alone; the others stay as they are. Exit 1 if a device is left where it
    was; each is named, and typed again it goes on with them.

    Example: `dcqcn-gym hw rollback --fleet fleet.toml`
    """
    require_grpc()
    with output(as_json) as out, open_fleet(fleet, lenient=True) as controller:
        asked = known(controller, device) or list(controller.agents.addresses)
        state = controller.state()
        states = {name: state.states[name] for name in asked if name in state.states}
        left = {name: state.silent[name] for name in asked if name in state.silent}
        # one that is broken, of no trial, must not keep a confirmed change from being undone
        away = [name for name, s in states.items() if s.state == "applied" or _unended(s)]
        if run is not None:
            transaction = _of_run(controller, run, transaction, states)
            if not transaction:
                out.say(f"run {run} is over, and its setting was not kept", back=[])
                if left:
                    _end(out, controller, left)
                return
        if transaction is not None:
            away = [name for name in away if _is_of(states[name].transaction, transaction)]
        if trial_only and transaction is not None and not away:
            raise StateError(f"transaction {quote(transaction)} is on trial on no device")
        if dry_run:
            left |= _show(out, controller, transaction, states, away, asked, trial_only)
        elif away or trial_only:
            left |= _end_trials(out, controller, transaction or "", away, asked, why)
        else:
            left |= _undo(out, controller, transaction, asked, why)
        if not dry_run:
            _end(out, controller, left)


def _unended(status: Any) -> bool:
    return status.state == "broken" and bool(status.transaction)


def _is_of(held: str, asked: str) -> bool:
    """Tell whether what a device holds is what was asked for: a change, a run or a step of it."""
    return asked in (held, run_of(held))


def _of_run(
    controller: Controller, run: str, transaction: str | None, states: Mapping[str, Any]
) -> str:
    """Return what leads to before a run: itself while it is on trial, or what kept its setting."""
    if transaction is not None:
        raise ConfigError("--run and --transaction both name what to take back; give one")
    if any(run_of(s.transaction) == run for s in states.values()):
        return run
    return controller.runs.kept_of(run)


def _show(
    out: Output,
    controller: Controller,
    transaction: str | None,
    states: Mapping[str, Any],
    away: list[str],
    asked: list[str],
    trial_only: bool,
) -> Failures:
    if away or trial_only:
        devices = states if trial_only else away
        _, left = show_differences(out, controller, devices, ("goes back to", "holds"))
    else:
        found, left = controller.rollback.undoing(transaction or _newest(controller, asked), asked)
        out.plans(found, PLACES, "no device holds it")
    return left


def _end_trials(
    out: Output, controller: Controller, name: str, away: list[str], asked: list[str], why: str
) -> Failures:
    """Take back the trial ``name``, or all of them and what was changed by hand."""
    done, left = controller.rollback.end_trials(why, name, asked)
    back = [device for device in done if device in away or not name]
    said = f"{len(away)} devices were on trial; {len(back)} are at their confirmed setting"
    if not name:
        newest = controller.rollback.newest(asked)
        said += f"; no confirmed change was undone (newest: {newest})" if newest else ""
    out.say(said, on_trial=away, back=back)
    return left


def _undo(
    out: Output,
    controller: Controller,
    transaction: str | None,
    asked: list[str],
    why: str,
) -> Failures:
    name = transaction or _newest(controller, asked)
    left: Failures = {}
    if transaction is None:
        _, left = controller.rollback.end_trials(why, devices=asked)  # what was changed by hand
    undone, failed = controller.rollback.undo(name, why, asked)
    said = f"{len(undone)} devices are back (transaction {name} undone)"
    out.say(said, transaction=name, back=undone)
    return {**left, **failed}


def _newest(controller: Controller, asked: list[str]) -> str:
    name = controller.rollback.newest(asked)
    if not name:
        raise StateError(
            "no confirmed change is left to undo: devices hold what they held when their agents "
            "first started"
        )
    return name


def reconcile(
    fleet: FleetOption,
    to: Annotated[
        Literal["decided", "new", "old"],
        typer.Option(help="What the audit log decided; the change that splits; or before it."),
    ] = "decided",
    why: WhyOption = "by hand",
    as_json: JsonOption = False,
) -> None:
    """Bring a split fleet to one side: devices that missed a change, or missed its end, follow.

    Exit 1 if a device is left where it was; each is named, and typed again it goes on with them.

    Example: `dcqcn-gym hw reconcile --fleet fleet.toml`
    """
    with output(as_json) as out, open_fleet(fleet, lenient=True) as controller:
        moved, left = controller.reconciler.reconcile(why, to)
        out.moved(moved)
        if not (moved or left):
            out.say("the fleet is not split")
        _end(out, controller, left)


def stop(
    fleet: FleetOption,
    release: Annotated[bool, typer.Option("--release", help="Allow changes again.")] = False,
    why: WhyOption = "by hand",
    as_json: JsonOption = False,
) -> None:
    """Take back what is on trial everywhere and refuse every change, until --release.

    Exit 1 if a device did not answer, could not go back, or is still stopped by its stop file.

    Example: `dcqcn-gym hw stop --fleet fleet.toml`
    """
    with output(as_json) as out:
        with open_fleet(fleet, ask=False) as controller:
            states, left = controller.rollback.stop(not release, why)
        held = [name for name, s in states.items() if release and s.state == "stopped"]
        wrong = {name: s.problem for name, s in states.items() if s.problem}
        word = "allow changes again" if release else "refuse every change"
        out.say(
            f"{len(states) - len(held)} devices {word}",
            states={name: s.state for name, s in states.items()}, problems=wrong,
        )  # fmt: skip
        for name in held:
            typer.echo(f"{name} refuses changes still: its stop file exists; delete it", err=True)
        for name, problem in wrong.items():
            typer.echo(
                f"{name} is not at its confirmed setting, and its agent tries again: {problem}",
                err=True,
            )
        if left or wrong or held or controller.log.unwritten:
            _say(out, left, controller.log.unwritten)


def _end(out: Output, controller: Controller, left: Failures) -> None:
    """Name what is left and what mends it, by the definition of healthy that `hw status` has."""
    state = controller.state()
    remedies = show_remedies(out, state)
    if left or remedies or controller.log.unwritten:
        _say(out, left, controller.log.unwritten)


def _say(out: Output, left: Mapping[str, Exception], unwritten: str) -> None:
    """Name the devices that are left, and what the audit log lacks; end with status 1."""
    out.left(left, "is left as it is")
    if unwritten:
        typer.echo(f"done all the same: {unwritten}", err=True)
    raise typer.Exit(1)
