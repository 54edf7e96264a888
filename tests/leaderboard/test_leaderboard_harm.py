"""Harm as an amount, and ranks that answer one question; cases worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dcqcn_gym.benchmarks.leaderboard import ranking
from dcqcn_gym.benchmarks.leaderboard.bootstrap import (
    groups,
    hierarchical,
    ranked_in_tiers,
    resampled,
)
from dcqcn_gym.benchmarks.leaderboard.harm import (
    ALLOWANCE,
    FIGURES,
    MOST,
    Chance,
    certain,
    changes,
    harm_of,
    harms_of,
    tier_of,
)
from dcqcn_gym.core.score import CLASSES, ClassFigures
from dcqcn_gym.core.verdict import Summary

NAMES = [figure.name for figure in FIGURES]
P99 = NAMES.index("99th percentile of slowdown of mice")
NONE = Chance(np.zeros((1, len(FIGURES))))


def run(mice: int = 100, p99: float = 10.0, goodput: float = 1e9, pause: float = 0.0) -> Summary:
    classes = [ClassFigures(of, 100, 2.0, 20.0) for of in CLASSES]
    classes[0] = ClassFigures(CLASSES[0], mice, 3.0, p99)
    return Summary(classes, 0.0, goodput, 1e-5, pause, 0.5, [])


def changed(*values: float) -> np.ndarray:
    """Return changes of one scenario whose p99 of mice is so many times the default's."""
    found = np.zeros((1, len(FIGURES), len(values)))
    found[0, P99] = np.log(values)
    return found


def test_within_the_limit_is_nothing_and_beyond_it_is_an_amount() -> None:
    assert harm_of(changed(1.2, 1.2), NONE).share == 0
    harm = harm_of(changed(1.25**3, 1.25**3), NONE)
    assert harm.names(["a"]) == {"a": {NAMES[P99]: pytest.approx(2.0)}}
    assert (harm.share, harm.tier) == (1.0, "severe")


def test_its_own_disasters_protect_nobody() -> None:
    """Nine runs 40 % longer: one worse run makes the amount larger, whatever the spread."""
    even, worse = changed(*[1.4] * 9), changed(*[1.4] * 8, 30.0)
    assert 0 < harm_of(even, NONE).worst < harm_of(worse, NONE).worst
    assert harm_of(worse, NONE).worst_run > 10


@pytest.mark.parametrize("bad", [1, 2])
def test_disasters_in_a_few_of_five_runs_have_a_tier(bad: int) -> None:
    """Runs 10 limits worse on three of 42 scenarios: their own spread absolves nothing."""
    sd = np.array([0.4 * figure.limit for figure in FIGURES])
    chance = Chance(np.tile(sd, (42, 1)))
    found = np.random.default_rng(2).normal(size=(42, len(FIGURES), 5)) * sd[:, np.newaxis]
    assert harm_of(found, chance).tier == "none"
    found[:3, P99, :bad] += 10 * FIGURES[P99].limit
    assert harm_of(found, chance).tier != "none"


def test_a_worse_run_makes_what_is_certain_larger() -> None:
    chance = Chance(np.full((1, len(FIGURES)), 0.1))
    found = [certain(changed(*[1.6] * 4, worst), chance).max() for worst in (1.6, 3.0, 30.0)]
    assert 0 < found[0] < found[1] < found[2]


def test_a_noisier_entry_than_the_references_without_harm_is_seldom_severe() -> None:
    """Twice their spread: by the references' chance alone most of 60 were severe."""
    limits = np.array([figure.limit for figure in FIGURES])[:, np.newaxis]
    random = np.random.default_rng(3)
    chance = Chance(np.tile(limits[:, 0], (42, 1)))
    found = [
        harm_of(2 * limits * random.normal(size=(42, len(FIGURES), 5)), chance) for _ in range(60)
    ]
    assert sum(tier_of(harm.share, harm.worst) == "severe" for harm in found) >= 40
    assert sum(harm.tier == "severe" for harm in found) <= 6


def test_half_as_long_again_on_three_scenarios_is_seen_and_on_ten_severe() -> None:
    limits = np.array([figure.limit for figure in FIGURES])[:, np.newaxis]
    random = np.random.default_rng(4)
    chance = Chance(np.tile(0.5 * limits[:, 0], (42, 1)))
    tiers: dict[int, list[str]] = {3: [], 10: []}
    for places, found in tiers.items():
        for _ in range(60):
            one = 0.5 * limits * random.normal(size=(42, len(FIGURES), 5))
            one[:places, P99] += math.log(1.5)
            found.append(harm_of(one, chance).tier)
    assert tiers[3].count("none") <= 12
    assert tiers[10].count("severe") >= 48


