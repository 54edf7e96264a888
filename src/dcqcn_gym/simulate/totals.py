"""Running sums over the intervals of a simulation; memory does not grow with simulated time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dcqcn_gym.core.applications import ApplicationTracker, Tally
from dcqcn_gym.core.collectives import RoundTracker
from dcqcn_gym.core.fairness import Fairness
from dcqcn_gym.core.interval import fields_shown
from dcqcn_gym.core.measured import Interval
from dcqcn_gym.core.statistics import ALL_SIZES, SlowdownCounter, slowdowns

__all__ = ["COUNTED", "Totals"]

COUNTED = tuple(fields_shown("sum"))
"""Figures of reports that a summary has as sums over all intervals."""


@dataclass
class Totals:
    """Running sums over the intervals."""

    rounds: RoundTracker
    applications: ApplicationTracker
    tally: Tally = field(default_factory=Tally)
    slowdown: SlowdownCounter = field(default_factory=SlowdownCounter)
    bins: SlowdownCounter | None = None
    """Slowdowns by the sizes of a paper, where they are wanted."""
    rtt: SlowdownCounter = field(default_factory=lambda: SlowdownCounter([ALL_SIZES]))
    """Mean round trips of the intervals in ps, which it counts just as well."""
    fairness: Fairness = field(default_factory=Fairness)
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
