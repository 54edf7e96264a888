"""The leaderboard's statistics against constants that rliable, scipy and statsmodels gave once.

``make_ranking_constants.py`` made ``ranking.json`` and says with what.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dcqcn_gym.benchmarks.leaderboard.ranking import (
    aggregate,
    holm,
    improvement,
    iqm,
    profile,
    rank_groups,
    scenario_p_value,
)
from dcqcn_gym.core.errors import ConfigError

FloatArray = npt.NDArray[np.float64]


MADE = json.loads(Path(__file__).with_name("ranking.json").read_text(encoding="utf-8"))


def scores(k: int, repetitions: int = 10, scenarios: int = 24) -> FloatArray:
    """Return scores that no generator of random numbers made."""
    s, r = np.arange(float(scenarios))[:, None], np.arange(float(repetitions))[None, :]
    made = np.sin(3.1 * s + 1.7 * r * (k + 1) + k) / 5 + 0.05 * k * np.cos(s) + 0.03 * k
    return np.asarray(made, dtype=np.float64)


A, B = scores(0), scores(2)


def test_interquartile_mean() -> None:
    # rliable 1.2.0, metrics.aggregate_iqm
    assert iqm(A) == pytest.approx(0.0002288899378634306, abs=1e-15)
    assert iqm(B) == pytest.approx(0.05791289437425919, abs=1e-15)
    assert iqm(np.array([[9.0, 1.0], [2.0, 3.0], [4.0, -50.0]])) == 2.5


def test_probability_of_improvement() -> None:
    # rliable 1.2.0, metrics.probability_of_improvement
    assert improvement(B, A) == pytest.approx(0.5991666666666666, abs=1e-15)
    assert improvement(A, B) == pytest.approx(1 - 0.5991666666666666, abs=1e-15)
    assert improvement(A, A) == 0.5


def test_performance_profile() -> None:
    # rliable 1.2.0, library.create_performance_profile
    expected = [0.94166667, 0.825, 0.57916667, 0.44583333, 0.1875]
    assert profile(B, [-0.2, -0.1, 0, 0.1, 0.2]) == pytest.approx(expected, abs=1e-8)


def test_stratified_bootstrap() -> None:
    # rliable 1.2.0, library.get_interval_estimates with 50,000 resamples, which has other draws
    for entries, low, high in (
        (A, -0.027973740234872195, 0.02839040818929324),
        (B, 0.03357384858559399, 0.08242734699406357),
    ):
        found = aggregate(entries)
        assert found.value == iqm(entries)
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.002)
        assert aggregate(entries) == found


@pytest.mark.parametrize("case", MADE["cases"], ids=lambda c: f"{c['scenarios']} scenarios")
def test_every_figure_is_rliable_s_and_scipy_s(case: dict[str, Any]) -> None:
    shape = case["repetitions"], case["scenarios"]
    entries = {str(k): scores(k, *shape) for k in range(4)}
    for name, entry in entries.items():
        found = aggregate(entry)
        assert found.value == pytest.approx(case["iqm"][name], abs=1e-15)
        # other draws: a bound of a bootstrap wanders by some per cent of the width
        low, high = case["interval"][name]
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * (high - low))
        assert profile(entry, MADE["levels"]) == pytest.approx(case["profile"][name], abs=1e-12)
    for pair, expected in case["improvement"].items():
        a, b = pair.split(",")
        assert improvement(entries[a], entries[b]) == pytest.approx(expected, abs=1e-12)
    p_values = [scenario_p_value(entries[k], entries["0"]) for k in ("1", "2", "3")]
    assert p_values == pytest.approx(case["wilcoxon"], rel=1e-12)
    assert holm(p_values) == pytest.approx(case["holm"], rel=1e-12)


def test_one_repetition_has_no_width() -> None:
    found = aggregate(A[:, :1])
    assert found.low == found.value == found.high


def test_wilcoxon_on_scenario_means() -> None:
    # scipy 1.17.1, stats.wilcoxon
    assert scenario_p_value(B, A) == pytest.approx(0.002814650535583496, rel=1e-12)
    assert scenario_p_value(A, A) == 1.0


def test_holm_by_hand() -> None:
    # 4 x .01, then 3 x .02 = .06, then 2 x .03 = .06, then the larger of .06 and .2
    assert holm([0.03, 0.01, 0.2, 0.02]) == pytest.approx([0.06, 0.04, 0.2, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_rank_groups() -> None:
    good, same, bad = A + 0.5, A + 0.5 + 1e-9 * np.cos(np.arange(24.0))[:, None], A - 0.5
    found = rank_groups({"bad": bad, "good": good, "same": same, "worse": bad - 1})
    assert found["good"] == found["same"] == 1
    assert (found["bad"], found["worse"]) == (3, 4)
    assert list(found)[:2] in (["good", "same"], ["same", "good"])


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
        iqm(value)


def test_entries_of_different_suites_do_not_pair() -> None:
    with pytest.raises(ConfigError, match="24 scenarios against 12"):
        improvement(A, A[:12])