def test_chance_is_that_of_the_reference_entries_alone() -> None:
    random = np.random.default_rng(1)
    noisy = {f"r{i}": np.array([random.normal(0, 0.3, (len(FIGURES), 5))]) for i in range(9)}
    mine = changed(*[1.3] * 5)
    strangers = {f"x{i}": 9 * noisy["r0"] for i in range(50)}
    alone = harms_of({**noisy, "mine": mine}, list(noisy))["mine"]
    assert alone.worst == 0  # 1.3 is within an allowance of 0.13 of the limit
    assert alone.open_cells > 0
    among = harms_of({**noisy, **strangers, "mine": mine}, list(noisy))["mine"]
    assert np.array_equal(alone.beyond, among.beyond)
    assert harms_of({"mine": mine}, [])["mine"].worst > 0


def test_more_runs_neither_convict_nor_protect() -> None:
    """The allowance shrinks with the number, and what is left tends to what is there."""
    chance = Chance(np.full((1, len(FIGURES)), 0.2))
    found = [harm_of(changed(*[2.0] * n), chance).worst for n in (1, 2, 5, 50)]
    assert found == sorted(found)
    truth = math.log(2) / math.log(1.25) - 1
    allowances = [ALLOWANCE * 0.2 / math.sqrt(n) / math.log(1.25) for n in (1, 2, 5, 50)]
    assert found == pytest.approx([truth - allowance for allowance in allowances])


def test_few_flows_of_the_entry_silence_nothing() -> None:
    """The default's number of flows decides, over all repetitions."""
    default, starved = run(mice=12), run(mice=1, p99=100.0)
    few = changes([(starved, default)] * 2)
    assert np.isnan(few[P99]).all()
    enough = changes([(starved, default)] * 3)
    assert enough[P99] == pytest.approx([math.log(10)] * 3)
    gone = changes([(replace(starved, classes=[ClassFigures(c, 0, math.nan, math.nan)
                                               for c in CLASSES]), run())])  # fmt: skip
    assert harm_of(gone[np.newaxis], NONE).worst == MOST


def test_goodput_and_pause_have_their_signs() -> None:
    worse = changes([(run(goodput=0.9e9, pause=0.05), run())])
    names = harm_of(worse[np.newaxis], NONE).names(["a"])["a"]
    assert set(names) == {"goodput", "pause"}
    assert names["pause"] == pytest.approx(4.0)
    better = changes([(run(goodput=2e9), run(pause=0.5))])
    assert harm_of(better[np.newaxis], NONE).share == 0


@pytest.mark.parametrize(
    ("share", "worst", "tier"),
    [(0, 0, "none"), (0.1, 1.0, "mild"), (0.11, 0.1, "severe"), (0.02, 1.1, "severe")],
)
def test_tiers(share: float, worst: float, tier: str) -> None:
    assert tier_of(share, worst) == tier


# ranks


@pytest.fixture(autouse=True)
def _draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "RESAMPLES", 400)


def scores(mean: float, seed: int, between: float = 0.1, within: float = 0.1) -> np.ndarray:
    random = np.random.default_rng(seed)
    scenario = mean + random.normal(0, between, (20, 1))
    return scenario + random.normal(0, within, (20, 4))


def test_the_interval_holds_what_scenarios_do() -> None:
    """The standard error of a mean over 20 scenarios: that of the scenarios' means, mostly."""
    given = scores(0.5, 1, between=0.4)
    wide = hierarchical(given)
    error = given.mean(axis=1).std(ddof=1) / math.sqrt(20)
    assert (wide.high - wide.low) / 2 == pytest.approx(1.96 * error, rel=0.2)


def test_order_interval_and_groups_are_of_one_figure() -> None:
    base = scores(0.0, 2)
    found = groups({"a": base + 0.3, "b": base + 0.299, "c": base, "d": scores(0.1, 3, 0.5)})
    assert found["a"] == 1
    assert found["c"] > 1
    assert next(iter(found)) == "a"


def test_equal_entries_share_a_rank_and_a_paired_gain_does_not() -> None:
    base = scores(0.2, 4, between=1.0)
    assert groups({"a": base, "b": base.copy()}) == {"a": 1, "b": 1}
    assert groups({"a": base + 0.001, "b": base}) == {"a": 1, "b": 2}


def test_the_same_draws_for_all_entries() -> None:
    one = scores(0, 5)
    assert np.allclose(resampled(one + 1) - resampled(one), 1)


def test_ranks_begin_anew_in_each_tier_and_few_scenarios_have_none() -> None:
    base = scores(0, 6)
    some = {"a": base, "b": base + 5, "c": base + 1}
    assert ranked_in_tiers(some, {"a": "none", "b": "severe", "c": "none"}) == {
        "c": 1, "a": 2, "b": 1
    }  # fmt: skip
    assert ranked_in_tiers({"a": base[:11]}, {"a": "none"}) == {}


# names, scenarios
