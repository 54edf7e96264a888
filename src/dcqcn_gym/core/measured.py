"""One monitor interval with the setting in force, its utility and its terms.

The environment and ``simulate`` make an :class:`Interval` with :func:`measure`; the main path, the
log, ``info`` and the result files read it. Figures that follow from a report alone are computed in
one place, :func:`figures_of`, so that a name means the same number everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dcqcn_gym.core.applications import Done
from dcqcn_gym.core.collectives import CollectiveRound
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import IntervalReport, JudgedFigures, Observation
from dcqcn_gym.core.overhead import WireCost
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.utility import IDLE_TERMS, Rules, Terms, judge


@dataclass(frozen=True)
class Figures:
    """What follows from one report. A rate or mean of nothing is 0, unless it can be None."""

    throughput_bps: float
    """Payload delivered in order, all hosts, bit/s."""
    sent_bps: float
    """Data on the wire, all host uplinks, bit/s."""
    rtt_mean_ps: float | None
    """Mean over all RTT samples; None without one."""
    rtt_base_ps: float | None
    """Mean base RTT of the same samples; None without one."""
    device_pause_ps: float
    """Paused time of the mean device: over the ports of each, then over hosts and switches."""
    worst_pause_ps: float | None
    """Paused time of the device that was paused most in the interval; None where unknown."""
    max_queue_bytes: int
    """Longest queue of any port."""
    finished_flows: int
    """Flows that finished."""


def rtt_mean_ps(report: JudgedFigures) -> float | None:
    """Return the mean over all RTT samples; None without one."""
    samples = int(report.rtt_count.sum())
    return int(report.rtt_sum_ps.sum()) / samples if samples else None


def mean_device_pause_ps(report: JudgedFigures) -> float:
    """Return the paused time of the mean device, in ps; 0 without devices."""
    return float(report.paused_ps.mean()) if len(report.paused_ps) else 0.0


def worst_pause_ps(report: JudgedFigures) -> float | None:
    """Return the paused time of the device that was paused most, in ps; None where unknown."""
    if "port_pause_ps" in report.unknown or not len(report.paused_ps):
        return None
    return float(report.paused_ps.max())


def figures_of(report: IntervalReport) -> Figures:
    """Return what follows from a report alone; an unknown figure counts as nothing seen."""
    seconds = report.duration_s
    samples = int(report.rtt_count.sum())
    base_ps = float((report.rtt_count * report.rtt_base_ps).sum())
    sent_bits = 8.0 * float(report.host_tx_bytes.sum())
    return Figures(
        throughput_bps=report.delivered_bytes * 8 / seconds if seconds > 0 else 0.0,
        sent_bps=sent_bits / seconds if seconds > 0 else 0.0,
        rtt_mean_ps=rtt_mean_ps(report),
        rtt_base_ps=base_ps / samples if samples else None,
        device_pause_ps=mean_device_pause_ps(report),
        worst_pause_ps=worst_pause_ps(report),
        max_queue_bytes=int(report.port_max_queue_bytes.max(initial=0)),
        finished_flows=len(report.finished.src),
    )


@dataclass(frozen=True, eq=False)
class Interval:
    """One monitor interval: what was measured, under which setting, and what it is worth."""

    number: int
    """Intervals since the start of the run, this one included; 0 in a warm-up."""
    report: IntervalReport
    """Everything that the backend measured."""
    setting: DeviceSetting
    """The setting in force, or one per group of devices."""
    terms: Terms
    """O_TP, O_RTT and O_PFC, each in 0..1."""
    utility: float
    """Their weighted sum, in 0..1; 1 if the interval is idle."""
    idle: bool
    """True if nothing was sent and no flow waits to send."""
    rounds: tuple[CollectiveRound, ...] = ()
    """Rounds of collectives that finished; of the last interval of a warm-up: in all of it."""
    applications: tuple[Done, ...] = ()
    """What storage and parameter servers got done in this interval."""
    cost: WireCost = field(default_factory=WireCost)
    """Bytes that monitoring and tuning would put on the wire."""
    observation: Observation = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """The float32 vector of the environment; of shape (0,) where none is made."""

    @cached_property
    def figures(self) -> Figures:
        """What follows from the report alone."""
        return figures_of(self.report)


def measure(
    report: IntervalReport,
    rules: Rules,
    *,
    number: int,
    setting: DeviceSetting,
    rounds: Sequence[CollectiveRound] = (),
    applications: Sequence[Done] = (),
    cost: WireCost | None = None,
    observe: Callable[[IntervalReport, Terms], Observation] | None = None,
) -> Interval:
    """Judge a report by ``rules`` (a scenario) and return the interval.

    ``observe`` makes the observation from the report and its terms. Raises ConfigError if a term
    is not a number in 0..1, which only a broken backend can cause.
    """
    judged = judge(report, rules)
    view = {} if observe is None else {"observation": observe(report, judged.terms)}
    return Interval(
        number=number,
        report=report,
        setting=setting,
        terms=judged.terms,
        utility=judged.utility,
        idle=judged.idle,
        rounds=tuple(rounds),
        applications=tuple(applications),
        cost=WireCost() if cost is None else cost,
        **view,
    )


def mean_terms(terms: Sequence[Terms]) -> Terms:
    """Return the mean of each term; all 1 without any, as in an idle interval."""
    if not terms:
        return IDLE_TERMS
    return Terms(
        tp=mean([t.tp for t in terms]),
        rtt=mean([t.rtt for t in terms]),
        pfc=mean([t.pfc for t in terms]),
    )
