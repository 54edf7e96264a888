"""One bootstrap gives intervals, ranks and findings; cases worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from dcqcn_gym.benchmarks.leaderboard import bootstrap
from dcqcn_gym.benchmarks.leaderboard.bootstrap import fallen, hierarchical, ranks, resampled
from dcqcn_gym.benchmarks.leaderboard.categories import divisions
from dcqcn_gym.benchmarks.leaderboard.verify import Verifier
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs import campaign

FloatArray = npt.NDArray[np.float64]


@pytest.fixture(autouse=True)
def _draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "RESAMPLES", 400)


def scores(mean: float, seed: int, between: float = 0.1, within: float = 0.1) -> FloatArray:
    random = np.random.default_rng(seed)
    scenario = mean + random.normal(0, between, (20, 1))
    return np.asarray(scenario + random.normal(0, within, (20, 4)))


def test_the_interval_holds_what_scenarios_do() -> None:
    """The standard error of a mean over 20 scenarios: that of the scenarios' means, mostly."""
    given = scores(0.5, 1, between=0.4)
    wide = hierarchical(given)
    error = given.mean(axis=1).std(ddof=1) / math.sqrt(20)
    assert (wide.high - wide.low) / 2 == pytest.approx(1.96 * error, rel=0.2)


def test_order_interval_and_ranks_are_of_one_figure() -> None:
    base = scores(0.0, 2)
    found = ranks({"a": base + 0.3, "b": base + 0.299, "c": base, "d": scores(0.1, 3, 0.5)})
    assert found["a"] == 1
    assert found["c"] > 1
    assert next(iter(found)) == "a"


def test_equal_entries_share_a_rank_and_a_paired_gain_does_not() -> None:
    base = scores(0.2, 4, between=1.0)
    assert ranks({"a": base, "b": base.copy()}) == {"a": 1, "b": 1}
    assert ranks({"a": base + 0.001, "b": base}) == {"a": 1, "b": 2}


def test_a_gap_that_one_draw_in_twenty_explains_ends_a_rank() -> None:
    """Differences scatter by 1 over 25 scenarios: a gap of 0.2 is chance, one of 1 is not."""
    scatter = np.random.default_rng(1).normal(size=(25, 1))
    scatter = (scatter - scatter.mean()) / scatter.std()
    base = np.zeros((25, 1))
    assert ranks({"a": base + 0.2 + scatter, "b": base}) == {"a": 1, "b": 1}
    assert ranks({"a": base + 1.0 + scatter, "b": base}) == {"a": 1, "b": 2}


def test_what_shares_a_rank_overlaps() -> None:
    """Among 30 entries that are noise, and some that are not."""
    entries = {f"e{i:02d}": scores(0.01 * i, 50 + i, 0.3, 0.2) for i in range(30)}
    found = ranks(entries)
    figure = {name: hierarchical(one) for name, one in entries.items()}
    assert 1 < len(set(found.values())) < 30
    for name, rank in found.items():
        best = next(one for one in found if found[one] == rank)
        assert figure[name].overlaps(figure[best])


def test_the_same_draws_for_all_entries() -> None:
    one = scores(0, 5)
    assert np.allclose(resampled(one + 1) - resampled(one), 1)


def test_few_scenarios_have_no_ranks_and_divisions_are_ranked_apart() -> None:
    assert ranks({"a": scores(0, 6)[:11]}) == {}
    categories = {"a": "static", "b": "scheme", "c": "online", "d": "oracle", "e": "simulating"}
    assert divisions(categories) == [["a", "c"], ["b"], ["e"]]


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
        hierarchical(value)


@pytest.mark.parametrize(
    ("change", "lower"),
    [([-1.0, -2.0, -3.0, -2.0], True), ([-1.0, 2.0, -3.0, -2.0], False), ([1.0, 2.0], False),
     ([-5.0], False)],
)  # fmt: skip
def test_scores_have_fallen_where_the_whole_interval_is_below_0(
    change: list[float], lower: bool
) -> None:
    before = np.zeros((len(change), 2))
    now = np.repeat(np.array(change)[:, np.newaxis], 3, axis=1)  # another number of repetitions
    assert fallen(before, now) is lower


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
