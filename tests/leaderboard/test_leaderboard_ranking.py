"""The probability of improvement against constants that rliable gave once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dcqcn_gym.benchmarks.leaderboard.ranking import (
    improvement,
)
from dcqcn_gym.core.errors import ConfigError

FloatArray = npt.NDArray[np.float64]


def scores(k: int, repetitions: int = 10, scenarios: int = 24) -> FloatArray:
    """Return scores that no generator of random numbers made."""
    s, r = np.arange(float(scenarios))[:, None], np.arange(float(repetitions))[None, :]
    made = np.sin(3.1 * s + 1.7 * r * (k + 1) + k) / 5 + 0.05 * k * np.cos(s) + 0.03 * k
    return np.asarray(made, dtype=np.float64)


A, B = scores(0), scores(2)


def test_probability_of_improvement() -> None:
    # rliable 1.2.0, metrics.probability_of_improvement
    assert improvement(B, A) == pytest.approx(0.5991666666666666, abs=1e-15)
    assert improvement(A, B) == pytest.approx(1 - 0.5991666666666666, abs=1e-15)
    assert improvement(A, A) == 0.5


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(4), r"shape \(4,\); expected \(scenarios, repetitions\)"),
        (np.zeros((0, 3)), "shape"),
        (np.array([[1.0, np.nan]]), "not finite"),
    ],
)
def test_bad_scores(value: FloatArray, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        improvement(value, value)


def test_entries_of_different_suites_do_not_pair() -> None:
    with pytest.raises(ConfigError, match="24 scenarios against 12"):
        improvement(A, A[:12])
