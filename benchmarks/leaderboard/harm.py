"""Harm as an amount: how far beyond its limits an entry goes, scenario by scenario.

The limits are those of :data:`dcqcn_gym.core.verdict.LIMITS`. A *cell* is one figure on one
scenario. Of a cell counts the mean, over the repetitions, of the change against the default on the
same traffic: the logarithm of the ratio for slowdowns and goodput, the difference for pause and
unfinished flows. The *exceedance* is what is left of it beyond the limit after an allowance for
chance, as a multiple of the limit; 0 within it (a soft threshold, the shrinkage of the lasso).

The allowance of these amounts is :data:`ALLOWANCE` standard errors of a change, and these come from
reference entries alone: the median over them of the variance between their repetitions. So an
entry's own disasters are no noise that protects it, and one lucky run convicts nobody.

The tier counts only what chance does not make among hundreds of cells, of an entry that is noisier
than the references too: see :func:`certain`. Its constants were chosen by simulation alone: on
test-v2 cells where an entry varies more than twice as much as the references, 6 %, made 73 % of
what was false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import FEWEST_FLOWS, LIMITS, Summary

FloatArray = npt.NDArray[np.float64]
Tier: TypeAlias = Literal["none", "mild", "severe"]
TIERS: tuple[Tier, ...] = ("none", "mild", "severe")
"""none: no scenario beyond a limit for certain; mild: at most :data:`MILD_SHARE` of them, none by
more than :data:`MILD_WORST` limits; severe: more."""

ALLOWANCE = 2.0
CERTAIN = 4.5
"""Standard errors above no change at all from which a cell is no chance among all cells."""
NOISIEST = 16.0
"""The largest variance of an entry's own that counts, in variances of the references."""
MILD_SHARE = 0.1
MILD_WORST = 1.0
MOST = 20.0
"""The largest exceedance, and that of a figure which an entry no longer has but the default does.
A factor of 86 in slowdowns."""
_SEEN = 0.8416
"""The normal quantile of 80 %."""


@dataclass(frozen=True)
class Limited:
    """A figure with a limit; ``of`` takes it from a run, ``ratio``: compared by its logarithm."""

    name: str
    limit: float
    of: Callable[[Summary], float]
    ratio: bool = True
    sign: float = 1.0
    flow_class: int | None = None

    def change(self, ours: Summary, default: Summary) -> float:
        """Return how much worse ours is; NaN where the default has no such figure."""
        a, b = self.of(ours), self.of(default)
        known = math.isfinite(b) and (b > 0 or not self.ratio)
        if not known:
            return math.nan
        if not math.isfinite(a) or (self.ratio and a <= 0):
            return self.limit * (1 + MOST)  # what the default still does, and this one does not
        return self.sign * (math.log(a / b) if self.ratio else a - b)


def _figures() -> tuple[Limited, ...]:
    found = []
    slower = math.log1p(LIMITS["class"])
    for i, flow_class in enumerate(CLASSES):
        for what, words in (("mean", "mean slowdown"), ("p99", "99th percentile of slowdown")):
            name = f"{words} of {flow_class.name}"
            found.append(Limited(name, slower, _class_figure(i, what), flow_class=i))
    return (
        *found,
        Limited("unfinished flows", LIMITS["unfinished"], lambda run: run.unfinished_share, False),
        Limited(
            "goodput", -math.log1p(-LIMITS["goodput"]), lambda run: run.goodput_bps, True, -1.0
        ),
        Limited("pause", LIMITS["pause"], lambda run: run.pause_share, False),
    )


def _class_figure(i: int, what: str) -> Callable[[Summary], float]:
    return lambda run: float(getattr(run.classes[i], what))


FIGURES = _figures()
_LIMITS = np.array([figure.limit for figure in FIGURES])


