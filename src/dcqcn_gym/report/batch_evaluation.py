"""Many settings on many scenarios at once, without logs: for searches and fits.

What comes back is to the bit what :func:`~dcqcn_gym.report.measurements.measured` makes of the log
of the same run: score and harms are those of :mod:`dcqcn_gym.core.verdict`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np

from dcqcn_gym.core.collectives import RoundTracker
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.core.measured import mean_device_pause_ps, rtt_mean_ps, worst_pause_ps
from dcqcn_gym.core.utility import judge
from dcqcn_gym.core.verdict import Measured
from dcqcn_gym.envs.backends.native_batch import Ground, LiveRun, Stretch, advance
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import collectives_of
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import FlowTable, Series
from dcqcn_gym.runs.run_totals import left_over_line

AT_ONCE = 64
"""Simulations that are held in memory at once."""

Candidate: TypeAlias = DeviceSetting | Callable[[Scenario], DeviceSetting]
"""A setting, or what gives one for a scenario."""


def evaluate(
    settings: Sequence[Candidate],
    scenarios: Sequence[Scenario],
    seeds: Sequence[int],
    intervals: int | None = None,
    threads: int | None = None,
    engine: str = "default",
) -> list[list[list[Measured]]]:
    """Return what every setting does: one list per setting, in it one per scenario, by seed.

    A setting comes into force after the warm-up, which runs under the scenario's initial setting,
    as in a run of the tuner ``fixed``. ``intervals`` replaces the scenarios' own numbers.
    ``threads`` of the engine are as many as CPUs without a number; they change no byte. ``engine``
    is ``default``, which moves packets, or ``fluid``, which moves rates and is not exact.
    """
    found: list[Measured] = []
    jobs = product([Ground(s, engine) for s in scenarios], seeds, settings)
    while some := list(islice(jobs, AT_ONCE)):
        runs = begun(some, threads)
        go_on(runs, intervals, threads)
        found += [run.measured() for run in runs]
    n = len(settings)
    places = [[s * len(seeds) + k for k in range(len(seeds))] for s in range(len(scenarios))]
    return [[[found[at * n + i] for at in row] for row in places] for i in range(n)]


def begun(
    jobs: Sequence[tuple[Ground, int, Candidate]], threads: int | None = None
) -> list[EvaluatedRun]:
    """Return a run of each (scenario, seed, setting) behind its warm-up, which equal ones share."""
    warm = {(id(ground), seed): (ground, seed) for ground, seed, _ in jobs}
    runs = [ground.begin(seed) for ground, seed in warm.values()]
    done = advance(runs, [_warm_up_ps(run.ground.scenario) for run in runs], threads)
    starts = dict(zip(warm, zip(runs, done, strict=True), strict=True))
    return [EvaluatedRun(*starts[id(ground), seed], setting) for ground, seed, setting in jobs]


def go_on(runs: Sequence[EvaluatedRun], intervals: int | None, threads: int | None = None) -> None:
    """Advance all runs up to so many intervals (those of their scenarios without a number)."""
    stretches = advance([r.run for r in runs], [r.spans_ps(intervals) for r in runs], threads)
    for run, done in zip(runs, stretches, strict=True):
        run.take(done)


def _warm_up_ps(scenario: Scenario) -> list[int]:
    """Return the lengths of the intervals of the warm-up."""
    whole, rest = divmod(scenario.warmup_ps, scenario.monitor_interval_ps)
    return [rest] * bool(rest) + [scenario.monitor_interval_ps] * whole


class EvaluatedRun:
    """One setting on one scenario and seed, as far as it has run: a copy of ``start`` goes on."""

    def __init__(self, start: LiveRun, warm_up: Stretch, setting: Candidate) -> None:
        self._scenario = start.ground.scenario
        self._header = start.ground.header
        self._tracker = RoundTracker(
            collectives_of(self._scenario.workloads, self._scenario.fabric)
        )
        self._tracker.add(warm_up.finished, warm_up.job_spans)
        self._records: list[dict[str, Any]] = []
        self._finished: list[FinishedFlows] = []
        self.run = start.copy()
        self.run.apply(setting(self._scenario) if callable(setting) else setting)

    def take(self, done: Stretch) -> None:
        """Take what further intervals did."""
        for figures, finished, spans in done.intervals():
            judged = judge(figures, self._scenario)
            self._finished.append(finished)
            self._records.append(
                {
                    "start_ps": figures.start_ps,
                    "end_ps": figures.end_ps,
                    "utility": judged.utility,
                    "idle": judged.idle,
                    "delivered_bytes": figures.delivered_bytes,
                    "rtt_mean_ps": rtt_mean_ps(figures),
                    "device_pause_ps": mean_device_pause_ps(figures),
                    "worst_pause_ps": worst_pause_ps(figures),
                    "active_flows": figures.active_flows,
                    "rounds": [r.as_dict() for r in self._tracker.add(finished, spans)],
                }
            )

    def spans_ps(self, intervals: int | None) -> list[int]:
        """Return the lengths of the intervals that are missing up to so many."""
        wanted = intervals or self._scenario.intervals
        return [self._scenario.monitor_interval_ps] * (wanted - len(self._records))

    def measured(self) -> Measured:
        """Return what counts for the verdict, as of a run that ended here."""
        live = self.run.live_flows()
        end = left_over_line((live, self._tracker.running(live)))
        return measured(_series(self._header, self._records, self._finished, end))


def _series(
    header: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    finished: Sequence[FinishedFlows],
    end: Mapping[str, Any],
) -> Series:
    def joined(name: str) -> Any:
        return np.concatenate([getattr(flows, name) for flows in (FinishedFlows(), *finished)])

    return Series(
        header=header,
        end=end,
        records=records,
        finished=FlowTable(joined("bytes"), joined("start_ps"), joined("ideal_fct_ps")),
        fct_ps=joined("fct_ps"),
        flow_interval=np.repeat(np.arange(len(records)), [f.src.size for f in finished]),
        left=FlowTable.of(end["unfinished"]),
    )
