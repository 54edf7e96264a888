"""Statistics against values worked out by hand and against known distributions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.statistics import (
    ALL_SIZES,
    SIZE_BINS,
    estimate,
    paired_change,
    slowdown_by_seed,
    slowdown_by_size,
    slowdowns,
)


def test_slowdown_statistics_by_hand() -> None:
    sizes = np.array([500, 999, 1000, 20_000_000])
    slow = np.array([1.0, 3.0, 5.0, 7.0])
    rows = {row.bin.label: row for row in slowdown_by_size(sizes, slow)}
    assert rows["below 1 KB"].count == 2
    assert rows["below 1 KB"].mean == 2.0
    assert rows["below 1 KB"].p99 == pytest.approx(1 + 2 * 0.99)
    assert rows["1–10 KB"].p50 == 5.0
    assert rows["10 MB and above"].value("p99.9") == 7.0
    assert rows["all sizes"].count == 4
    assert rows["100 KB–1 MB"].count == 0
    assert math.isnan(rows["100 KB–1 MB"].mean)


def test_bins_cover_every_size_once() -> None:
    parts = SIZE_BINS[:-1]
    assert parts[0].low == 0
    assert parts[-1].high == math.inf
    assert all(a.high == b.low for a, b in itertools.pairwise(parts))


def test_slowdown_needs_an_ideal_time() -> None:
    with pytest.raises(ConfigError, match="above 0"):
        slowdowns(np.array([1]), np.array([0]))


def test_student_interval_by_table() -> None:
    # t(0.975, 4) = 2.776; 1..5 has a standard error of sqrt(2.5/5)
    e = estimate([1, 2, 3, 4, 5])
    assert e.mean == 3
    assert e.high == pytest.approx(3 + 2.7764 * math.sqrt(0.5), abs=1e-3)
    assert e.n == 5


def test_one_value_has_no_interval() -> None:
    e = estimate([2.0])
    assert (e.mean, e.low, e.high, e.sign) == (2.0, None, None, 0)


def test_no_values_and_equal_values() -> None:
    assert estimate([]).n == 0
    e = estimate([0.25, 0.25, 0.25])  # no spread is no evidence of a narrow interval
    assert (e.mean, e.low, e.high, e.constant, e.sign) == (0.25, None, None, True, 0)


def test_intervals_hold_the_mean_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(7)
    for n, trials in ((5, 400), (25, 100)):
        held = 0
        for _ in range(trials):
            e = estimate(rng.normal(1.0, 0.3, n))
            assert e.low is not None
            assert e.high is not None
            held += e.low <= 1.0 <= e.high
        assert held / trials > 0.88


def test_same_values_give_the_same_bootstrap() -> None:
    values = np.random.default_rng(3).normal(size=30)
    assert estimate(values) == estimate(values)


def test_paired_change_sees_what_an_unpaired_one_would_not() -> None:
    rng = np.random.default_rng(1)
    traffic = rng.normal(0.8, 0.1, 5)
    gain = paired_change(traffic + 0.01 + rng.normal(0, 0.001, 5), traffic)
    assert gain.sign == 1
    assert gain.mean == pytest.approx(0.01, abs=0.002)


def test_relative_change_is_a_geometric_mean() -> None:
    change = paired_change([2.0, 8.0], [4.0, 4.0], relative=True)
    assert change.mean == pytest.approx(0.0)
    assert paired_change([3.0], [4.0], relative=True).mean == pytest.approx(-0.25)


@pytest.mark.filterwarnings("error")
def test_a_pair_that_falls_to_nothing_has_no_interval() -> None:
    """Its ratio is 0, which has no logarithm: the sign is known, how sure it is is not."""
    fallen = paired_change([0.0, 0.0, 4.0], [2.0, 3.0, 5.0], relative=True)
    assert (fallen.mean, fallen.low, fallen.high, fallen.constant) == (-1.0, None, None, False)
    assert fallen.n == 3
    risen = paired_change([2.0, 3.0, 4.0], [0.0, 0.0, 5.0], relative=True)
    assert (risen.mean, risen.low, risen.high) == (math.inf, None, None)
    gone = paired_change([0.0, 0.0], [2.0, 3.0], relative=True)
    assert (gone.mean, gone.constant) == (-1.0, True)
    both = paired_change([0.0, 2.0], [2.0, 0.0], relative=True)
    assert math.isnan(both.mean)
    assert not both.known
    assert paired_change([0.0, 2.0, 2.0], [0.0, 4.0, 8.0], relative=True).n == 2


def test_pairs_must_match() -> None:
    with pytest.raises(ConfigError, match="got 2 and 1"):
        paired_change([1.0, 2.0], [1.0])


def test_seeds_without_a_flow_are_left_out() -> None:
    runs = [(np.array([10]), np.array([2.0])), (np.zeros(0, dtype=np.int64), np.zeros(0))]
    values = slowdown_by_seed(runs, ALL_SIZES, "mean")
    assert values[0] == 2.0
    assert math.isnan(values[1])
    assert estimate(values).n == 1
    skewed = [(np.full(4, 10), np.array([1.0, 1.0, 1.0, 5.0]))]
    assert slowdown_by_seed(skewed, ALL_SIZES, "p50").tolist() == [1.0]
