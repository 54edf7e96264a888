"""Rankings of tuners under several alphas of PFC."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.benchmarks.alpha_rows import ALPHAS, AlphaPlan, measure, places, rank_agreement


def test_places_and_their_agreement() -> None:
    assert places([0.5, 0.9, 0.7]) == [3, 1, 2]
    assert places([0.5, 0.9, 0.5]) == [2, 1, 2]
    assert rank_agreement([3, 2, 1], [30, 20, 10]) == pytest.approx(1.0)
    assert rank_agreement([3, 2, 1], [1, 2, 3]) == pytest.approx(-1.0)
    assert rank_agreement([1, 1], [2, 2]) == 1.0


def test_equal_figures_share_the_mean_of_their_ranks() -> None:
    """By hand: ranks 1.5 1.5 3.5 3.5 5 and 1 to 5; products 9, over the root of 9 times 10.

    With the better rank for both of a pair, 1 1 3 3 5, it would be 10 over the root of 11.2 times
    10: 0.945 instead of 0.949.
    """
    assert rank_agreement([9, 9, 5, 5, 1], [5, 4, 3, 2, 1]) == pytest.approx(9 / 90**0.5)
    assert rank_agreement([9, 5, 5, 5], [9, 5, 5, 5]) == pytest.approx(1.0)
    assert rank_agreement([5, 5, 5, 9], [9, 5, 5, 5]) == pytest.approx(-1 / 3)


def test_one_row_under_every_alpha(tmp_path: Path) -> None:
    plan = AlphaPlan(tmp_path, ("mini-storm",), ("default",), 1, 2)
    (table,) = measure(plan, 1)
    assert table.columns == ("mini-storm", "1/16", "1/8", "1/4", "1/2", "computed = 1")
    assert [row[0] for row in table.rows] == ["default", "same order as 1/8"]
    assert len(set(table.rows[0][1:])) > 2  # alpha matters in a pause storm
    assert plan.job("mini-storm", "1/2", "default", 7).spec.scenario.alpha == ALPHAS["1/2"]
