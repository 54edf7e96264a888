"""Rules behind tiers and ranks, each at its limit, by cases worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.benchmarks.leaderboard.bootstrap import groups
from dcqcn_gym.benchmarks.leaderboard.harm import ALLOWANCE, FIGURES, Chance, certain
from dcqcn_gym.benchmarks.leaderboard.ranking import lower_on_same
from dcqcn_gym.benchmarks.leaderboard.verify import Verifier
from dcqcn_gym.runs import campaign


def test_an_entry_s_own_noise_counts_up_to_16_times_the_references() -> None:
    """Runs 3 apart where references differ by 0.1: the error is that of 17/2 times 0.01 over 5."""
    sd, limit = 0.1, FIGURES[0].limit
    runs = np.zeros((1, len(FIGURES), 5))
    runs[0, 0] = [3.0, 6.0, 9.0, 12.0, 15.0]
    error = math.sqrt((1 + 16) * sd**2 / 2 / 5)
    least = max(limit + ALLOWANCE * error, 4.5 * error)
    found = certain(runs / 9, Chance(np.full((1, len(FIGURES)), sd)))[0, 0]
    assert found == pytest.approx((1.0 - least) / limit)


def test_a_gap_that_one_draw_in_twenty_explains_ends_a_rank() -> None:
    """Differences scatter by 1 over 25 scenarios: a gap of 0.2 is chance, one of 1 is not."""
    scatter = np.random.default_rng(1).normal(size=(25, 1))
    scatter = (scatter - scatter.mean()) / scatter.std()
    base = np.zeros((25, 1))
    assert groups({"a": base + 0.2 + scatter, "b": base}) == {"a": 1, "b": 1}
    assert groups({"a": base + 1.0 + scatter, "b": base}) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("change", "fallen"),
    [([-1.0, -2.0, -3.0, -2.0], True), ([-1.0, 2.0, -3.0, -2.0], False), ([1.0, 2.0], False)],
)
def test_scores_have_fallen_where_the_whole_interval_is_below_0(
    change: list[float], fallen: bool
) -> None:
    before = np.zeros((len(change), 2))
    assert lower_on_same(before, before + np.array(change)[:, np.newaxis]) is fallen


def test_runs_are_repeated_in_an_order_that_the_salt_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    orders: list[list[int]] = []
    monkeypatch.setattr(campaign, "carry_out", lambda jobs, **_: orders.append(list(jobs)))
    for salt in ("one", "one", "two"):
        Verifier(tmp_path, "2026-01-01", salt).carry_out(range(50))
    first, again, other = orders
    assert first == again != other
    assert sorted(first) == sorted(other) == list(range(50))
    assert list(range(50)) not in orders
