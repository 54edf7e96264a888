"""Simulates one setting without a tuner and writes what happened, flow by flow.

The files appear under their names only when everything is written: an error, a full disk or
Ctrl-C leaves nothing half-made. Memory does not grow with simulated time.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dcqcn_gym
from dcqcn_gym.core.collectives import CollectiveRound, RoundTracker
from dcqcn_gym.core.errors import ConfigError, RunError, quote
from dcqcn_gym.core.interval import FinishedFlows, IntervalReport
from dcqcn_gym.core.knob_names import knob_name
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.statistics import SlowdownCounter, slowdowns
from dcqcn_gym.core.utility import IDLE_UTILITY, Terms, device_pause_ps, is_idle, terms, utility
from dcqcn_gym.envs.backends import Backend, make_backend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.tables import read_flows
from dcqcn_gym.envs.scenario.workloads import Flows, Poisson, collectives_of
from dcqcn_gym.report.trace_figure import draw
from dcqcn_gym.simulate.files import ResultFiles
from dcqcn_gym.simulate.trace import TRACE_FILES, Trace
from dcqcn_gym.simulate.tracer import Tracer

__all__ = ["FILES", "parse_assignments", "simulate", "with_flows"]

FILES = ("flows.csv", "intervals.csv", "timing.json", "summary.json")
"""What a simulation always writes; ``summary.json`` appears last."""

COLLECTIVES_FILE = "collectives.csv"
"""One line per round, where the scenario has collective operations."""

FLOW_COLUMNS = ("src", "dst", "bytes", "start_ns", "fct_ns", "ideal_fct_ns")
INTERVAL_COLUMNS = (
    "i", "start_ns", "end_ns", "utility", "o_tp", "o_rtt", "o_pfc", "idle", "throughput_bps",
    "rtt_mean_ns", "pause_ns_mean", "pauses", "marks", "cnps", "drops", "retransmitted_packets",
    "packet_hops", "max_queue_bytes", "active_flows", "finished_flows", "elephants",
    "potential_elephants", "mice",
)  # fmt: skip
ROUND_COLUMNS = (
    "workload", "collective", "round", "ranks", "bytes", "start_ns", "time_ns",
    "algbw_gbytes_per_s", "busbw_gbytes_per_s",
)  # fmt: skip

STUCK_INTERVALS = 10_000
"""With --until-done: give up after so many intervals with waiting flows and no packet at all."""

Progress = Callable[[int, IntervalReport], None]


def parse_assignments(texts: Iterable[str], base: Setting, line_rate_bps: float) -> Setting:
    """Return ``base`` with ``knob=value`` texts applied; values are in NVIDIA's units.

    Raises ConfigError (form, value, range) or UnknownNameError with near matches.
    """
    changes: dict[str, float] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise ConfigError(
                f"--set {quote(text)} is not of the form knob=value, as in rp_ai_rate=50"
            )
        row = base.table[knob_name(name.strip(), base.table.knobs)]
        if row.name in changes:
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
        changes[row.name] = number
    return base.replace_nvidia(changes).check(line_rate_bps, "--set")


def with_flows(scenario: Scenario, path: Path) -> Scenario:
    """Return the scenario with its traffic replaced by the flows of a CSV file."""
    flows = read_flows(path, scenario.n_hosts)
    return scenario.model_copy(update={"workloads": (Flows(flows=flows),)})


def endless(scenario: Scenario) -> list[str]:
    """Return the workloads that never stop producing flows, as ``workloads[i] (kind)``."""
    names = []
    for i, workload in enumerate(scenario.workloads):
        if isinstance(workload, Flows):
            continue
        ends = workload.stop_us is not None
        if isinstance(workload, Poisson):
            ends = ends and not workload.repeat_us
        else:
            ends = ends or workload.rounds > 0
        if not ends:
            names.append(f"workloads[{i}] ({workload.kind})")
    return names


_COUNTED = (
    "delivered_bytes", "data_packets", "acks", "pauses", "marks", "cnps", "drops",
    "retransmitted_packets", "packet_hops",
)  # fmt: skip


@dataclass
class _Totals:
    """Running sums over the intervals."""

    rounds: RoundTracker
    slowdown: SlowdownCounter = field(default_factory=SlowdownCounter)
    intervals: int = 0
    end_ps: int = 0
    first_start_ps: int | None = None
    last_finish_ps: int = 0
    flows: int = 0
    active: int = 0
    utility_sum: float = 0.0
    busy: int = 0
    port_pause_ps: float = 0.0
    device_pause_ps: float = 0.0
    largest_queue: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))

    def add(self, report: IntervalReport, value: float, idle: bool) -> None:
        flows = report.finished
        self.slowdown.add(flows.bytes, slowdowns(flows.fct_ps, flows.ideal_fct_ps))
        if flows.bytes.size:
            first = int(flows.start_ps.min())
            known = self.first_start_ps
            self.first_start_ps = first if known is None else min(known, first)
            finish = int((flows.start_ps + flows.fct_ps).max())
            self.last_finish_ps = max(self.last_finish_ps, finish)
        self.intervals += 1
        self.end_ps = report.end_ps
        self.flows += int(flows.bytes.size)
        self.active = report.active_flows
        self.utility_sum += 0.0 if idle else value
        self.busy += not idle
        self.port_pause_ps += float(np.sum(report.port_pause_ps))
        self.device_pause_ps += float(np.mean(device_pause_ps(report)))
        self.largest_queue = max(self.largest_queue, int(report.port_max_queue_bytes.max()))
        for name in _COUNTED:
            self.counts[name] += int(getattr(report, name))


def simulate(
    scenario: Scenario,
    out: Path,
    *,
    setting: Setting | None = None,
    seed: int = 1,
    intervals: int | None = None,
    backend: str | Backend = "native",
    force: bool = False,
    progress: Progress | None = None,
    trace: Trace | None = None,
) -> Mapping[str, Any]:
    """Run a scenario from time 0 under one setting, write :data:`FILES` and return the summary.

    ``trace`` adds time series (:data:`~dcqcn_gym.simulate.trace.TRACE_FILES`) and changes nothing
    else. ``intervals``: how many monitor intervals; None: until every flow is delivered, which
    needs traffic that ends. There is no warm-up: the first interval starts with the first packet.

    Raise:
        ConfigError: the traffic never ends and no number of intervals was given, or a bad seed.
        RunError: ``out`` cannot be used or written.
    """
    _check_budget(scenario, intervals)
    _check_out(out, force)
    setting = scenario.initial_setting() if setting is None else setting
    world = make_backend(backend) if isinstance(backend, str) else backend
    totals = _Totals(RoundTracker(collectives_of(scenario.workloads, scenario.network)))
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        world.open(scenario, seed)
        world.apply(setting)
        known = (COLLECTIVES_FILE, *TRACE_FILES, *FILES)
        with ResultFiles(out, _tables(totals.rounds), known) as files:
            tracer = None if trace is None else Tracer(trace, files)
            _run(scenario, world, totals, files, intervals, progress, tracer)
            if tracer is not None:
                tracer.close()
                if picture := draw(tracer):
                    files.write("trace.png", picture)
            spent = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
            summary = _summary(scenario, setting, seed, totals)
            files.write("timing.json", _json(_timing(spent, totals)))
            files.write("summary.json", _json(summary))
            files.publish()
    finally:
        world.close()
    return summary


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


def _check_out(out: Path, force: bool) -> None:
    for part in (out, *out.parents):
        if part.exists():
            if not part.is_dir():
                raise RunError(f"--out {out}: {part} is a file; give a directory")
            if not os.access(part, os.W_OK | os.X_OK):
                raise RunError(f"--out {out}: {part} is not writable")
            break
    if (out / "run.jsonl").exists():
        raise RunError(f"--out {out} holds a tuning run; give another directory")
    held = [name for name in FILES if (out / name).exists()]
    if held and not force:
        raise RunError(
            f"--out {out} already holds results ({held[0]}); replace them with --force, "
            "or give another directory"
        )


def _run(
    scenario: Scenario,
    world: Backend,
    totals: _Totals,
    files: ResultFiles,
    intervals: int | None,
    progress: Progress | None,
    tracer: Tracer | None,
) -> None:
    stuck = 0
    if tracer is not None:
        tracer.attach(world)
    while (not world.done) if intervals is None else totals.intervals < intervals:
        report = world.advance()
        value = terms(report, active_share=scenario.active_share, pfc_over=scenario.pfc_over)
        idle = is_idle(report)
        judged = IDLE_UTILITY if idle else utility(value, scenario.weights)
        files.rows("flows.csv", _flow_rows(report.finished))
        files.rows("intervals.csv", [_interval_row(totals.intervals, report, value, judged, idle)])
        if rounds := totals.rounds.add(report.finished):
            files.rows(COLLECTIVES_FILE, map(_round_row, rounds))
        totals.add(report, judged, idle)
        if tracer is not None:
            tracer.end_interval()
        if progress is not None:
            progress(totals.intervals, report)
        stuck = stuck + 1 if report.packet_hops == 0 and report.active_flows else 0
        if intervals is None and stuck >= STUCK_INTERVALS:
            raise RunError(
                f"--until-done: {report.active_flows} flows have sent nothing for {stuck} "
                "intervals; the network is stuck (a pause cycle or a rate that is too low)"
            )


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


def _interval_row(
    i: int, report: IntervalReport, value: Terms, judged: float, idle: bool
) -> list[object]:
    samples = int(np.sum(report.rtt_count))
    rtt_ns = float(np.sum(report.rtt_sum_ps)) / samples / 1000 if samples else ""
    return [
        i, _ns(report.start_ps), _ns(report.end_ps), judged, value.tp, value.rtt, value.pfc,
        int(idle), report.delivered_bytes * 8 / report.duration_s, rtt_ns,
        float(np.mean(device_pause_ps(report))) / 1000, report.pauses, report.marks, report.cnps,
        report.drops, report.retransmitted_packets, report.packet_hops,
        int(report.port_max_queue_bytes.max()), report.active_flows, report.finished.bytes.size,
        report.fsd.elephants, report.fsd.potential, report.fsd.mice,
    ]  # fmt: skip


def _summary(scenario: Scenario, setting: Setting, seed: int, totals: _Totals) -> dict[str, Any]:
    start = totals.first_start_ps
    return {
        "scenario": scenario.name,
        "seed": seed,
        "version": dcqcn_gym.__version__,
        "setting": setting.to_nvidia(),
        "intervals": totals.intervals,
        "simulated_ns": totals.end_ps / 1000,
        "finished_flows": totals.flows,
        "unfinished_flows": totals.active,
        "makespan_ns": None if start is None else (totals.last_finish_ps - start) / 1000,
        "mean_utility": totals.utility_sum / totals.busy if totals.busy else None,
        "pause_ns_all_ports": totals.port_pause_ps / 1000,
        "pause_ns_mean_device": totals.device_pause_ps / 1000,
        "max_queue_bytes": totals.largest_queue,
        **totals.counts,
        "slowdown": totals.slowdown.summary(),
        "collectives": totals.rounds.summary(),
    }


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def _timing(spent: Mapping[str, float], totals: _Totals) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hops = totals.counts["packet_hops"]
    return {
        "cpu_s": spent["cpu_s"],
        "wall_s": spent["wall_s"],
        "peak_memory_bytes": peak * (1 if sys.platform == "darwin" else 1024),
        "packet_hops_per_cpu_s": hops / spent["cpu_s"] if spent["cpu_s"] > 0 else None,
    }