def changes(pairs: Sequence[tuple[Summary, Summary]]) -> FloatArray:
    """Return the changes of (ours, default) runs of one scenario, of shape (figures, repetitions).

    A figure of a class is NaN where the default has too few flows over all repetitions. The
    default's decide, which an entry cannot make fewer.
    """
    enough = [
        count(default.classes[i].count for _, default in pairs) >= FEWEST_FLOWS
        for i in range(len(CLASSES))
    ]
    return np.array([
        [figure.change(a, b) for a, b in pairs]
        if figure.flow_class is None or enough[figure.flow_class]
        else [math.nan] * len(pairs)
        for figure in FIGURES
    ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Chance:
    """What chance does to a change: ``sd`` of one repetition, of shape (scenarios, figures)."""

    sd: FloatArray

    @classmethod
    def of(cls, references: Sequence[FloatArray], shape: tuple[int, int]) -> Chance:
        """Return it from changes of reference entries, of shape (scenarios, figures, repetitions).

        A reference that never differs from the default says nothing. Without any, or with a single
        repetition, chance is unknown and counts as none.
        """
        with np.errstate(invalid="ignore"):
            found = [one.var(axis=2, ddof=1) for one in references if one.shape[2] > 1]
        if not found:
            return cls(np.zeros(shape))
        variances = np.array([np.where(one > 0, one, np.nan) for one in found])
        known = np.isfinite(variances).any(axis=0)
        median = np.zeros(shape)
        median[known] = np.nanmedian(variances[:, known], axis=0)
        return cls(np.sqrt(median))

    def error(self, repetitions: int) -> FloatArray:
        """Return the standard error of a cell's mean."""
        return np.asarray(self.sd / math.sqrt(repetitions))

    def seen(self, repetitions: int) -> FloatArray:
        """Return the change that is found beyond the limit four times in five."""
        return np.asarray(_LIMITS + (ALLOWANCE + _SEEN) * self.error(repetitions))


@dataclass(frozen=True, eq=False)
class Harm:
    """What an entry costs. ``beyond``, in limits, has the shape (scenarios, figures).

    NaN: the cell has no limit. ``certain`` is what of it is no chance. ``open_cells`` are within
    the limit, but two standard errors reach beyond it. ``worst_run`` is the largest exceedance of a
    single run, without an allowance.
    """

    beyond: FloatArray
    certain: FloatArray
    open_cells: int
    worst_run: float

    @property
    def by_scenario(self) -> FloatArray:
        """The worst exceedance of each scenario."""
        return np.asarray(np.nan_to_num(self.beyond).max(axis=1))

    @property
    def share(self) -> float:
        """Share of the scenarios that are beyond any limit."""
        return float(np.mean(self.by_scenario > 0))

    @property
    def worst(self) -> float:
        """The worst exceedance."""
        return float(self.by_scenario.max())

    @property
    def tier(self) -> Tier:
        """One of :data:`TIERS`."""
        worst = np.nan_to_num(self.certain).max(axis=1)
        return tier_of(float(np.mean(worst > 0)), float(worst.max()))

    @property
    def without_limit(self) -> int:
        """Cells that have no limit, for want of flows."""
        return int(np.isnan(self.beyond).sum())

    def names(self, scenarios: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return what is beyond its limit, by scenario and figure."""
        return {
            scenario: {FIGURES[k].name: float(line[k]) for k in np.flatnonzero(line > 0)}
            for scenario, line in zip(scenarios, np.nan_to_num(self.beyond), strict=True)
            if (line > 0).any()
        }


def tier_of(share: float, worst: float) -> Tier:
    """Return the tier of a share of scenarios certainly beyond a limit and the worst of them."""
    if share == 0:
        return "none"
    return "mild" if share <= MILD_SHARE and worst <= MILD_WORST else "severe"


def harm_of(change: FloatArray, chance: Chance) -> Harm:
    """Return the harm of changes of shape (scenarios, figures, repetitions)."""
    mean, error = change.mean(axis=2), chance.error(change.shape[2])
    beyond = np.clip((mean - ALLOWANCE * error) / _LIMITS - 1, 0, MOST)
    maybe = (mean + 2 * error > _LIMITS) & ~(beyond > 0)
    runs = np.nan_to_num(change / _LIMITS[:, np.newaxis] - 1).max(initial=0.0)
    return Harm(beyond, certain(change, chance), int(maybe.sum()), float(min(runs, MOST)))


def certain(change: FloatArray, chance: Chance) -> FloatArray:
    """Return what is beyond the limits for certain, in limits, of shape (scenarios, figures).

    The mean change must pass its limit by :data:`ALLOWANCE` standard errors and no change at all by
    :data:`CERTAIN`. The variance is half the references', half the entry's own, which counts
    between once and :data:`NOISIEST` times the references'. Its own is the mean square distance of
    the runs below the median from it: a bad run never protects, nor do two of five.
    """
    repetitions = change.shape[2]
    runs, known = np.sort(change, axis=2), chance.sd**2
    better, middle = runs[..., : (repetitions - 1) // 2], np.median(runs, axis=2, keepdims=True)
    own = ((better - middle) ** 2).mean(axis=2) if better.shape[2] else known
    error = np.sqrt((known + np.clip(own, known, NOISIEST * known)) / 2 / repetitions)
    least = np.maximum(_LIMITS + ALLOWANCE * error, CERTAIN * error)
    return np.asarray(np.clip((change.mean(axis=2) - least) / _LIMITS, 0, MOST))


def harms_of(change: Mapping[str, FloatArray], references: Sequence[str]) -> dict[str, Harm]:
    """Return the harm of every entry, with the chance that ``references`` show."""
    if not change:
        return {}
    chance = chance_of(change, references)
    return {name: harm_of(one, chance) for name, one in change.items()}


def chance_of(change: Mapping[str, FloatArray], references: Sequence[str]) -> Chance:
    """Return what chance does, from the reference entries among ``change``."""
    some = [change[name] for name in references if name in change]
    scenarios, figures, _ = next(iter(change.values())).shape
    return Chance.of(some, (scenarios, figures))
