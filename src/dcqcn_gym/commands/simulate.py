"""`dcqcn-gym simulate`: one setting, no tuner."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import read_file
from dcqcn_gym.runs.claim import STUDY_FILE, claim
from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import (
    SCENARIO,
    BackendOption,
    BinsOption,
    CurvesOption,
    ForceOption,
    OutOption,
    QuietOption,
    ScenarioOption,
    SeedOption,
    WindowOption,
)

if TYPE_CHECKING:
    from rich.status import Status

    from dcqcn_gym.core.groups import DeviceSetting
    from dcqcn_gym.core.interval import IntervalReport
    from dcqcn_gym.envs.scenario.fabric import Fabric
    from dcqcn_gym.envs.scenario.scenario import Scenario
    from dcqcn_gym.runs.study import Study
    from dcqcn_gym.simulation.page import ComparedRun
    from dcqcn_gym.simulation.trace import Trace


def simulate(
    out: OutOption,
    scenario: ScenarioOption = SCENARIO,
    flows: Annotated[
        Path | None,
        typer.Option(help="Replace the traffic by these flows: src,dst,bytes,start_ns."),
    ] = None,
    assign: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[GROUP:]KNOB=VALUE", help="Set a knob, in NVIDIA's units."),
    ] = None,
    seed: SeedOption = 1,
    intervals: Annotated[
        int | None,
        typer.Option(min=1, help="Monitor intervals to run; default: the scenario's."),
    ] = None,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="Run until every flow is delivered.")
    ] = False,
    window: WindowOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    backend: BackendOption = "native",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run default, expert, dcqcn-paper or initial on the same traffic too; print and "
            "draw the difference.",
        ),
    ] = None,
    reports: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Make the files of what the program dcqcn-ns3 wrote in DIR."
        ),
    ] = None,
    bins: BinsOption = None,
    fct_cdf: CurvesOption = False,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Write time series: some of queue,rate,pause,sending,completions,rp,jobs.",
        ),
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Period of --trace; default: 10us.")
    ] = None,
    trace_ports: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="all, hosts, switches, NODE, NODE:PORT or NODE>PEER; default: switches.",
        ),
    ] = None,
    trace_flows: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="all, none, SRC, SRC>DST or SRC:ORDINAL; default: all."),
    ] = None,
    trace_format: Annotated[
        str | None, typer.Option(metavar="KIND", help="csv (default) or parquet.")
    ] = None,
) -> None:
    """Run one setting from time 0; write flows.csv, intervals.csv, summary.json, timing.json.

    The same command again does nothing; another one in OUT is refused unless --force is given.

    Example: `dcqcn-gym simulate --scenario fb-hadoop --out runs/default`
    """
    from rich.console import Console

    from dcqcn_gym.envs.backends import cautions_of, make_backend
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.simulation.run import Extras, parse_assignments, with_flows
    from dcqcn_gym.simulation.run import simulate as run_simulation

    if until_done and intervals is not None:
        raise ConfigError("--until-done and --intervals exclude each other; give one of them")
    chosen = load_scenario(scenario)
    if flows is not None:
        chosen = with_flows(chosen, flows)
    for warning in () if quiet else chosen.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if chosen.calibrated and not quiet:
        typer.echo(chosen.calibrated, err=True)
    alone = len(chosen.workloads) == 1
    if reports is not None:
        given = (flows, assign, intervals, window, trace, against, until_done or None)
        if any(option is not None for option in given) or backend != "native" or seed != 1:
            raise ConfigError(
                "--reports is a run that is over; of the other options only --scenario, --out, "
                "--force and --quiet go with it"
            )
        with claim(out, "simulate", force=force):
            if force:
                (out / STUDY_FILE).unlink(missing_ok=True)
            summary = _from_reports(chosen, out, reports, force, bins, curves=fct_cdf)
        return None if quiet else _tell(out, summary, alone=alone)
    setting = parse_assignments(assign or (), chosen.initial_setting(), chosen.line_rate_bps)
    options = (every, trace_ports, trace_flows, trace_format)
    tracing = _trace(trace, options, chosen.fabric)
    if intervals is None and not until_done and flows is None:
        intervals = chosen.intervals
    chosen = _chosen(chosen, intervals, window, quiet)
    for line in () if quiet else cautions_of(make_backend(backend), chosen):
        typer.echo(f"warning: {line}", err=True)
    study = _study(
        chosen, setting, seed=seed, intervals=intervals, backend=backend, trace=trace,
        options=options, bins=bins, fct_cdf=fct_cdf, against=against,
    )  # fmt: skip
    status = Console(stderr=True).status(f"simulating {chosen.name}")
    live = not quiet and sys.stderr.isatty()
    if live:
        status.start()
    try:
        with interruptible("nothing was written"), claim(out, "simulate", force=force):
            if not force and study.check(out) is not None:
                from dcqcn_gym.core.config import json_object

                summary = json_object(read_file(out / "summary.json"), str(out / "summary.json"))
                return None if quiet else _tell(out, summary, alone=alone)
            (out / STUDY_FILE).unlink(missing_ok=True)
            other = _against(against, chosen, out, force, seed, intervals, backend)
            summary = run_simulation(
                chosen,
                out,
                setting=setting,
                seed=seed,
                intervals=intervals,
                backend=backend,
                force=force,
                extras=Extras(
                    trace=tracing,
                    bins=bins,
                    curves=fct_cdf,
                    against=other,
                    progress=_progress(status, chosen.name) if live else None,
                ),
            )
            study.begin(out)
    finally:
        status.stop()
    return None if quiet else _tell(out, summary, other, alone=alone)


def _chosen(scenario: Scenario, intervals: int | None, window: str | None, quiet: bool) -> Scenario:
    """Return what of the traffic is run, and say it; without ``intervals`` all of it."""
    from dcqcn_gym.core.traffic_check import window_of
    from dcqcn_gym.report.traffic_choice import SessionLength, as_chosen, choose, remarks

    window_ms = window_of(window)
    if intervals is None:
        chosen, said = as_chosen(scenario, window_ms, None), tuple(remarks(scenario))
    else:
        chosen, *_, said = choose(scenario, SessionLength(intervals), window_ms=window_ms)
    for line in () if quiet else said:
        typer.echo(line, err=True)
    return chosen


def _study(
    scenario: Scenario, setting: DeviceSetting, *, options: tuple[str | None, ...], **asked: Any
) -> Study[Any]:
    """Return what two simulations in one folder have to share: everything."""
    from dcqcn_gym.core.groups import by_group
    from dcqcn_gym.runs.log_line import setting_json
    from dcqcn_gym.runs.study import Study

    same = {
        "scenario": scenario.model_dump(mode="json"),
        "setting": {name: setting_json(one) for name, one in by_group(setting)},
        "trace_options": list(options),
        **asked,
    }
    return Study("simulate", same, parts={}, jobs={})


def _from_reports(
    scenario: Scenario, out: Path, folder: Path, force: bool, bins: str | None, *, curves: bool
) -> Mapping[str, Any]:
    from dcqcn_gym.envs.backends.replay import ReplayBackend
    from dcqcn_gym.simulation.recorded import read_recorded
    from dcqcn_gym.simulation.run import Extras
    from dcqcn_gym.simulation.run import simulate as run_simulation

    run = read_recorded(folder, scenario)
    return run_simulation(
        scenario,
        out,
        setting=run.setting,
        seed=run.seed,
        intervals=len(run.reports),
        backend=ReplayBackend(run.reports, run.left),
        force=force,
        extras=Extras(bins=bins, curves=curves, spent=run.spent),
    )


def _against(
    name: str | None,
    scenario: Scenario,
    out: Path,
    force: bool,
    seed: int,
    intervals: int | None,
    backend: str,
) -> ComparedRun | None:
    """Run the other setting, once it is known that the results can be written."""
    if name is None:
        return None
    from dcqcn_gym.simulation.difference import run_against
    from dcqcn_gym.simulation.run import check_out

    check_out(out, force)
    return run_against(name, scenario, seed=seed, intervals=intervals, backend=backend)


def _tell(
    out: Path, summary: Mapping[str, Any], other: ComparedRun | None = None, *, alone: bool
) -> None:
    """Say what came out; ``alone``: the scenario has one workload."""
    from dcqcn_gym.core.collectives import no_round
    from dcqcn_gym.core.version import code_versions

    version, engine = code_versions().values()
    typer.echo(f"dcqcn-gym {version}, engine {engine}", err=True)
    mean = ""
    if (finished := summary["slowdown_finished"]["all"]["mean"]) is not None:
        mean = f", mean slowdown {finished:.2f} of those that finished"
    if summary["slowdown"] and (every := summary["slowdown"]["all"]["mean"]) is not None:
        mean = f", mean slowdown {every:.2f}" + (
            f" ({mean.rpartition('slowdown ')[2]})" if mean else ""
        )
    endless = summary.get("unlimited_flows", 0)
    typer.echo(
        f"{out}: {summary['intervals']} intervals, {summary['finished_flows']} flows "
        f"finished, {summary['unfinished_flows']} not"
        f"{f', {endless} without an end' if endless else ''}{mean}"
    )
    for found in summary["collectives"]:
        if not found["rounds"]:
            delivered = summary["delivered_bytes"] if alone else None
            typer.echo(no_round(found, summary["intervals"], delivered))
    for found in summary["applications"]:
        if found["per_s"] is not None:
            typer.echo(
                f"{found['application']}: {found['per_s']:.4g} {found['unit']}, "
                f"{found['operations']} in {found['job_ns'] * 1e-6:.4g} ms"
            )
    if other is not None and other.table is not None:
        from dcqcn_gym.runs.table import print_tables

        print_tables([other.table])


def _trace(trace: str | None, options: tuple[str | None, ...], fabric: Fabric) -> Trace | None:
    from dcqcn_gym.simulation.trace import parse_trace

    if trace is None:
        if any(option is not None for option in options):
            raise ConfigError(
                "--every, --trace-ports, --trace-flows and --trace-format need --trace; "
                "expected for example --trace queue,rate,pause"
            )
        return None
    defaults = ("10us", "switches", "all", "csv")
    every, ports, flows, kind = (o or d for o, d in zip(options, defaults, strict=True))
    return parse_trace(trace, every, ports, flows, kind, fabric)


def _progress(status: Status, name: str) -> Callable[[int, IntervalReport], None]:
    def show(done: int, report: IntervalReport) -> None:
        status.update(
            f"simulating {name}: interval {done}, {report.end_ps * 1e-9:.1f} ms, "
            f"{report.active_flows} flows active"
        )

    return show
