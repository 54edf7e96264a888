"""Simulate one setting without a tuner and write what happened, flow by flow.

The files appear under their names only when everything is written: an error, a full disk or
Ctrl-C leaves nothing half-made. Memory does not grow with simulated time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.applications import ApplicationTracker
from dcqcn_gym.core.collectives import CollectiveRound, RoundTracker
from dcqcn_gym.core.errors import ConfigError, RunError, quote
from dcqcn_gym.core.groups import DeviceSetting, by_group, check_group_names
from dcqcn_gym.core.interval import FinishedFlows, IntervalReport, fields_shown
from dcqcn_gym.core.knob_names import knob_name
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.measured import Interval, measure
from dcqcn_gym.core.statistics import SlowdownCounter, paper_bins
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.envs.backends import Backend, make_backend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.tables import read_flows
from dcqcn_gym.envs.scenario.workloads import Flows, applications_of, collectives_of
from dcqcn_gym.report.chart import Chart
from dcqcn_gym.report.jobs import timeline_panel
from dcqcn_gym.report.network import CURVES_FILE, curves_of
from dcqcn_gym.runs.claim import check_place
from dcqcn_gym.simulation.clock import Clock, Spent
from dcqcn_gym.simulation.files import ResultFiles
from dcqcn_gym.simulation.page import PAGE, ComparedRun, run_page, series_of
from dcqcn_gym.simulation.picture import draw
from dcqcn_gym.simulation.totals import EveryFlow, Totals
from dcqcn_gym.simulation.trace import TRACE_FILES, Trace
from dcqcn_gym.simulation.tracer import Tracer

FILES = ("flows.csv", "intervals.csv", "timing.json", PAGE, "summary.json")
"""What a simulation always writes; ``summary.json`` appears last."""

DIFFERENCE_FILES = ("difference.csv", "difference.svg")
"""What a comparison adds (:mod:`dcqcn_gym.simulation.difference`)."""

COLLECTIVES_FILE = "collectives.csv"
"""One line per round, where the scenario has collective operations."""

EVERY_FILE = (COLLECTIVES_FILE, CURVES_FILE, *TRACE_FILES, *DIFFERENCE_FILES, *FILES)
"""What a simulation can write; such a file of an earlier one is removed."""

FLOW_COLUMNS = ("src", "dst", "bytes", "start_ns", "fct_ns", "ideal_fct_ns")
_COUNTS = fields_shown("csv")
_SIZES = fields_shown("csv", "fsd")
INTERVAL_COLUMNS = (
    "i", "start_ns", "end_ns", "utility", "o_tp", "o_rtt", "o_pfc", "idle", "throughput_bps",
    "rtt_mean_ns", "device_pause_ns", "max_queue_bytes", "finished_flows",
    *(field.flat for field in (*_COUNTS.values(), *_SIZES.values())),
)  # fmt: skip
ROUND_COLUMNS = (
    "workload", "collective", "round", "ranks", "bytes", "start_ns", "time_ns",
    "algbw_gbytes_per_s", "busbw_gbytes_per_s",
)  # fmt: skip

STUCK_INTERVALS = 10_000
"""With --until-done: give up after so many intervals with waiting flows and no packet at all."""

Progress = Callable[[int, IntervalReport], None]


def parse_assignments(texts: Iterable[str], base: Setting, line_rate_bps: float) -> DeviceSetting:
    """Return ``base`` with ``knob=value`` texts applied; values are in the units of the knob table.

    ``group:knob=value`` is for a group of devices, on top of what holds for all of them. Raises
    ConfigError (form, value, range) or UnknownNameError with near matches.
    """
    changes: dict[str, dict[str, float]] = {"cluster": {}}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise ConfigError(
                f"--set {quote(text)} is not of the form knob=value, as in rp_ai_rate=50"
            )
        group, _, name = name.strip().rpartition(":")
        row = base.table[knob_name(name, base.table.knobs)]
        of_group = changes.setdefault(group or "cluster", {})
        if row.name in of_group:
            raise ConfigError(f"--set names {row.name} more than once; give each knob one value")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        whole = not row.integer or number == np.floor(number)
        if not np.isfinite(number) or not whole:
            kind = "a whole number" if row.integer else "a number"
            raise ConfigError(
                f"--set {row.name} = {quote(value.strip())}: expected {kind} ({row.unit})"
            )
        of_group[row.name] = number
    cluster = base.replace(changes.pop("cluster")).check(line_rate_bps, "--set")
    if not changes:
        return cluster
    check_group_names(changes)
    own = {g: cluster.replace(c).check(line_rate_bps, f"--set {g}") for g, c in changes.items()}
    return {"cluster": cluster, **own}


def with_flows(scenario: Scenario, path: Path) -> Scenario:
    """Return the scenario with its traffic replaced by the flows of a CSV file."""
    flows = read_flows(path, scenario.n_hosts)
    return scenario.model_copy(update={"workloads": (Flows(flows=flows),)})


def endless(scenario: Scenario) -> list[str]:
    """Return the workloads that never stop producing flows, as ``workloads[i] (kind)``.

    Flows without an end are not waited for; they count where there is nothing else.
    """
    named = [(f"workloads[{i}] ({w.kind})", w) for i, w in enumerate(scenario.workloads)]
    everything = all(workload.unlimited for workload in scenario.workloads)
    return [name for name, workload in named if everything or workload.endless]


@dataclass(frozen=True)
class Extras:
    """What a simulation does besides writing :data:`FILES`; nothing of it changes those."""

    trace: Trace | None = None
    """Adds time series (:data:`~dcqcn_gym.simulation.trace.TRACE_FILES`)."""
    bins: str | None = None
    """Adds slowdowns by the sizes of this paper to the summary."""
    curves: bool = False
    """Writes :data:`CURVES_FILE`."""
    against: ComparedRun | None = None
    """Another run, for the page and :data:`DIFFERENCE_FILES`."""
    progress: Progress | None = None
    """Is called after every interval with how many there were, and its report."""
    spent: Spent | None = None
    """What the simulation cost where it is over already (a backend that plays it back)."""


def simulate(
    scenario: str | Path | Scenario,
    out: Path,
    *,
    setting: DeviceSetting | None = None,
    seed: int = 1,
    intervals: int | None = None,
    backend: str | Backend = "native",
    force: bool = False,
    extras: Extras = Extras(),
) -> Mapping[str, Any]:
    """Run a scenario from time 0, write :data:`FILES` and return the summary.

    ``scenario`` is a name, a file or a loaded one.
    ``setting`` is one for all devices or one per group; None: the scenario's initial setting.
    ``intervals``: how many monitor intervals; None: until every flow is delivered, which needs
    traffic that ends. There is no warm-up: the first interval starts with the first packet.

    Raises ConfigError for endless traffic without ``intervals``, RunError if ``out`` is unusable.
    """
    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    _check_budget(scenario, intervals)
    check_out(out, force)
    setting = setting or scenario.initial_setting()
    chosen = make_backend(backend) if isinstance(backend, str) else backend
    totals, clock = _totals(scenario, intervals, extras.bins), Clock()
    try:
        chosen.open(scenario, seed)
        clock.opened()
        chosen.apply(setting)
        with ResultFiles(out, _tables(totals.rounds), EVERY_FILE) as files:
            run = _Run(scenario, chosen, setting, totals, files, extras)
            run.until(intervals)
            summary = _begun(scenario, setting, seed) | totals.summary(chosen)
            run.write_extras(summary)
            chosen.close()  # a simulation in a process of its own is paid for when it ends
            files.write("timing.json", _json(_timing(extras.spent or clock.spent(), totals)))
            files.write("summary.json", _json(summary))
            files.publish()
    finally:
        chosen.close()
    return summary


def _totals(scenario: Scenario, intervals: int | None, bins: str | None) -> Totals:
    traffic = scenario.workloads, scenario.fabric
    duration = math.inf if intervals is None else intervals * scenario.monitor_interval_ps
    return Totals(
        RoundTracker(collectives_of(*traffic)),
        ApplicationTracker(applications_of(*traffic)),
        EveryFlow(duration),
        bins=None if bins is None else SlowdownCounter(paper_bins(bins)),
    )


def _tables(rounds: RoundTracker) -> dict[str, Sequence[str]]:
    tables: dict[str, Sequence[str]] = {
        "flows.csv": FLOW_COLUMNS,
        "intervals.csv": INTERVAL_COLUMNS,
    }
    return tables | ({COLLECTIVES_FILE: ROUND_COLUMNS} if rounds.collectives else {})


def _check_budget(scenario: Scenario, intervals: int | None) -> None:
    if intervals is not None:
        if intervals < 1:
            raise ConfigError(f"--intervals {intervals}: expected at least 1")
        return
    never = endless(scenario)
    if never:
        raise ConfigError(
            f"--until-done: {', '.join(never)} of scenario {scenario.name!r} never ends; give "
            "--intervals, or rounds or stop_us in the scenario"
        )


def check_out(out: Path, force: bool) -> None:
    """Raise RunError if results cannot be written to ``out``."""
    check_place(out)
    if (out / "run.jsonl").exists():
        raise RunError(f"--out {out} holds a tuning run; give another directory")
    present = [name for name in FILES if (out / name).exists()]
    if present and not force:
        raise RunError(
            f"--out {out} already holds results ({present[0]}); replace them with --force, "
            "or give another directory"
        )


@dataclass
class _Run:
    """A simulation that goes on, and where its lines go."""

    scenario: Scenario
    backend: Backend
    setting: DeviceSetting
    totals: Totals
    files: ResultFiles
    extras: Extras

    def __post_init__(self) -> None:
        trace, lasting = self.extras.trace, self.scenario.qp == "pair"
        self.tracer = (
            None
            if trace is None
            else Tracer(trace, self.files, self.totals.rounds.collectives, lasting=lasting)
        )

    def until(self, intervals: int | None) -> None:
        """Simulate so many intervals, or until every flow is delivered."""
        stuck, progress = 0, self.extras.progress
        if self.tracer is not None:
            self.tracer.attach(self.backend)
        while (not self.backend.done) if intervals is None else self.totals.intervals < intervals:
            report = self._advance()
            if progress is not None:
                progress(self.totals.intervals, report)
            stuck = stuck + 1 if report.packet_hops == 0 and report.active_flows else 0
            if intervals is None and stuck >= STUCK_INTERVALS:
                raise RunError(
                    f"--until-done: {report.active_flows} flows have sent nothing for {stuck} "
                    f"intervals: {_why_stuck(report, self.totals)}"
                )

    def _advance(self) -> IntervalReport:
        """Simulate one interval, count it and write its lines."""
        report, totals, files = self.backend.advance(), self.totals, self.files
        interval = measure(
            report,
            self.scenario,
            number=totals.intervals + 1,
            setting=self.setting,
            rounds=totals.rounds.add(report.finished, report.job_spans),
            applications=totals.applications.add(report.finished),
        )
        files.rows("flows.csv", _flow_rows(report.finished))
        files.rows("intervals.csv", [_interval_row(interval)])
        if interval.rounds:
            files.rows(COLLECTIVES_FILE, map(_round_row, interval.rounds))
        totals.add(interval)
        if self.tracer is not None:
            self.tracer.add_jobs(report.job_spans)
            self.tracer.end_interval(report.finished, report.end_ps)
        return report

    def write_extras(self, summary: Mapping[str, Any]) -> None:
        """Write what was asked for besides, once the last interval is over."""
        files, extras, series = self.files, self.extras, None
        jobs = [
            timeline_panel(part, f"job {w}")
            for w, part in self.totals.first.items()
            if "timeline" in part
        ]
        if self.tracer is not None:
            self.tracer.close()
            series = draw(self.tracer)
            drawn = [*(jobs if self.tracer.trace.jobs else ()), *(series.panels if series else ())]
            if drawn:
                files.write("trace.svg", Chart(drawn).file().encode())
        if extras.curves:
            files.write(CURVES_FILE, curves_of(files.draft("flows.csv"), extras.bins))
        here, against = series_of(files.draft("intervals.csv")), extras.against
        for name, data in (against.files(summary, here) if against else {}).items():
            files.write(name, data)
        page = run_page(self.scenario, self.setting, summary, here, against, [Chart(jobs), series])
        files.write(PAGE, page)


def _why_stuck(report: IntervalReport, totals: Totals) -> str:
    paused = int(np.count_nonzero(report.port_pause_ps))
    if paused:
        return f"PFC pauses {paused} ports for good, in a cycle in which each waits for the next"
    drops = totals.counts["drops"]
    if drops:
        return f"{drops} packets or ACKs were dropped, and what they carried is not sent again"
    return "nothing was dropped and nothing is paused, so their rate is too low"


def _ns(ps: int) -> str:
    """Return picoseconds as exact decimal nanoseconds."""
    whole, rest = divmod(ps, 1000)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".") if rest else str(whole)


def _flow_rows(flows: FinishedFlows) -> Iterable[Sequence[object]]:
    columns = (flows.src, flows.dst, flows.bytes, flows.start_ps, flows.fct_ps, flows.ideal_fct_ps)
    for src, dst, size, start, fct, ideal in zip(*(c.tolist() for c in columns), strict=True):
        yield src, dst, size, _ns(start), _ns(fct), _ns(ideal)


def _round_row(done: CollectiveRound) -> Sequence[object]:
    c = done.collective
    return (
        c.workload, c.kind, done.number, c.ranks, c.bytes, _ns(done.start_ps), _ns(done.time_ps),
        done.algbw * 1e-9, done.busbw * 1e-9,
    )  # fmt: skip


def _interval_row(interval: Interval) -> list[object]:
    report, figures, value = interval.report, interval.figures, interval.terms
    rtt_ps = figures.rtt_mean_ps
    return [
        interval.number - 1, _ns(int(report.start_ps)), _ns(int(report.end_ps)), interval.utility,
        value.tp, value.rtt, value.pfc, int(interval.idle), figures.throughput_bps,
        "" if rtt_ps is None else rtt_ps / 1000, figures.device_pause_ps / 1000,
        figures.max_queue_bytes, figures.finished_flows,
        *(field.of(report) for field in (*_COUNTS.values(), *_SIZES.values())),
    ]  # fmt: skip


def _begun(scenario: Scenario, setting: DeviceSetting, seed: int) -> dict[str, Any]:
    """Return the part of the summary that is known before the first interval."""
    plain = {group: dict(values) for group, values in by_group(setting)}
    return {
        "scenario": scenario.name,
        "seed": seed,
        "versions": code_versions(),
        "setting": plain["cluster"] if len(plain) == 1 else plain,
    }


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def _timing(spent: Spent, totals: Totals) -> dict[str, Any]:
    hops = totals.counts["packet_hops"]
    return {
        **asdict(spent),
        "packet_hops_per_cpu_s": hops / spent.cpu_s if spent.cpu_s > 0 else None,
    }
