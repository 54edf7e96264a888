"""``dcqcn-gym hw ...``: certificates, agents, the digital fabric, and changes by hand."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.hw.commands.advise import advised_targets
from dcqcn_gym.hw.commands.collect import collect
from dcqcn_gym.hw.commands.fleet import (
    DevicesOption,
    FleetOption,
    WhyOption,
    chosen_targets,
    known,
    only,
    open_fleet,
)
from dcqcn_gym.hw.commands.load import app as load_app
from dcqcn_gym.hw.commands.load import probe
from dcqcn_gym.hw.commands.metrics import metrics
from dcqcn_gym.hw.commands.output import (
    PLACES,
    JsonOption,
    Output,
    output,
    show_differences,
    show_remedies,
)
from dcqcn_gym.hw.commands.rollback import reconcile, rollback, stop
from dcqcn_gym.hw.commands.tune import tune
from dcqcn_gym.hw.dependencies import require_grpc
from dcqcn_gym.runs.interrupt import undisturbed
from dcqcn_gym.runs.options import DeployOption, OutOption, ScenarioOption

if TYPE_CHECKING:
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.fleet_state import FleetState

app = typer.Typer(
    name="hw",
    help="Real devices: agents, fleets, and a digital fabric that stands for them.",
    no_args_is_help=True,
)
app.add_typer(load_app, name="load")
app.command()(tune)
app.command()(collect)
app.command()(probe)
app.command()(rollback)
app.command()(reconcile)
app.command()(stop)
app.command()(metrics)

_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KNOB=VALUE", help="A knob in its own unit; repeatable."),
]
_Best = Annotated[
    Path | None, typer.Option("--best", help="Take the setting of a run's best.json.")
]

WARN_DAYS = 30.0


@app.command()
def certs(
    folder: Annotated[Path, typer.Argument(help="Where the fleet's authority is, or will be.")],
    agent: Annotated[
        list[str] | None, typer.Option(help="A device to make a certificate for; repeatable.")
    ] = None,
    controller: Annotated[
        list[str] | None, typer.Option(help="A controller to make one for; repeatable.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long they hold.")] = 365,
    revoke: Annotated[
        list[str] | None, typer.Option(help="Whose certificate no longer counts; repeatable.")
    ] = None,
    passphrase_file: Annotated[
        Path | None, typer.Option(help="Its first line encrypts ca.key, and opens it again.")
    ] = None,
) -> None:
    """Make the certificates of a fleet; ca.key signs them and stays in FOLDER.

    With --revoke, first add the present ones of these names to FOLDER/revoked.pem.

    Example: `dcqcn-gym hw certs keys --agent nic-0 --controller controller`
    """
    from dcqcn_gym.hw.certs import Authority, write_all

    lines = read_file(passphrase_file, 4096).splitlines() if passphrase_file else [b""]
    passphrase = (lines or [b""])[0] or None
    if passphrase_file and passphrase is None:
        raise ConfigError(f"{passphrase_file}: its first line is empty; expected a passphrase")
    if revoke:
        found = Authority(folder, days, passphrase).revoke(revoke)
        typer.echo(f"{found}: for the agents, whose files name it as revoked")
    write_all(folder, agent or [], controller or [], days, passphrase)
    names = [*(agent or []), *(controller or [])]
    typer.echo(f"{folder}: ca.pem for everybody, ca.key for nobody")
    for name in names:
        typer.echo(f"{folder}/{name}.pem, {folder}/{name}.key: for {name}")


@app.command()
def agent(
    kind: Annotated[Literal["nic", "switch"], typer.Argument(help="nic or switch.")],
    config: Annotated[Path, typer.Option(help="The agent's file (TOML), on the device.")],
    unit: Annotated[
        bool, typer.Option("--unit", help="Print the systemd unit that runs it, and end.")
    ] = False,
) -> None:
    """Run the agent of a device, until Ctrl-C.

    Its file names the driver: mlx5, mlxconfig, ofed, bnxt, hiroce3 or hns for a NIC, sonic,
    sonic-asics, gnmi, eos, junos or nvue for a switch, or path.py:Class.

    Example: `dcqcn-gym hw agent nic --config agent.toml`
    """
    from dcqcn_gym.hw.agent.main import run_agent
    from dcqcn_gym.hw.agent.units import unit_text

    if unit:
        command = f"{Path(sys.argv[0]).absolute()} hw agent {kind}"
        typer.echo(unit_text(command, kind, str(config)), nl=False)
        return
    run_agent(kind, config)


@app.command()
def fabric(
    scenario: ScenarioOption,
    out: OutOption,
    shared_profiles: Annotated[
        bool, typer.Option("--shared-profiles", help="One WRED profile for all ports of a switch.")
    ] = False,
    fuse: Annotated[
        bool,
        typer.Option("--fuse", help="NICs' files through FUSE; OUT/calls.jsonl has every call."),
    ] = False,
) -> None:
    """Run a fleet without hardware: files, Redis servers and agents, played by the engine.

    OUT, a new folder, gets the devices' files, the keys and fleet.toml.

    Example: `dcqcn-gym hw fabric --scenario mini-fb-hadoop --out fabric`
    """
    require_grpc()
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.hw.fabric.fabric import DigitalFabric
    from dcqcn_gym.hw.fabric.native_fabric import fabric_spec

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # close what was started
    spec = fabric_spec(load_scenario(scenario))
    played = DigitalFabric(out, spec, shared_profiles=shared_profiles, fuse=fuse)
    try:
        played.start()
        typer.echo(f"{len(played.agents)} agents run; fleet: {played.fleet}; Ctrl-C ends them")
        played.wait()
    finally:
        with undisturbed():  # else servers of switches would stay behind
            played.close()


@app.command()
def apply(
    fleet: FleetOption,
    assign: _Set = None,
    best: _Best = None,
    advised: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO", help="Take what `dcqcn-gym advise` says for this network."
        ),
    ] = None,
    device: DevicesOption = None,
    group: Annotated[
        Literal["hosts", "switches", "tor", "spine", "core"] | None,
        typer.Option(help="Devices of this group alone; tiers as in the fleet's file."),
    ] = None,
    percent: Annotated[
        float, typer.Option(min=0.01, max=100.0, help="The first ones of these alone.")
    ] = 100.0,
    waves: Annotated[
        int, typer.Option(min=1, help="Change so many parts in turn, watched by the gate.")
    ] = 1,
    why: WhyOption = "by hand",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
    hold: Annotated[
        float | None,
        typer.Option(metavar="S", help="Leave it on trial for S seconds; `hw confirm` keeps it."),
    ] = None,
    force: DeployOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change all devices in one transaction: staged, on trial, read back, confirmed; or none.

    With --waves every part is watched before the next, and if a device of the fleet is paused more,
    drops more or counts more errors than [gate] of the fleet's file allows, all parts go back.
    --advised with --dry-run says what the advice for a network is and what devices hold instead.

    Example: `dcqcn-gym hw apply --fleet fleet.toml --set kmax=200`
    """
    with output(as_json) as out, open_fleet(fleet) as controller:
        if advised is not None:
            if best is not None or assign:
                raise ConfigError("--advised is a whole setting; expected no --set or --best")
            chosen = advised_targets(controller, advised, out)
        else:
            chosen = chosen_targets(controller, assign, best, force=force, dry=dry_run)
        targets = only(controller, chosen, device, group, percent)
        if dry_run:
            plans = controller.plan(targets)
            found = {name: plan.lines for name, plan in plans.items()}
            out.plans(found, PLACES, "nothing would change")
            return
        state = "changed and confirmed" if hold is None else f"on trial for {hold:g} s"
        try:
            if hold is None:
                done = controller.carry_out(targets, why, waves)
            else:
                done = controller.try_out(targets, why, hold, waves)
        finally:
            out.moved(controller.moved)
        out.say(
            f"{len(done.changed)} devices {state} (transaction {done.transaction}); "
            f"{done.skew_s * 1e3:.1f} ms between the first and the last",
            transaction=done.transaction, changed=done.changed, skew_s=done.skew_s,
            confirmed=hold is None, needs_reset=done.needs_reset,
        )  # fmt: skip
        if done.needs_reset:
            out.say(f"in force only after a reset of: {', '.join(done.needs_reset)}")


