"""Intervals of a mean, held to scipy's and to the tables."""

from __future__ import annotations

import numpy as np
import pytest

from dcqcn_gym.core.confidence import bca_interval, student_interval, student_quantile


def test_student_quantile_and_interval_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")  # here: it takes seconds
    for freedom in (1, 2, 3, 4, 5, 9, 18, 99, 1000):
        for probability in (0.6, 0.9, 0.95, 0.975, 0.995):
            expected = float(stats.t.ppf(probability, freedom))
            assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-9)
    x = np.array([0.2, 0.5, 0.1, 0.9, 0.4])
    low, high = stats.t.interval(0.95, 4, loc=x.mean(), scale=stats.sem(x))
    assert student_interval(x, 0.95) == pytest.approx((float(low), float(high)), rel=1e-9)


def test_bca_interval_is_scipys_but_for_the_resampling() -> None:
    stats = pytest.importorskip("scipy.stats")
    x = np.random.default_rng(5).lognormal(size=40)
    expected = stats.bootstrap(
        (x,), np.mean, method="BCa", n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    width = float(expected.high - expected.low)
    low, high = bca_interval(x, 0.95, seed=3)
    assert low == pytest.approx(float(expected.low), abs=0.04 * width)
    assert high == pytest.approx(float(expected.high), abs=0.04 * width)
    plain = x.mean() - float(expected.low), float(expected.high) - x.mean()
    assert plain[1] > plain[0], "this sample is skewed, or the test shows nothing"


def test_same_seed_same_interval() -> None:
    x = np.random.default_rng(5).normal(size=30)
    assert bca_interval(x, 0.95, 1) == bca_interval(x, 0.95, 1)
    assert bca_interval(x, 0.95, 1) != bca_interval(x, 0.95, 2)
