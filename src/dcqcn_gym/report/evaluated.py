"""Many settings on many scenarios at once, without logs: for searches and fits.

What comes back is to the bit what :func:`~dcqcn_gym.report.judged.measured` makes of the log of the
same run: score and harms are those of :mod:`dcqcn_gym.core.verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from dcqcn_gym.core.collectives import RoundTracker
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.core.measured import mean_device_pause_ps, rtt_mean_ps
from dcqcn_gym.core.utility import judge
from dcqcn_gym.core.verdict import Measured
from dcqcn_gym.envs.backends.native_batch import Ground, LiveRun, Stretch, advance
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import collectives_of
from dcqcn_gym.report.judged import measured
from dcqcn_gym.report.series import FlowTable, Series
from dcqcn_gym.runs.bookkeeping import left_over_line

AT_ONCE = 64
"""Simulations that are held in memory at once."""


def evaluate(
    settings: Sequence[DeviceSetting],
    scenarios: Sequence[Scenario],
    seeds: Sequence[int],
    intervals: int | None = None,
    threads: int | None = None,
) -> list[list[list[Measured]]]:
    """Return what every setting does: one list per setting, in it one per scenario, by seed.

    A setting comes into force after the warm-up, which runs under the scenario's initial setting,
    as in a run of the tuner ``fixed``. ``intervals`` replaces the scenarios' own numbers.
    ``threads`` of the engine are as many as CPUs without a number; they change no byte.
    """
    grounds = [Ground(scenario) for scenario in scenarios]
    jobs = product(settings, grounds, seeds)
    found: list[Measured] = []
    while some := list(islice(jobs, AT_ONCE)):
        runs = [EvaluatedRun(*job) for job in some]
        go_on(runs, intervals, threads)
        found += [run.measured() for run in runs]
    rest = iter(found)
    return [[list(islice(rest, len(seeds))) for _ in scenarios] for _ in settings]


class EvaluatedRun:
    """One setting on one scenario and seed, as far as it has run."""

    def __init__(self, setting: DeviceSetting, ground: Ground, seed: int) -> None:
        self._setting = setting
        self._scenario = ground.scenario
        self._tracker = RoundTracker(
            collectives_of(self._scenario.workloads, self._scenario.fabric)
        )
        self.run = LiveRun(ground, seed)
        self.run.apply(self._scenario.initial_setting())
        self.begun = False
        """Whether the warm-up is over."""
        self._records: list[dict[str, Any]] = []
        self._finished: list[FinishedFlows] = []

    @property
    def warm_up_ps(self) -> list[int]:
        """The lengths of the intervals of the warm-up."""
        whole, rest = divmod(self._scenario.warmup_ps, self._scenario.monitor_interval_ps)
        return [rest] * bool(rest) + [self._scenario.monitor_interval_ps] * whole

    def begin(self, warm_up: Stretch) -> None:
        """Take what the warm-up did; the setting comes into force."""
        self.begun = True
        self._tracker.add(warm_up.finished, warm_up.job_spans)
        self.run.apply(self._setting)

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
        return measured(_series(self._records, self._finished, end))


def go_on(runs: Sequence[EvaluatedRun], intervals: int | None, threads: int | None = None) -> None:
    """Advance all runs up to so many intervals (those of their scenarios without a number)."""
    fresh = [run for run in runs if not run.begun]
    warm_ups = advance([r.run for r in fresh], [r.warm_up_ps for r in fresh], threads)
    for run, done in zip(fresh, warm_ups, strict=True):
        run.begin(done)
    stretches = advance([r.run for r in runs], [r.spans_ps(intervals) for r in runs], threads)
    for run, done in zip(runs, stretches, strict=True):
        run.take(done)


def _series(
    records: Sequence[Mapping[str, Any]],
    finished: Sequence[FinishedFlows],
    end: Mapping[str, Any],
) -> Series:
    def joined(name: str) -> Any:
        return np.concatenate([getattr(flows, name) for flows in (FinishedFlows(), *finished)])

    return Series(
        header={},
        end=end,
        records=records,
        finished=FlowTable(joined("bytes"), joined("start_ps"), joined("ideal_fct_ps")),
        fct_ps=joined("fct_ps"),
        flow_interval=np.repeat(np.arange(len(records)), [f.src.size for f in finished]),
        left=FlowTable.of(end["unfinished"]),
    )
