"""The utility of one monitor interval: PARALEON (ICNP'24) eq. 1 and its three terms.

``U = w_TP * O_TP + w_RTT * O_RTT + w_PFC * O_PFC``, every term in 0..1 and larger is better. The
environment's reward, the tuners, the report and the leaderboard all call the functions below on
an :class:`~dcqcn_gym.core.interval.JudgedFigures`, so that a utility always means the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FloatArray, JudgedFigures

IDLE_UTILITY = 1.0
"""Utility of an interval without traffic: finishing early never costs reward."""

PfcOver = Literal["all", "paused"]
RttBase = Literal["two-way", "one-way"]


@dataclass(frozen=True)
class Terms:
    """The three terms of the utility, each in 0..1; larger is better."""

    tp: float
    """O_TP: mean utilisation of the active host uplinks."""
    rtt: float
    """O_RTT: mean over host pairs of base RTT / mean RTT."""
    pfc: float
    """O_PFC: 1 - share of the interval that devices spent paused."""


class UtilityWeights(StrictModel):
    """Weights of throughput, round trip and pause in the utility (PARALEON eq. 1); sum 1."""

    tp: float = Field(ge=0, le=1)
    rtt: float = Field(ge=0, le=1)
    pfc: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        total = self.tp + self.rtt + self.pfc
        if abs(total - 1.0) > 1e-9:
            raise ConfigError(f"tp + rtt + pfc = {total:g}; expected weights that add up to 1")
        return self


class Rules(Protocol):
    """What an interval is judged by; every scenario holds it."""

    @property
    def weights(self) -> UtilityWeights:
        """The weights of eq. 1."""

    @property
    def active_share(self) -> float:
        """From which share of its rate on a host link counts as active."""

    @property
    def pfc_over(self) -> PfcOver:
        """Over which devices the paused time is averaged."""

    @property
    def rtt_base(self) -> RttBase:
        """What a round trip is divided into."""


@dataclass(frozen=True)
class Judgement:
    """What one interval is worth: its terms, their weighted sum (1 if idle), and ``idle``."""

    terms: Terms
    utility: float
    idle: bool


UNKNOWN_TERM = 1.0
"""A term of figures that a backend cannot know: the same for every setting, so it ranks none."""

IDLE_TERMS = Terms(tp=1.0, rtt=1.0, pfc=1.0)
"""Terms of an interval without traffic."""


def is_idle(report: JudgedFigures) -> bool:
    """Return True if nothing was sent and no flow waits to send.

    An interval in which flows exist but no packet left is not idle: it is a strangled network,
    and its utility is computed like any other.
    """
    return report.active_flows == 0 and report.unlimited_flows == 0 and report.idle


def o_tp(report: JudgedFigures, active_share: float = 0.05) -> float:
    """Return O_TP in 0..1: mean utilisation of the active host uplinks.

    A host link is active if it carried at least ``active_share`` of its rate in data during the
    interval. If none is, every link that carried data counts, so that a network in which all
    senders are strangled is not mistaken for a good one; 0 if no link carried data.
    """
    capacity_bytes = report.host_rate_bps * (report.duration_s / 8.0)
    share = np.minimum(
        np.divide(
            report.host_tx_bytes,
            capacity_bytes,
            out=np.zeros(len(capacity_bytes)),
            where=capacity_bytes > 0,
        ),
        1.0,
    )
    for counted in (share >= active_share, share > 0):
        chosen = share[counted]
        if chosen.size:
            return _mean(chosen)
    return 0.0


def _mean(values: FloatArray) -> float:
    """Return ``values.mean()``, to the bit, in half the time."""
    return float(np.add.reduce(values) / values.size)


def o_rtt(report: JudgedFigures, rtt_base: RttBase = "two-way") -> float:
    """Return O_RTT in 0..1: base RTT over mean RTT per host pair, then mean over the pairs.

    The base is the report's, twice links times smallest link delay; with ``rtt_base="one-way"``
    half of it, as PARALEON (ICNP'24, eq. 1) prints it, so that the term ends at 0.5.
    Without any sample it is 1 if data was sent (no evidence of queueing yet) and 0 if flows
    waited and nothing was sent.
    """
    sampled = report.rtt_count > 0
    counts = report.rtt_count[sampled]
    if not counts.size:
        return 0.0 if report.idle else 1.0
    mean_ps = report.rtt_sum_ps[sampled] / counts
    ratio = report.rtt_base_ps[sampled] / np.maximum(mean_ps, 1.0)
    if rtt_base == "one-way":
        ratio = ratio / 2
    return _mean(np.minimum(ratio, 1.0))


def o_pfc(report: JudgedFigures, pfc_over: PfcOver = "all") -> float:
    """Return O_PFC in 0..1: 1 - mean paused share of the interval.

    ``pfc_over="all"`` takes the mean over all hosts and switches; ``"paused"`` takes it over the
    ports that were paused at all, as the code of PARALEON's authors does.
    """
    if report.duration_ps <= 0 or not len(report.port_pause_ps):
        return 1.0
    pause = report.paused_ps if pfc_over == "all" else report.port_pause_ps
    if pfc_over == "paused":
        pause = pause[pause > 0]
        if not len(pause):
            return 1.0
    share = _mean(pause) / report.duration_ps
    return min(max(1.0 - share, 0.0), 1.0)


def terms(
    report: JudgedFigures,
    active_share: float = 0.05,
    pfc_over: PfcOver = "all",
    rtt_base: RttBase = "two-way",
) -> Terms:
    """Return the three terms of one interval; all 1 if it is idle (:func:`is_idle`).

    A term whose figures the backend cannot know is :data:`UNKNOWN_TERM`.
    """
    if is_idle(report):
        return IDLE_TERMS
    unknown = report.unknown
    return Terms(
        tp=UNKNOWN_TERM if "host_tx_bytes" in unknown else o_tp(report, active_share),
        rtt=UNKNOWN_TERM if "rtt_sum_ps" in unknown else o_rtt(report, rtt_base),
        pfc=UNKNOWN_TERM if "port_pause_ps" in unknown else o_pfc(report, pfc_over),
    )


def utility(value: Terms, weights: UtilityWeights) -> float:
    """Return ``w_TP * O_TP + w_RTT * O_RTT + w_PFC * O_PFC`` (PARALEON eq. 1).

    Raises :class:`ConfigError` if a term is not a finite number in 0..1, which only a broken
    backend can cause.
    """
    for name, term in (("tp", value.tp), ("rtt", value.rtt), ("pfc", value.pfc)):
        if not 0.0 <= term <= 1.0:  # also catches NaN
            raise ConfigError(f"utility term {name} = {term!r} is not a number in 0..1")
    return weights.tp * value.tp + weights.rtt * value.rtt + weights.pfc * value.pfc


def judge(report: JudgedFigures, rules: Rules) -> Judgement:
    """Return the terms and the utility of one interval; an idle one has :data:`IDLE_UTILITY`.

    Raises ConfigError as :func:`utility` does.
    """
    if is_idle(report):
        return Judgement(IDLE_TERMS, IDLE_UTILITY, True)
    value = terms(report, rules.active_share, rules.pfc_over, rules.rtt_base)
    return Judgement(value, utility(value, rules.weights), False)
