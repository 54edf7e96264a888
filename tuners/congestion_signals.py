"""What Keeper looks at: pauses, round trips, queues and bytes, as counters and probes show them.

Sizes of flows come from the monitor's bins alone (sketch, NetFlow or counters), and only to say
whether small messages can wait behind an incast. docs/measured/keeper.md; ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dcqcn_gym.core.interval import FlowSizeDistribution, IntervalReport
from dcqcn_gym.core.sums import mean

SMALL_BINS = 6
"""Bins of flows below 64 KiB."""
SMALL_SHARE = 0.25
"""Share of active flows below 64 KiB from which on small messages count."""
LONGEST_ROUND, SEEN_ROUNDS = 10, 3
"""Intervals of the longest round that is looked for, and how many of them have to be seen."""
ROUND_CORRELATION = 0.6


@dataclass(frozen=True)
class Signs:
    """What one interval showed; NaN where a backend cannot know it or nothing was sent."""

    pause: float
    """Share of the interval that the mean device was paused."""
    delay: float
    """Mean round trip over the base one, of the mean pair of hosts beside the busiest receiver."""
    queue: float
    """The same of the pairs to the busiest receiver; NaN if no small message can wait there."""
    peak_us: float
    """Longest queue that any port had (a watermark), in us of its line; NaN as above."""
    busy: float
    """Pairs of hosts with round trips in the interval: how many talk to each other."""
    sent: float
    """Bytes that arrived."""


def signs_of(report: IntervalReport) -> Signs:
    """Return the signs of a report."""
    unknown, nan = report.unknown, math.nan
    pause = nan
    if "port_pause_ps" not in unknown and report.duration_ps > 0:
        pause = float(report.paused_ps.mean()) / report.duration_ps
    sampled = report.rtt_count > 0
    delay = queue = peak_us = nan
    small = _small_messages(report.fsd)
    running = report.port_rate_bps > 0
    if small and "port_max_queue_bytes" not in unknown and running.any():
        queues = report.port_max_queue_bytes[running] * 8e6 / report.port_rate_bps[running]
        peak_us = float(queues.max())
    if "rtt_sum_ps" not in unknown and sampled.any():
        to = report.rtt_dst[sampled]
        trips = report.rtt_sum_ps[sampled] / report.rtt_count[sampled] / report.rtt_base_ps[sampled]
        beside = to != np.bincount(to).argmax()  # an incast's own queue is no bystander's
        if beside.any():
            delay = float(trips[beside].mean())
        if small and not beside.all():
            queue = float(trips[~beside].mean())
    busy, sent = float(sampled.sum()), float(report.delivered_bytes)
    return Signs(pause, delay, queue, peak_us, busy, sent)


def _small_messages(fsd: FlowSizeDistribution) -> bool:
    """Return whether small messages may be there: not if the monitor saw that they are few."""
    total = float(fsd.bins.sum())
    return not fsd.known or total <= 0 or float(fsd.bins[:SMALL_BINS].sum()) > SMALL_SHARE * total


def mean_known(values: Sequence[float]) -> float:
    """Return the mean of the values that are known; NaN without any."""
    known = [value for value in values if math.isfinite(value)]
    return mean(known) if known else math.nan


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean of the known values above 0; NaN without any."""
    return math.exp(mean_known([math.log(v) if v > 0 else math.nan for v in values]))


def round_intervals(sent: Sequence[float]) -> int:
    """Return the intervals of a round of a closed loop, by what arrived in each; 1 without rounds.

    It is the shortest shift at which the series repeats itself, and several of them must be seen.
    """
    values = np.asarray(sent, dtype=np.float64)
    values = values - values.mean() if values.size else values
    for shift in range(2, min(LONGEST_ROUND, values.size // SEEN_ROUNDS) + 1):
        ahead, behind = values[shift:], values[:-shift]
        scale = math.sqrt(float(ahead @ ahead) * float(behind @ behind))
        if scale > 0 and float(ahead @ behind) > ROUND_CORRELATION * scale:
            return shift
    return 1


class Watch:
    """Sums of what lies above a level, which forget as soon as it lies below: CUSUM."""

    def __init__(self, levels: Mapping[str, float], limits: Mapping[str, float]) -> None:
        """``levels`` and ``limits`` of sums, by the name of a sign."""
        self.levels, self._limits = dict(levels), dict(limits)
        self.forget()

    def vindicated(self, alarm: str, shown: Sequence[Signs]) -> None:
        """Let what was a false alarm need twice as much, and everything half more than it is."""
        if alarm:
            self.levels[alarm] *= 2.0
        for name, value in ((n, float(getattr(s, n))) for s in shown for n in self.levels):
            if math.isfinite(value):
                self.levels[name] = max(self.levels[name], 1.5 * value)

    def forget(self) -> None:
        """Begin the sums anew."""
        self._sums = dict.fromkeys(self._limits, 0.0)

    def add(self, signs: Signs) -> str:
        """Return which sign is an alarm now, "" for none."""
        for name, level in self.levels.items():
            value = float(getattr(signs, name))
            if not math.isfinite(value) or (name != "pause" and value <= 0):
                continue
            more = value - level if name == "pause" else math.log(value / level)
            most = self._limits[name] / 2  # so that no single interval is an alarm
            self._sums[name] = max(0.0, self._sums[name] + min(more, most))
        return next((name for name, total in self._sums.items() if total > self._limits[name]), "")
