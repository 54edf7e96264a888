"""Running a scenario under a tuner that acts all the time, and what papers draw of its flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dcqcn_gym.core.interval import FloatArray, IntervalReport, LiveFlows
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.measured import Interval
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.metrics import metrics_of
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.log_line import setting_json
from dcqcn_gym.runs.loop import walk
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.base import Proposal

MICE_BYTES, ELEPHANT_BYTES = 100_000, 10_000_000
"""ACC's bins: (0, 100 KB] and [10 MB, ...)."""


@dataclass
class Tuned:
    """What was seen: report and setting of every interval, a queue over time if asked."""

    reports: list[IntervalReport] = field(default_factory=list)
    utilities: list[float] = field(default_factory=list)
    settings: list[Proposal] = field(default_factory=list)
    """What was in force in every interval."""
    queue: list[tuple[float, float]] = field(default_factory=list)
    """Time in seconds and bytes of the watched port."""
    unfinished: LiveFlows = field(default_factory=LiveFlows)
    """Flows under way at the end."""

    def keep(self, setting: Proposal, interval: Interval) -> None:
        """Add an interval and what was in force in it."""
        self.reports.append(interval.report)
        self.utilities.append(interval.utility)
        self.settings.append(setting)

    @property
    def hops(self) -> int:
        """Packet-hops of the run."""
        return int(np.sum([report.packet_hops for report in self.reports], dtype=np.int64))

    def kmax_kb(self, port: str, at_s: float) -> float:
        """Return Kmax in KB that was in force at a time at a port, ``port:NODE:INDEX``."""
        i = max(i for i, r in enumerate(self.reports) if r.start_ps * 1e-12 <= at_s + 1e-9)
        chosen = self.settings[i]
        own = chosen if isinstance(chosen, Setting) else chosen.get(port, chosen["cluster"])
        return own["kmax"]

    def flows(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return size in bytes, start and completion time in seconds of every finished flow."""
        done = [report.finished for report in self.reports]
        size = np.concatenate([np.zeros(0), *(f.bytes for f in done)])
        start = np.concatenate([np.zeros(0), *(f.start_ps * 1e-12 for f in done)])
        fct = np.concatenate([np.zeros(0), *(f.fct_ps * 1e-12 for f in done)])
        return size, start, fct

    def since(self, begin_s: float) -> tuple[FloatArray, FloatArray]:
        """Return size and completion time of the flows that began from a time on.

        Those that are under way at the end count at their age.
        """
        size, start, fct = self.flows()
        left = self.unfinished
        began = left.start_ps * 1e-12
        end_s = self.reports[-1].start_ps * 1e-12 + self.reports[-1].duration_s
        size, start = np.concatenate([size, left.bytes]), np.concatenate([start, began])
        fct = np.concatenate([fct, end_s - began])
        chosen = start >= begin_s
        return size[chosen], fct[chosen]

    def by_size(self, flows: tuple[FloatArray, FloatArray] | None = None) -> dict[str, float]:
        """Return ACC's four figures in seconds, of the finished flows if none are given.

        NaN where a bin has none.
        """
        size, fct = self.flows()[::2] if flows is None else flows
        mice, elephants = fct[size <= MICE_BYTES], fct[size >= ELEPHANT_BYTES]
        found = {"mean": fct, "mice": mice, "elephants": elephants}
        values = {name: statistic(some) for name, some in found.items()}
        return {**values, "mice p99": statistic(mice, 99)}

    def p99(self) -> float:
        """Return the 99th percentile of all flows that finished, in seconds; NaN without any."""
        return statistic(self.flows()[2], 99)


def tuned(
    scenario: Scenario,
    tuner: str,
    seed: int,
    length_ms: float,
    *,
    arguments: Mapping[str, Any] | None = None,
    watch: Sequence[int] = (),
    every_us: float = 10.0,
) -> Tuned:
    """Run ``scenario`` for ``length_ms`` after its warm-up; the tuner acts after every cadence.

    ``watch`` holds the number of a port whose queue is kept every ``every_us``, or nothing.
    """
    intervals = round(length_ms * 1e3 / scenario.monitor_interval_us)
    spec = RunSpec(scenario, tuner, seed, intervals, tuner_args=dict(arguments or {}))
    return carried_out(spec, watch=watch, every_us=every_us)


def carried_out(spec: RunSpec, *, watch: Sequence[int] = (), every_us: float = 10.0) -> Tuned:
    """Carry out a run and keep what :func:`tuned` does, without writing a log."""
    seen = Tuned()
    with spec.started() as (tuner, env):
        if watch:
            env.backend.watch(  # type: ignore[attr-defined]  # the native one
                round(every_us * 1e6),
                list(watch),
                lambda now, ports, _: seen.queue.append(
                    (now * 1e-12, float(ports["queue_bytes"][0]))
                ),
            )
        walk(tuner, env, seen.keep)
        left = env.left_over()
        seen.unfinished = LiveFlows() if left is None else left[0]
    return seen


def under_setting(
    scenario: Scenario, setting: Setting, seed: int, intervals: int
) -> tuple[dict[str, float], int]:
    """Run a scenario under one setting from time 0 on; return its metrics and packet-hops."""
    held = Entry("do-nothing", changes={"initial": setting_json(setting)})
    with TemporaryDirectory() as folder:
        job = RunJob(held.spec(scenario, seed, intervals, "native"), Path(folder) / "run.jsonl")
        job.run()
        run = Series.of(read_run(job.path))
    return metrics_of(run), int(run.column("packet_hops").sum())