@app.command()
def confirm(
    fleet: FleetOption,
    why: WhyOption = "by hand",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be kept.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Keep what is on trial, on every device or on none.

    Example: `dcqcn-gym hw confirm --fleet fleet.toml`
    """
    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    with output(as_json) as out, open_fleet(fleet) as controller:
        states = controller.agents.ask_all("Status", pb.Nothing())
        name, devices = controller.whole_trial(states, dry_run)
        trials = [s.left_s for s in states.values() if s.state == "applied"]
        if dry_run:
            show_differences(out, controller, devices, ("confirmed", "on trial"))
            return
        controller.confirm(name, devices, why, min(trials))
        said = f"{len(devices)} devices confirmed (transaction {name})"
        out.say(said, transaction=name, confirmed=devices)


@app.command()
def status(
    fleet: FleetOption,
    history: Annotated[
        str | None,
        typer.Option(metavar="DEVICE", help="Its journal instead: a JSON object a line."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how every device stands, and place by place what it holds that is not confirmed.

    Exit 1, and the command that mends each condition, if a device is not known to be at its
    confirmed setting, if devices hold something else than was decided for them, or something that
    no agent knows, or if somebody changed the audit log.

    Example: `dcqcn-gym hw status --fleet fleet.toml`
    """
    require_grpc()
    if history is not None:
        with open_fleet(fleet, lenient=True) as controller:
            _show_history(controller, history)
        return
    with output(as_json) as out, open_fleet(fleet, lenient=True) as controller:
        state = controller.state()
        found, split = state.states, state.split()
        rows = {
            name: _facts(controller, name, state, split) for name in controller.agents.addresses
        }
        played = controller.agents.is_digital_fabric
        _show_rows(out, rows, f"{fleet}{' (a digital fabric)' if played else ''}")
        out.facts["digital_fabric"] = played
        differ, unanswered = show_differences(out, controller, found, ("confirmed", "held"))
        out.left(dict(state.silent) | unanswered, "is not known")
        out.facts |= {"split": split, "audit": state.log_broken}
        if split:
            typer.echo(
                f"the fleet is split: {len(split)} of {len(rows)} devices do not hold what was "
                "decided for them", err=True,
            )  # fmt: skip
        _warn(out, controller)
        if state.log_broken:
            typer.echo(f"the audit log is not what was written: {state.log_broken}", err=True)
        if show_remedies(out, state) or unanswered or differ:
            raise typer.Exit(1)


def _warn(out: Output, controller: Controller) -> None:
    """Say which certificates end within :data:`WARN_DAYS`."""
    now = time.time()
    days = {
        name: (ends - now) / 86400.0 for name, ends in controller.agents.certificate_ends_s.items()
    }
    out.facts["certificates_end_in_days"] = {n: round(d, 1) for n, d in days.items() if d < 1e5}
    for name, left in days.items():
        if left < WARN_DAYS:
            typer.echo(f"the certificate of {name} ends in {left:.0f} days: renew it", err=True)


def _facts(
    controller: Controller, name: str, state: FleetState, split: dict[str, str]
) -> dict[str, Any]:
    """Return what is known of a device."""
    found = state.states
    own_words = controller.agents.descriptions.get(name)
    facts: dict[str, Any] = {"driver": own_words.driver if own_words else "",
                             "programs": list(own_words.programs) if own_words else []}  # fmt: skip
    if name not in found:
        return {**facts, "state": "not known", "confirmed": "", "problem": "see below"}
    own = found[name]
    journal = f"{own.bad_lines} lines of its journal are damaged or missing"
    wanted = f"to hold {split[name]}, as was decided" if name in split else ""
    lost = name in state.unknown() and "holds a change of which no agent knows the devices"
    problem = filter(None, [wanted, lost, own.problem, journal if own.bad_lines else ""])
    return {**facts, "state": own.state, "confirmed": own.confirmed, "problem": "; ".join(problem),
            "transaction": own.transaction, "left_s": own.left_s}  # fmt: skip


def _show_rows(out: Output, rows: dict[str, dict[str, Any]], title: str) -> None:
    out.facts["devices"] = rows
    columns = ("driver", "state", "confirmed", "problem")
    cells = {}
    for name, row in rows.items():
        runs = f" (may run {', '.join(row['programs'])})" if row["programs"] else ""
        cells[name] = [(f"{row['driver']}{runs}", *(str(row[c]) for c in columns[1:]))]
    out.table(("device", *columns), cells, title)


def _show_history(controller: Controller, device: str) -> None:
    """Print what a device's journal holds, one JSON object a line, oldest first."""
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    known(controller, [device])
    events = controller.agents.ask_all("History", pb.Nothing(), [device])[device]
    for event in events.json:
        try:
            typer.echo(json.dumps(parse_json(event)))
        except ValueError:
            typer.echo(f"{device} reported an event that is not JSON: {quote(event)}", err=True)
