"""Statistics of the leaderboard: how good an entry is over many scenarios, and which differ.

An entry's scores are an array of shape (scenarios, repetitions): ``S`` of every run, larger is
better, 0 is the default setting. The probability of improvement is that of Agarwal et al., "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 2021).

Whether an entry does worse on fresh traffic, so that it knows the old one by heart, is tested by
Student's t on scenario means (:func:`lower_on_same`): scenarios are what varies, so a few
repetitions are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.confidence import student_interval
from dcqcn_gym.core.errors import ConfigError

FloatArray = npt.NDArray[np.float64]

RESAMPLES = 2000
SEED = 20240002
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Aggregate:
    """A figure over all runs of an entry with its bootstrap interval."""

    value: float
    low: float
    high: float


def improvement(ours: FloatArray, theirs: FloatArray) -> float:
    """Return the probability that a run of ours beats one of theirs, ties counted half.

    Mean over the scenarios of the Mann-Whitney statistic; 0.5 means no difference.
    """
    ours, theirs = _checked(ours), _checked(theirs)
    _same_scenarios(ours, theirs)
    better = ours[:, :, np.newaxis] > theirs[:, np.newaxis, :]
    equal = ours[:, :, np.newaxis] == theirs[:, np.newaxis, :]
    return float(np.mean(better + 0.5 * equal))


def lower_on_same(before: FloatArray, now: FloatArray) -> bool:
    """Return whether scores on the same scenarios (scenarios, repetitions) have fallen.

    True if the paired interval of the difference lies below 0.
    """
    change = now.mean(axis=1) - before.mean(axis=1)
    return change.size > 1 and student_interval(change, CONFIDENCE)[1] < 0


def _checked(scores: FloatArray) -> FloatArray:
    if scores.ndim != 2 or not scores.size:
        raise ConfigError(f"scores of shape {scores.shape}; expected (scenarios, repetitions)")
    if not np.all(np.isfinite(scores)):
        raise ConfigError("scores hold a number that is not finite; every run needs its score")
    return scores


def _same_scenarios(ours: FloatArray, theirs: FloatArray) -> None:
    if len(ours) != len(theirs):
        raise ConfigError(f"{len(ours)} scenarios against {len(theirs)}; entries pair by scenario")
