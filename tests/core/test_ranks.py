"""Ranks, with and without equal figures."""

from __future__ import annotations

import pytest

from dcqcn_gym.core.statistics import places, rank_agreement


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
