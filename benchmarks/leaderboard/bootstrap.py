"""One rule for intervals, ranks and findings: the hierarchical paired bootstrap.

The question is how good an entry is on scenarios like these, on traffic like this. Its figure is
the mean over scenarios of the mean over repetitions, of scores of shape (scenarios, repetitions).
The bootstrap draws scenarios, and repetitions within each, the same for all entries: they met the
same traffic, so differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from dcqcn_gym.core.confidence import student_quantile
from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FloatArray

RESAMPLES = 2000
SEED = 20240002
CONFIDENCE = 0.95
FEWEST_SCENARIOS = 12
"""With fewer there are no ranks: resampling so few scenarios says too little of others."""
TOO_FEW = f"too few scenarios for ranks: expected at least {FEWEST_SCENARIOS}"


class Score(StrictModel):
    """A figure over all runs of an entry with its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"

    def overlaps(self, other: Score) -> bool:
        """Tell whether two intervals share a value."""
        return self.low <= other.high and other.low <= self.high


def scenario_mean(scores: FloatArray) -> float:
    """Return the mean over scenarios of the mean over repetitions.

    Raises ConfigError for another shape, or a score that is not finite.
    """
    if scores.ndim != 2 or not scores.size:
        raise ConfigError(f"scores of shape {scores.shape}; expected (scenarios, repetitions)")
    if not np.all(np.isfinite(scores)):
        raise ConfigError("scores hold a number that is not finite; every run needs its score")
    return float(scores.mean(axis=1).mean())


def resampled(scores: FloatArray) -> FloatArray:
    """Return the figure of many draws of scenarios, and of repetitions within each.

    Arrays of one shape get the same draws, so that their differences are paired."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([SEED, *scores.shape])))
    scenarios, repetitions = scores.shape
    size = (RESAMPLES, scenarios)
    drawn = random.integers(scenarios, size=size)
    within = random.integers(repetitions, size=(*size, repetitions))
    return np.asarray(scores[drawn[:, :, np.newaxis], within].mean(axis=2).mean(axis=1))


def hierarchical(scores: FloatArray) -> Score:
    """Return the figure with its percentile interval."""
    return _interval(scenario_mean(scores), resampled(scores), len(scores))


def fallen(before: FloatArray, now: FloatArray) -> bool:
    """Return whether scores on the same scenarios are lower now: the interval is below 0.

    Scenarios are drawn together, the repetitions of each side by themselves: other traffic.
    """
    if len(before) < 2:
        return False
    width = max(before.shape[1], now.shape[1])
    pad = np.random.Generator(np.random.PCG64(SEED))
    sides = []
    for side in (before, now):
        within = pad.integers(side.shape[1], size=(RESAMPLES, len(side), width))
        sides.append(side[np.arange(len(side))[:, np.newaxis], within].mean(axis=2))
    change = sides[1] - sides[0]
    drawn = pad.integers(len(before), size=(RESAMPLES, len(before)))
    means = np.take_along_axis(change, drawn, axis=1).mean(axis=1)
    return _interval(float(change.mean()), means, len(before)).high < 0


def _interval(value: float, draws: FloatArray, scenarios: int) -> Score:
    """Return the percentile interval, wider by what Student's t asks for a few scenarios."""
    tail = 0.5 + CONFIDENCE / 2
    wider = (
        student_quantile(tail, scenarios - 1) / NormalDist().inv_cdf(tail) if scenarios > 1 else 1.0
    )
    wider *= math.sqrt(scenarios / max(1, scenarios - 1))
    low, high = np.percentile(draws, [100 * (1 - tail), 100 * tail]) - value
    return Score(value=value, low=value + wider * float(low), high=value + wider * float(high))


def ranks(entries: Mapping[str, FloatArray]) -> dict[str, int]:
    """Return the rank of every entry, best first; those of one rank cannot be told apart.

    A rank begins with its best entry and holds those after it whose difference from it may be 0
    (simultaneous 95 % intervals over all that come after it, by the largest of the studentized
    deviations: single-step, Westfall and Young 1993) and whose interval overlaps its own. All
    arrays have one shape. Empty with fewer than :data:`FEWEST_SCENARIOS` scenarios.
    """
    if any(len(one) < FEWEST_SCENARIOS for one in entries.values()):
        return {}
    draws = {name: resampled(scores) for name, scores in entries.items()}
    figure = {
        name: _interval(scenario_mean(one), draws[name], len(one)) for name, one in entries.items()
    }
    left = sorted(entries, key=lambda name: (-figure[name].value, name))
    found: dict[str, int] = {}
    while left:
        best, others = left[0], left[1:]
        apart = _apart(best, others, draws, figure)
        same = next((i for i, one in enumerate(apart) if one), len(others))
        place = len(found) + 1
        found |= dict.fromkeys([best, *others[:same]], place)
        left = others[same:]
    return found


def _apart(
    best: str, others: list[str], draws: Mapping[str, FloatArray], figure: Mapping[str, Score]
) -> list[bool]:
    """Return which of ``others`` differ from the best."""
    if not others:
        return []
    gap = np.array([figure[best].value - figure[name].value for name in others])
    drawn = np.array([draws[best] - draws[name] for name in others])
    spread = drawn.std(axis=1)
    safe = np.where(spread > 0, spread, np.inf)
    largest = np.abs((drawn - gap[:, np.newaxis]) / safe[:, np.newaxis]).max(axis=0)
    critical = float(np.percentile(largest, 100 * CONFIDENCE))
    return [
        bool(one) or not figure[best].overlaps(figure[name])
        for one, name in zip(gap > critical * spread, others, strict=True)
    ]
