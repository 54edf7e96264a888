"""R, the one number: what an entry gains less the price of its harm, run by run, in logarithms.

A run's gain is S (:func:`gain`), its price what its figures are beyond the guardrails
(:data:`GUARDRAILS`), and ``R = S - price``. Both come from that run, the default's on the same
traffic, and that of the default with a floor. R of an entry is a mean over runs, so that

- what makes a run worse in any figure never raises R,
- a mixture of two entries has the mixture of their R, never more than the better one,
- a scenario that is listed twice changes nothing but its own weight.

Every figure is a *level*, a logarithm that is larger where things are worse. Slowdowns up to an
acceptable one share its level. A change is counted against the default, or against the default with
a floor under its rate on scenarios where that one gains :data:`BETTER` or more and the level is
worse: where the default starves an incast its mice are undisturbed, and whoever repairs it shall
not be convicted. Beyond limit and allowance it is paid in full; the allowance is what the default's
own figure varies from traffic to traffic, :data:`ALLOWANCE` times its standard deviation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.sums import count, mean, total
from dcqcn_gym.core.verdict import FEWEST_FLOWS, LIMITS, WORST_PAUSE, Summary

FLOOR = "default-min-rate"
"""The default with a floor under its rate, the other reference of guardrails, where it ran."""
BETTER = -math.log(0.95)
ALLOWANCE = 2.0
PRIOR = 3
"""Degrees of freedom of what all scenarios tell of a figure's variance."""
MOST = math.log(100)
"""The largest loss of a class, and the level of a share of 99 % and more."""
FEWER = 0.05
"""By how much the mean over all flows may be worse before nothing counts as gained."""
STEEP = 5.0
"""How fast what may be gained falls, as the mean over all flows becomes worse."""
SEEN = 0.02
"""From this price on, mean over the runs of a scenario, harm is listed."""


class Gain(NamedTuple):
    """S of a run, and the gain of each class of sizes; NaN for one that the default has not."""

    score: float
    classes: tuple[float, ...]


def gain(ours: Summary, default: Summary) -> Gain:
    """Return what one run gains over the default's on the same traffic; 0: nothing to compare.

    Open loops count the mean of two: the gain of the classes, all of the same weight, each by its
    mean slowdown and its 99th percentile; and that of the mean over all flows. Where that mean is
    worse by :data:`FEWER` or more the gain is not above 0. Closed loops count the mean and the 99th
    percentile of their rounds. A class or rounds that the default has and ours has not lose most.
    """
    classes = tuple(_class_gain(ours, default, i) for i in range(len(CLASSES)))
    parts = []
    known = [value for value in classes if not math.isnan(value)]
    if known:
        flows = _flow_gain(ours, default)
        both = (mean(known) + flows) / 2
        parts.append(min(both, max(0.0, STEEP * (flows + FEWER))))
    if default.rounds_ps:
        pairs = zip(ours.rounds_ps, default.rounds_ps, strict=False)
        times = [math.log(theirs / own) for own, theirs in pairs]
        parts.append(mean(times) if times else -MOST)
    return Gain(mean(parts) if parts else 0.0, classes)


def _class_gain(ours: Summary, default: Summary, i: int) -> float:
    own, theirs = ours.classes[i], default.classes[i]
    if not theirs.count:
        return math.nan
    if not own.count:
        return -MOST
    value = (math.log(theirs.mean / own.mean) + math.log(theirs.p99 / own.p99)) / 2
    return max(-MOST, value)


def _flow_gain(ours: Summary, default: Summary) -> float:
    """Return the gain of the mean slowdown over all flows, by the default's number in a class."""
    pairs = [(a, b) for a, b in zip(ours.classes, default.classes, strict=True) if b.count]
    theirs = total(b.count * b.mean for _, b in pairs)
    worst = math.exp(MOST)
    own = total(b.count * (a.mean if a.count else worst * b.mean) for a, b in pairs)
    return max(-MOST, math.log(theirs / own))


@dataclass(frozen=True)
class Guardrail:
    """A figure and the rise of its level that costs nothing; ``level`` is NaN where unknown.

    Beyond it counts ``weight`` times. Slowdowns up to the ``acceptable`` one have its level.
    """

    name: str
    limit: float
    level: Callable[[Summary], float]
    weight: float = 1.0
    flow_class: int | None = None
    acceptable: float = 0.0


def _slowdown(i: int, what: str, acceptable: float) -> Callable[[Summary], float]:
    def level(run: Summary) -> float:
        value = float(getattr(run.classes[i], what)) if run.classes[i].count else math.nan
        return math.log(max(value, acceptable)) if math.isfinite(value) else math.nan

    return level


def _lost(share: float) -> float:
    """Return the level of a share of time or of flows that is lost: the log of what is left."""
    return -math.log(max(1 - share, math.exp(-MOST))) if math.isfinite(share) else math.nan


