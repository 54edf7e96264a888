"""Statistics of the ranking: order, intervals and rank groups all answer one question.

The question: how good is an entry on scenarios like these, on traffic like this? Its figure is the
mean over scenarios of the mean over repetitions. The bootstrap draws scenarios, and repetitions
within each, the same for all entries: they met the same traffic, so differences are paired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard import ranking
from dcqcn_gym.benchmarks.leaderboard.harm import TIERS, Tier
from dcqcn_gym.benchmarks.leaderboard.ranking import CONFIDENCE, SEED, Aggregate

FloatArray = npt.NDArray[np.float64]

FEWEST_SCENARIOS = 12
"""With fewer there are no ranks: resampling so few scenarios says too little of others."""


def scenario_mean(scores: FloatArray) -> float:
    """Return the mean over scenarios of the mean over repetitions."""
    return float(scores.mean(axis=1).mean())


def resampled(scores: FloatArray) -> FloatArray:
    """Return the figure of many draws of scenarios, and of repetitions within each.

    Arrays of one shape get the same draws, so that their differences are paired.
    """
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([SEED, *scores.shape])))
    scenarios, repetitions = scores.shape
    size = (ranking.RESAMPLES, scenarios)
    drawn = random.integers(scenarios, size=size)
    within = random.integers(repetitions, size=(*size, repetitions))
    return np.asarray(scores[drawn[:, :, np.newaxis], within].mean(axis=2).mean(axis=1))


def hierarchical(scores: FloatArray) -> Aggregate:
    """Return the figure with its percentile interval."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(resampled(scores), [tail, 100 - tail])
    return Aggregate(scenario_mean(scores), float(low), float(high))


def groups(entries: Mapping[str, FloatArray]) -> dict[str, int]:
    """Return the rank of every entry, best first; those of one rank cannot be told apart.

    A group begins with its best entry and holds those after it whose difference from it may be 0:
    simultaneous 95 % intervals over all that come after it, by the largest of the studentized
    deviations (single-step, Westfall and Young 1993). All arrays have one shape.
    """
    draws = {name: resampled(scores) for name, scores in entries.items()}
    value = {name: scenario_mean(scores) for name, scores in entries.items()}
    left = sorted(entries, key=lambda name: (-value[name], name))
    found: dict[str, int] = {}
    while left:
        best, *others = left
        same = _not_below(best, others, draws, value)
        place = len(found) + 1
        for name in [best, *others[:same]]:
            found[name] = place
        left = others[same:]
    return found


def _not_below(
    best: str, others: Sequence[str], draws: Mapping[str, FloatArray], value: Mapping[str, float]
) -> int:
    """Return how many of ``others``, from the first on, cannot be told from the best."""
    if not others:
        return 0
    gap = np.array([value[best] - value[name] for name in others])
    drawn = np.array([draws[best] - draws[name] for name in others])
    spread = drawn.std(axis=1)
    safe = np.where(spread > 0, spread, np.inf)
    largest = np.abs((drawn - gap[:, np.newaxis]) / safe[:, np.newaxis]).max(axis=0)
    critical = float(np.percentile(largest, 100 * CONFIDENCE))
    apart = gap > critical * spread
    return int(np.argmax(apart)) if apart.any() else len(others)


def ranked_in_tiers(scores: Mapping[str, FloatArray], tiers: Mapping[str, Tier]) -> dict[str, int]:
    """Return ranks, from 1 on within each tier of harm, the tiers in their order.

    Empty with fewer than :data:`FEWEST_SCENARIOS` scenarios.
    """
    if any(len(one) < FEWEST_SCENARIOS for one in scores.values()):
        return {}
    found: dict[str, int] = {}
    for tier in TIERS:
        found |= groups({name: one for name, one in scores.items() if tiers[name] == tier})
    return found
