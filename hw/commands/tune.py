"""``dcqcn-gym hw tune``: one run of a tuner on a fleet, which goes back to its setting before."""

from __future__ import annotations

import math
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcqcn_gym.commands.tune import (
    IntervalsOption,
    SafeOption,
    TunerArgOption,
    TunerOption,
    safely,
    tuner_arguments,
)
from dcqcn_gym.core.abort_rules import AbortRules
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError
from dcqcn_gym.hw.commands.fleet import FleetOption, open_fleet
from dcqcn_gym.hw.commands.output import JsonOption, Output, output, show_left
from dcqcn_gym.hw.dependencies import require_grpc
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.interrupt import undisturbed
from dcqcn_gym.runs.options import OutOption, ScenarioOption, SeedOption

if TYPE_CHECKING:
    from dcqcn_gym.hw.fleet import Fleet
    from dcqcn_gym.hw.tuning_runs import RunStart
    from dcqcn_gym.runs.log import Line, RunDir
    from dcqcn_gym.runs.spec import RunSpec

SENSORS_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Paces at which switches poll their counters: the intervals that are tried for a fleet."""
JUDGED = "the candidate is not judged: nothing was compared with it"


def tune(
    fleet: FleetOption,
    scenario: ScenarioOption,
    out: OutOption,
    tuner: TunerOption = "keeper",
    seed: SeedOption = 1,
    intervals: IntervalsOption = None,
    tuner_arg: TunerArgOption = None,
    safe: SafeOption = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the fleet at the tuner's candidate.")
    ] = False,
    hold: Annotated[
        float | None,
        typer.Option(metavar="S", help="Leave that on trial for S seconds; `hw confirm` keeps it."),
    ] = None,
    max_paused: Annotated[
        float, typer.Option(min=0, max=1, help="End if devices are paused for a larger share.")
    ] = 0.5,
    max_drops: Annotated[
        int | None, typer.Option(min=0, help="End if more packets are dropped in an interval.")
    ] = None,
    min_utility: Annotated[
        float | None, typer.Option(min=0, max=1, help="End if the utility is lower.")
    ] = None,
    max_errors: Annotated[
        int | None, typer.Option(min=0, help="End if NICs count more errors in an interval.")
    ] = None,
    min_goodput: Annotated[
        float | None, typer.Option(min=0, max=1, help="End below this share of the first rate.")
    ] = None,
    patience: Annotated[
        int, typer.Option(min=1, help="Intervals in a row that a limit may be broken.")
    ] = 3,
    as_json: JsonOption = False,
) -> None:
    """Tune a fleet. At the end, and after Ctrl-C, every device is put back to its setting before.

    So it is when a limit is broken for some intervals in a row, or when an agent is lost. Writes
    OUT/run.jsonl (every interval) and OUT/best.json, which `hw apply --best` takes with --force.

    Example: `dcqcn-gym hw tune --fleet fleet.toml --scenario my-fabric.toml --out runs/fleet`
    """
    require_grpc()
    if keep and hold is not None:
        raise ConfigError("--keep confirms the candidate and --hold leaves that to you: give one")
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.hw.fleet import load_fleet
    from dcqcn_gym.runs.log import RunDir, write_json
    from dcqcn_gym.runs.spec import RunSpec

    chosen = load_scenario(scenario)
    n = chosen.intervals if intervals is None else intervals
    tuner, arguments = safely(tuner, tuner_arguments(tuner, tuner_arg or []), safe)
    played = load_fleet(fleet).fabric is not None
    kind = "a digital fabric" if played else "devices"
    spec = RunSpec(chosen, tuner, seed, n, f"hardware:{fleet}", arguments, fleet=kind)
    rules = AbortRules(max_paused, max_drops, min_utility, patience, max_errors, min_goodput)
    _refuse_slow_sensors(fleet, n, chosen.monitor_interval_ps * 1e-12)
    if not played:  # a fabric's time is not that of a clock
        _say_how_long(load_fleet(fleet), n, chosen.monitor_interval_ps * 1e-12)
    run_dir = RunDir(out)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # puts the fleet back, too
    with output(as_json) as shown, claim(out, "tune"):
        run_dir.check(resume=False, force=False)
        best = _carry_out(spec, run_dir, fleet, rules, shown)
        if keep or hold is not None:
            best = {**best, "transaction": _leave(spec, fleet, best, hold)}
            write_json(run_dir.best, best)
        word = "the candidate" if keep else "its setting before"
        if hold is not None:
            keeps = "`dcqcn-gym hw confirm` keeps it"
            word = f"the candidate on trial for {hold:g} s: {keeps}"
        mean = best["mean_utility"]  # None if nothing was sent
        said = "no traffic" if mean is None else f"mean utility {mean:.4f}"
        shown.say(f"{run_dir.best}; {said}; {JUDGED}; the fleet has {word}", **best)


def _refuse_slow_sensors(fleet: Path, intervals: int, interval_s: float) -> None:
    """Raise ConfigError if a switch has new counters less often than every ``interval_s``.

    It says how often then, and how long a run at that pace takes. NICs make themselves quicker.
    """
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    first: DcqcnGymError | None = None
    with open_fleet(fleet) as controller:
        for every_s in (interval_s, *(s for s in SENSORS_S if s > interval_s)):
            asked = dict.fromkeys(controller.agents.switches, pb.Interval(ms=every_s * 1e3))
            _, slow = controller.agents.ask_each("Prepare", asked)
            first = first or next(iter(slow.values()), None)
            if not slow:
                break
        else:
            every_s = math.inf  # no pace helps: off, or out of reach
    if first is not None and math.isinf(every_s):
        raise first
    if first is not None:
        raise ConfigError(
            f"{first}. The slowest sensor of this fleet allows an interval of {every_s:g} s "
            f"(monitor_interval_us = {every_s * 1e6:.0f} in the scenario): {intervals} intervals "
            f"then take {intervals * every_s / 60:.3g} minutes"
        )


def _say_how_long(fleet: Fleet, intervals: int, interval_s: float) -> None:
    """Print how long a run takes at least; raise ConfigError if it cannot end in its window."""
    from datetime import datetime, timezone

    from dcqcn_gym.hw.maintenance_windows import open_for_s

    needed_s = intervals * interval_s
    typer.echo(
        f"{intervals} intervals of {interval_s:g} s: {needed_s / 60:.3g} minutes at least, and the "
        "time that devices take to change", err=True,
    )  # fmt: skip
    now = datetime.now(timezone.utc)
    left_s = open_for_s(fleet.freeze_utc, fleet.change_utc, now, needed_s)
    if left_s < needed_s:
        raise ConfigError(
            f"the fleet may change for {left_s / 60:.3g} minutes more (change_utc, freeze_utc of "
            f"its file), and this run takes {needed_s / 60:.3g}: give fewer --intervals, or begin "
            "later"
        )


def _carry_out(
    spec: RunSpec, run_dir: RunDir, fleet: Path, rules: AbortRules, shown: Output
) -> dict[str, Any]:
    """Run, and put the fleet back whatever happens; return what best.json holds."""
    from dcqcn_gym.runs.log import write_json
    from dcqcn_gym.runs.loop import run
    from dcqcn_gym.runs.recorded import end_of

    with open_fleet(fleet) as controller:
        shown.moved(controller.reconciler.catch_up())
        began = controller.runs.begin(f"tuned by {spec.tuner} into {run_dir.log.parent}")
    run_dir.create(fresh=True)
    try:
        run(spec, run_dir.log, watch=lambda line, state, _: _judge(line, state, rules))
        best = {**_best(spec, end_of(run_dir.log)), "run": began.run}
        write_json(run_dir.best, best)
    except BaseException:
        _put_back(fleet, began)
        raise
    left = _put_back(fleet, began)
    if left:
        raise DeviceError(f"{left} devices are not at their setting before the run; see above")
    return best


def _put_back(fleet: Path, began: RunStart) -> int:
    """Bring every device back that can be; name the others and return how many these are."""
    # a second Ctrl-C must not end the way back
    with undisturbed(), open_fleet(fleet, lenient=True) as controller:
        left = controller.runs.put_back(began, "the end of a tuning run")
    show_left(left, "is not at its setting before the run")
    if controller.log.unwritten:
        typer.echo(f"put back all the same: {controller.log.unwritten}", err=True)
    if left:
        total = len(began.targets)
        typer.echo(
            f"{total - len(left)} of {total} devices are at their setting before the run; "
            "`dcqcn-gym hw rollback` goes on with the others", err=True,
        )  # fmt: skip
    return len(left)


def _leave(spec: RunSpec, fleet: Path, best: dict[str, Any], hold: float | None) -> str:
    """Give every device what the tuner recommends for its group; with ``hold`` on trial alone.

    Return the change's name, under which the audit log has the run.

    It comes after the way back, as a change of its own: its undo, and the end of its trial, lead to
    the setting before the run and not to the last one that the tuner tried.
    """
    from dcqcn_gym.core.groups import setting_of
    from dcqcn_gym.hw.device_counters import shape_of
    from dcqcn_gym.hw.targets import targets_of_groups

    setting, devices = setting_of(best["candidate"]), shape_of(spec.scenario).devices
    with open_fleet(fleet) as controller:
        targets = targets_of_groups(controller.agents, setting, devices)
        why = f"found by {spec.tuner} in run {best['run']}"
        if hold is None:
            done = controller.carry_out(targets, why)
        else:
            done = controller.try_out(targets, why, hold)
        controller.runs.note_kept(best["run"], done.transaction)
        return done.transaction


def _judge(line: Line, state: dict[str, Any], rules: AbortRules) -> None:
    """Say what an interval was worth and, behind ``--safe``, where the trial stands; then judge."""
    from dcqcn_gym.hw.backend import MARKS

    where = f"; {state['phase']}" if "phase" in state else ""
    why = f" (last: {state['why']})" if state.get("why") else ""
    counted = line.get("scheme", {})
    marks = "".join(f"; {counted[m]} {m.replace('_', ' ')}" for m in MARKS if m in counted)
    typer.echo(f"interval {line['i']}: utility {line['utility']:.4f}{where}{why}{marks}", err=True)
    rules.look(line)


def _best(spec: RunSpec, end: Line) -> dict[str, Any]:
    from dcqcn_gym.core.answer import cannot_tell
    from dcqcn_gym.core.version import code_versions

    own = {"scenario": spec.scenario.name, "tuner": spec.tuner, "seed": spec.seed}
    said = cannot_tell(JUDGED)
    figures = {name: end[name] for name in ("intervals", "mean_utility")}
    return {
        "versions": code_versions(),
        **own,
        "answer": {**said.data(), "title": said.title},
        "candidate": end["recommended"],
        **figures,
    }
