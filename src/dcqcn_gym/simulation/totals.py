"""Running sums of a simulation and the summary made of them; memory does not grow with time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dcqcn_gym.core.applications import ApplicationTracker, Completed
from dcqcn_gym.core.collectives import CollectiveRound, RoundTracker, summary_of_parts
from dcqcn_gym.core.interval import IntervalReport, fields_shown
from dcqcn_gym.core.iterations import Part, added
from dcqcn_gym.core.measured import Interval
from dcqcn_gym.core.score import GUARD
from dcqcn_gym.core.statistics import ALL_SIZES, Fairness, SlowdownCounter, slowdowns
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.backends.base import live_flows_of

COUNTED = tuple(fields_shown("sum"))
"""Figures of reports that a summary has as sums over all intervals."""


class EveryFlow:
    """Counts the flows that started before the guard of ``duration_ps``, as the verdict does.

    The guard is the last share :data:`~dcqcn_gym.core.score.GUARD` of the time, whose flows had no
    time to finish. An infinite duration, of a simulation that waits for every flow, has none.
    """

    def __init__(self, duration_ps: float = math.inf) -> None:
        self._before_ps = (1 - GUARD) * duration_ps
        self._counter = SlowdownCounter()
        self._last: IntervalReport | None = None

    def add(self, report: IntervalReport) -> None:
        """Count the flows that finished in an interval."""
        flows, self._last = report.finished, report
        counted = flows.start_ps < self._before_ps
        slow = slowdowns(flows.fct_ps[counted], flows.ideal_fct_ps[counted])
        self._counter.add(flows.bytes[counted], np.maximum(slow, 1.0))

    def summary(self, backend: Backend) -> dict[str, dict[str, Any]] | None:
        """Return the statistics by size at the end, what is unfinished at its age.

        None if the backend does not know which flows are unfinished, and there may be some.
        """
        live, last = live_flows_of(backend), self._last
        if last is None:
            return self._counter.summary()
        if live is None:
            known = "active_flows" not in last.unknown
            return self._counter.summary() if known and not last.active_flows else None
        counted = live.start_ps < self._before_ps
        ages = slowdowns(last.end_ps - live.start_ps[counted], live.ideal_fct_ps[counted])
        self._counter.add(live.bytes[counted], np.maximum(ages, 1.0))
        return self._counter.summary()


@dataclass
class Totals:
    """Running sums over the intervals."""

    rounds: RoundTracker
    applications: ApplicationTracker
    every: EveryFlow
    tally: Completed = field(default_factory=Completed)
    slowdown: SlowdownCounter = field(default_factory=SlowdownCounter)
    bins: SlowdownCounter | None = None
    """Slowdowns by the sizes of a paper, where they are wanted."""
    rtt: SlowdownCounter = field(default_factory=lambda: SlowdownCounter([ALL_SIZES]))
    """Mean round trips of the intervals in ps, which it counts just as well."""
    fairness: Fairness = field(default_factory=Fairness)
    parts: dict[int, Part] = field(default_factory=dict)
    """Of jobs, by workload: where the time of their iterations went, in all."""
    first: dict[int, Part] = field(default_factory=dict)
    """Of each job the first iteration."""
    intervals: int = 0
    end_ps: int = 0
    first_start_ps: int | None = None
    last_finish_ps: int = 0
    flows: int = 0
    active: int = 0
    unlimited: int = 0
    utility_sum: float = 0.0
    busy: int = 0
    all_ports_pause_ps: float = 0.0
    host_ports_pause_ps: float = 0.0
    switch_ports_pause_ps: float = 0.0
    host_pfc: int = 0
    switch_pfc: int = 0
    device_pause_ps: float = 0.0
    largest_queue: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))

    def add(self, interval: Interval) -> None:
        """Count an interval."""
        report, figures = interval.report, interval.figures
        self.every.add(report)
        flows = report.finished
        slow = slowdowns(flows.fct_ps, flows.ideal_fct_ps)
        self.slowdown.add(flows.bytes, slow)
        if self.bins is not None:
            self.bins.add(flows.bytes, slow)
        self.fairness.add(flows.bytes, flows.fct_ps)
        if figures.rtt_mean_ps is not None:
            self.rtt.add(np.zeros(1, dtype=np.int64), np.array([figures.rtt_mean_ps]))
        if flows.bytes.size:
            first = int(flows.start_ps.min())
            known = self.first_start_ps
            self.first_start_ps = first if known is None else min(known, first)
            finish = int((flows.start_ps + flows.fct_ps).max())
            self.last_finish_ps = max(self.last_finish_ps, finish)
        self.tally.add(
            [d.as_dict() for d in interval.applications], [r.as_dict() for r in interval.rounds]
        )
        self._add_parts(interval.rounds)
        self.intervals += 1
        self.end_ps = int(report.end_ps)
        self.flows += figures.finished_flows
        self.active = int(report.active_flows)
        self.unlimited = int(report.unlimited_flows)
        self.utility_sum += 0.0 if interval.idle else interval.utility
        self.busy += not interval.idle
        self.all_ports_pause_ps += float(report.port_pause_ps.sum())
        hosts, switches = report.pause_ps_by_kind()
        self.host_ports_pause_ps += hosts
        self.switch_ports_pause_ps += switches
        host_frames, switch_frames = report.pfc_received_by_kind()
        self.host_pfc += host_frames
        self.switch_pfc += switch_frames
        self.device_pause_ps += figures.device_pause_ps
        self.largest_queue = max(self.largest_queue, figures.max_queue_bytes)
        for name in COUNTED:
            self.counts[name] += int(getattr(report, name))

    def _add_parts(self, rounds: Sequence[CollectiveRound]) -> None:
        for part in filter(None, (r.part for r in rounds)):
            w = part["workload"]
            self.first.setdefault(w, part)
            self.parts[w] = added([self.parts[w], part] if w in self.parts else [part])

    def summary(self, backend: Backend) -> dict[str, Any]:
        """Return the figures of the whole run, JSON values; ``backend`` is the one that ran it."""
        start = self.first_start_ps
        return {
            "intervals": self.intervals,
            "simulated_ns": self.end_ps / 1000,
            "finished_flows": self.flows,
            "unfinished_flows": self.active,
            **({"unlimited_flows": self.unlimited} if self.unlimited else {}),
            "makespan_ns": None if start is None else (self.last_finish_ps - start) / 1000,
            "mean_utility": self.utility_sum / self.busy if self.busy else None,
            "all_ports_pause_ns": self.all_ports_pause_ps / 1000,
            "host_ports_pause_ns": self.host_ports_pause_ps / 1000,
            "switch_ports_pause_ns": self.switch_ports_pause_ps / 1000,
            "pfc_frames_to_hosts": self.host_pfc,
            "pfc_frames_to_switches": self.switch_pfc,
            "device_pause_ns": self.device_pause_ps / 1000,
            "max_queue_bytes": self.largest_queue,
            **self.counts,
            "slowdown": self.every.summary(backend),
            **({} if self.bins is None else {"slowdown_by_paper": self.bins.summary()}),
            "rtt_p99_ns": _known(self.rtt.percentile(0, 99) / 1000),
            "jain_index": _known(self.fairness.index),
            "collectives": [
                {**s, **summary_of_parts([p for w, p in self.parts.items() if w == s["workload"]])}
                for s in self.rounds.summary()
            ],
            "applications": self.tally.summary(),
            "slowdown_finished": self.slowdown.summary(),
        }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
