"""Statistics of the leaderboard: how good an entry is over many scenarios, and which differ.

An entry's scores are an array of shape (scenarios, repetitions): ``S`` of every run, larger is
better, 0 is the default setting. Repetitions of one scenario are exchangeable, scenarios are not,
so every interval resamples within a scenario. The aggregates are those of Agarwal et al., "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 2021).

Whether an entry does worse where its authors have not been, so that it was learned by heart, is
tested by Student's t on scenario means (:func:`lower_on_same`, :func:`lower_elsewhere`): scenarios
are what varies, so a few repetitions on fresh traffic are enough, and three scenarios rarely
convict.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.confidence import student_interval, student_quantile
from dcqcn_gym.core.errors import ConfigError, MissingExtraError

FloatArray = npt.NDArray[np.float64]

RESAMPLES = 2000
SEED = 20240002
CONFIDENCE = 0.95
SIGNIFICANCE = 0.05
TRIM = 0.25


@dataclass(frozen=True)
class Aggregate:
    """A figure over all runs of an entry with its bootstrap interval."""

    value: float
    low: float
    high: float


def iqm(scores: FloatArray) -> float:
    """Return the interquartile mean: the mean of the middle half of all runs.

    A quarter of the runs, rounded down, is left out at either end.
    """
    runs = np.sort(_checked(scores), axis=None)
    cut = int(TRIM * runs.size)
    return float(np.mean(runs[cut : runs.size - cut]))


def aggregate(scores: FloatArray, figure: Callable[[FloatArray], float] = iqm) -> Aggregate:
    """Return a figure of an entry and its percentile interval by stratified bootstrap.

    With one repetition nothing can be resampled: the interval is the value itself.
    """
    scores = _checked(scores)
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([SEED])))
    scenarios, repetitions = scores.shape
    entries = np.arange(scenarios)[:, np.newaxis]
    found = [
        figure(scores[entries, random.integers(repetitions, size=scores.shape)])
        for _ in range(RESAMPLES)
    ]
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(found, [tail, 100 - tail])
    return Aggregate(figure(scores), float(low), float(high))


def improvement(ours: FloatArray, theirs: FloatArray) -> float:
    """Return the probability that a run of ours beats one of theirs, ties counted half.

    Mean over the scenarios of the Mann-Whitney statistic; 0.5 means no difference.
    """
    ours, theirs = _checked(ours), _checked(theirs)
    _same_scenarios(ours, theirs)
    better = ours[:, :, np.newaxis] > theirs[:, np.newaxis, :]
    equal = ours[:, :, np.newaxis] == theirs[:, np.newaxis, :]
    return float(np.mean(better + 0.5 * equal))


def profile(scores: FloatArray, levels: Sequence[float]) -> FloatArray:
    """Return the share of runs with a score above each level: the performance profile."""
    runs = _checked(scores).ravel()
    return np.array([np.mean(runs > level) for level in levels])


def scenario_p_value(ours: FloatArray, theirs: FloatArray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test on paired scenario means.

    1.0 if no scenario differs. Raises MissingExtraError without scipy.
    """
    need_scipy()
    from scipy.stats import wilcoxon  # type: ignore[import-untyped]

    ours, theirs = _checked(ours), _checked(theirs)
    _same_scenarios(ours, theirs)
    difference = ours.mean(axis=1) - theirs.mean(axis=1)
    if not np.any(difference):
        return 1.0
    return float(wilcoxon(difference).pvalue)


def need_scipy() -> None:
    """Raise MissingExtraError without scipy: before hours of runs, not after them."""
    try:
        importlib.import_module("scipy.stats")
    except ImportError:
        raise MissingExtraError("ranking entries", "leaderboard") from None


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number: Holm's step-down procedure."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def rank_groups(entries: Mapping[str, FloatArray]) -> dict[str, int]:
    """Return the rank group of every entry, best first: within one, entries cannot be told apart.

    Entries are ordered by their interquartile mean. A group begins with its best entry and
    holds those after it that do not differ from it (Wilcoxon on scenario means, Holm over the
    entries after it).
    """
    left = sorted(entries, key=lambda name: (-iqm(entries[name]), name))
    found: dict[str, int] = {}
    while left:
        best, *others = left
        p_values = holm([scenario_p_value(entries[best], entries[other]) for other in others])
        rank_group = len(found) + 1
        left = others
        found[best] = rank_group
        for other, p in zip(others, p_values, strict=True):
            if p < SIGNIFICANCE:
                break
            found[other] = rank_group
            left = left[1:]
    return found


def lower_on_same(before: FloatArray, now: FloatArray) -> bool:
    """Return whether scores on the same scenarios (scenarios, repetitions) have fallen.

    True if the paired interval of the difference lies below 0.
    """
    change = now.mean(axis=1) - before.mean(axis=1)
    return change.size > 1 and student_interval(change, CONFIDENCE)[1] < 0


def lower_elsewhere(before: FloatArray, now: FloatArray) -> bool:
    """Return whether scores on other scenarios of the same generator are lower.

    True if Welch's interval of the difference of the means lies below 0; the degrees of freedom
    (Welch 1947, equation 28) are rounded down.
    """
    means = [one.mean(axis=1) for one in (before, now)]
    if min(one.size for one in means) < 2:
        return False
    errors = [float(np.var(one, ddof=1)) / one.size for one in means]
    both = errors[0] + errors[1]
    difference = float(means[1].mean() - means[0].mean())
    if not both:
        return difference < 0
    shares = [e**2 / (one.size - 1) for e, one in zip(errors, means, strict=True)]
    freedom = max(1, math.floor(both**2 / (shares[0] + shares[1])))
    half = student_quantile(0.5 + CONFIDENCE / 2, freedom) * math.sqrt(both)
    return difference + half < 0


def _checked(scores: FloatArray) -> FloatArray:
    if scores.ndim != 2 or not scores.size:
        raise ConfigError(f"scores of shape {scores.shape}; expected (scenarios, repetitions)")
    if not np.all(np.isfinite(scores)):
        raise ConfigError("scores hold a number that is not finite; every run needs its score")
    return scores


def _same_scenarios(ours: FloatArray, theirs: FloatArray) -> None:
    if len(ours) != len(theirs):
        raise ConfigError(f"{len(ours)} scenarios against {len(theirs)}; entries pair by scenario")