def _guardrails() -> tuple[Guardrail, ...]:
    slower = math.log1p(LIMITS["class"])
    slowdowns = (("mean", "mean slowdown", 1.5), ("p99", "99th percentile of slowdown", 3.0))
    return (
        *(
            Guardrail(
                f"{words} of {of.name}", slower, _slowdown(i, what, acceptable), 0.5, i, acceptable
            )
            for i, of in enumerate(CLASSES)
            for what, words, acceptable in slowdowns
        ),
        Guardrail("unfinished flows", LIMITS["unfinished"], lambda r: _lost(r.unfinished_share)),
        Guardrail(
            "goodput", -math.log1p(-LIMITS["goodput"]),
            lambda r: -math.log(r.goodput_bps) if r.goodput_bps > 0 else math.nan,
        ),
        Guardrail("pause", LIMITS["pause"], lambda r: _lost(r.pause_share), 0.5),
        Guardrail(WORST_PAUSE, 5 * LIMITS["pause"], lambda r: _lost(r.worst_pause), 0.5),
    )  # fmt: skip


GUARDRAILS = _guardrails()
"""Slowdowns of each class, whose acceptable mean is 1.5 and 99th percentile 3; flows not finished;
goodput; and pause, that of the mean device and that of the worst. A class counts as it would in S,
were it the only one; its two figures share the weight, as do the two of pause."""
_LIMITS = np.array([one.limit for one in GUARDRAILS])
_WEIGHTS = np.array([one.weight for one in GUARDRAILS])


def levels(runs: Sequence[Summary]) -> FloatArray:
    """Return the levels of one scenario's runs, of shape (guardrails, repetitions)."""
    return np.array([[one.level(run) for run in runs] for one in GUARDRAILS], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class References:
    """What the runs of one scenario are measured against: the default, and perhaps the floor.

    ``level`` and ``allowance`` have the shapes (guardrails, repetitions) and (guardrails,); a level
    is NaN where the default has too few flows of a class over all repetitions.
    """

    default: Sequence[Summary]
    level: FloatArray
    allowance: FloatArray

    def gains(self, ours: Sequence[Summary]) -> list[Gain]:
        """Return what each run gains."""
        return [gain(a, b) for a, b in zip(ours, self.default, strict=False)]

    def changes(self, ours: Sequence[Summary]) -> FloatArray:
        """Return how much worse the levels are, of shape (guardrails, repetitions).

        NaN: no guardrail. A figure that ours has no more is worse by :data:`MOST`.
        """
        own, known = levels(ours), self.level[:, : len(ours)]
        change = np.where(np.isnan(own), MOST, own - known)
        return np.asarray(np.where(np.isnan(known), np.nan, np.minimum(change, MOST)))

    def prices(self, changes: FloatArray) -> FloatArray:
        """Return what is to be paid beyond limit and allowance; 0 without a guardrail."""
        free = (_LIMITS + self.allowance)[:, np.newaxis]
        return np.asarray(np.fmax(changes - free, 0) * _WEIGHTS[:, np.newaxis])


def references(
    defaults: Sequence[Sequence[Summary]], floors: Sequence[Sequence[Summary]] = ()
) -> list[References]:
    """Return the references of every scenario; ``floors`` are runs on the default's traffic."""
    found = [_known_levels(runs) for runs in defaults]
    allowance = ALLOWANCE * np.sqrt(_variance(found))
    for level, default, floor in zip(found, defaults, floors, strict=False):
        gained = [gain(a, b).score for a, b in zip(floor, default, strict=False)]
        if gained and float(np.mean(gained)) >= BETTER:
            level_of_default = level[:, : len(gained)].copy()
            laxer = np.fmax(level_of_default, levels(floor))
            level[:, : len(gained)] = np.where(np.isnan(level_of_default), np.nan, laxer)
    return [References(*one) for one in zip(defaults, found, allowance, strict=True)]


def _known_levels(default: Sequence[Summary]) -> FloatArray:
    level = levels(default)
    for k, one in enumerate(GUARDRAILS):
        i = one.flow_class
        if i is not None and count(run.classes[i].count for run in default) < FEWEST_FLOWS:
            level[k] = np.nan
    return level


def _variance(found: Sequence[FloatArray]) -> FloatArray:
    """Return how levels vary from traffic to traffic, of shape (scenarios, guardrails).

    A few repetitions tell little of it, so that of the median scenario counts as :data:`PRIOR` more
    degrees of freedom. 0 for a single repetition.
    """
    free = found[0].shape[1] - 1
    if not free:
        return np.zeros((len(found), len(GUARDRAILS)))
    own = np.array([level.var(axis=1, ddof=1) for level in found])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a guardrail that no scenario has
        median = np.nan_to_num(np.nanmedian(own, axis=0))
    return np.asarray((PRIOR * median + free * np.nan_to_num(own)) / (PRIOR + free))


@dataclass(frozen=True, eq=False)
class Harm:
    """Amounts of an entry's harm: ``price`` and ``change`` of shape (scenarios, guardrails).

    Means over the repetitions; a change is NaN where there is no guardrail.
    """

    price: FloatArray
    change: FloatArray

    @property
    def by_scenario(self) -> FloatArray:
        """The price of each scenario, in the logarithms of S."""
        return np.asarray(self.price.sum(axis=1))

    @property
    def share(self) -> float:
        """Share of the scenarios whose price is seen."""
        return float(np.mean(self.by_scenario >= SEEN))

    def beyond(self, scenarios: Sequence[str]) -> Mapping[str, Mapping[str, float]]:
        """Return by scenario and guardrail the changes that make up a price that is seen."""
        return {
            name: {
                GUARDRAILS[k].name: float(change[k])
                for k in np.argsort(-price, kind="stable")
                if price[k] > 0
            }
            for name, price, change in zip(scenarios, self.price, self.change, strict=True)
            if price.sum() >= SEEN
        }
