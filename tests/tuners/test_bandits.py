"""The bandits' rules against steps worked out by hand; the library of arms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from outcomes import outcome

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.knobs import TUNED_KNOBS, Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.tuners import Tuner, TunerContext, make_tuner
from dcqcn_gym.tuners.bandits import DrUcb, ThompsonTuner, default_library

FSD = FlowSizeDistribution()


def started(name: str, rate: float = 100e9, **arguments: object) -> Tuner:
    tuner = make_tuner(name, arguments)
    context = TunerContext(KnobSpace(line_rate_bps=rate), default_setting(rate), 3, 280)
    tuner.start(context)
    return tuner


class TestDrUcb:
    """Algorithm 1 of Dolce-RC with K = 2, epsilon = 0.5 (period 4), gamma = 0.5, xi = 1."""

    def test_six_iterations_by_hand(self) -> None:
        rule = DrUcb(2, gamma=0.5, epsilon=0.5, xi=1.0)
        # t = 0, 1: r < K forces arms 0 and 1
        assert rule.choose() == 0
        rule.learn(0, 0.4)
        assert rule.choose() == 1
        rule.learn(1, 0.8)
        assert rule.counts == [0.5, 1.0]
        assert rule.rewards == [0.2, 0.8]
        # t = 2: arm 0: 0.2/0.5 + sqrt(ln 1.5 / 0.5) = 0.4 + 0.9005; arm 1: 0.8 + 0.6368
        assert rule.choose() == 1
        rule.learn(1, 0.6)
        assert rule.counts == [0.25, 1.5]
        assert rule.rewards == pytest.approx([0.1, 1.0])
        # t = 3: arm 0: 0.4 + sqrt(ln 1.75 / 0.25) = 1.8961; arm 1: 0.6667 + 0.6108 = 1.2775
        assert rule.choose() == 0
        rule.learn(0, 0.3)
        assert rule.counts == [1.125, 0.75]
        assert rule.rewards == pytest.approx([0.35, 0.5])
        # t = 4, 5: r = 0, 1 force both arms again, whatever the means are
        assert rule.choose() == 0
        rule.learn(0, 0.0)
        assert rule.choose() == 1
        rule.learn(1, 0.0)
        assert rule.t == 6

    def test_the_published_numbers_force_4_pulls_in_266(self) -> None:
        rule = DrUcb(4, gamma=0.9998, epsilon=0.015, xi=0.5001)
        assert rule.period == 266

    def test_the_discounted_count_is_the_sum_of_the_paper(self) -> None:
        # line 10: n_i(t) = sum over tau of gamma^(t - tau) * [I_tau = i]
        rule = DrUcb(3, gamma=0.9, epsilon=0.3, xi=0.6)
        pulls = []
        for t in range(40):
            arm = rule.choose()
            pulls.append(arm)
            rule.learn(arm, 0.1 * arm)
            for i in range(3):
                assert rule.counts[i] == pytest.approx(
                    math.fsum(0.9 ** (t - tau) for tau, a in enumerate(pulls) if a == i)
                )

    def test_it_follows_a_change_that_plain_ucb_would_average_away(self) -> None:
        rule = DrUcb(2, gamma=0.9, epsilon=0.1, xi=0.5001)
        late = []
        for t in range(400):
            arm = rule.choose()
            rule.learn(arm, float(arm == (0 if t < 200 else 1)))
            if t >= 300:
                late.append(arm)
        assert sum(late) > 60


def test_ucb1_by_hand() -> None:
    tuner = started("ucb1", exploration=1.0)
    arms = list(default_library(KnobSpace()).values())
    rewards = [0.5, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    for arm, reward in zip(arms, rewards, strict=True):  # every arm once
        assert tuner.ask() == arm
        tuner.tell(outcome(arm, reward, FSD))
    # all bonuses are sqrt(ln 8): the best mean wins
    assert tuner.ask() == arms[1]
    tuner.tell(outcome(arms[1], 0.1, FSD))
    # arm 1: (0.9 + 0.1)/2 + sqrt(ln 9 / 2) = 1.548; the others: 0.5 + sqrt(ln 9) = 1.982
    assert tuner.ask() == arms[0]


def test_thompson_posterior_by_hand() -> None:
    tuner = cast(ThompsonTuner, started("thompson", prior=0.5, noise=0.25))
    setting = tuner.ask()
    assert isinstance(setting, Setting)
    arm = tuner._arm
    for utility in (0.9, 0.7):
        tuner._arm = arm
        tuner.tell(outcome(setting, utility, FSD))
    means, deviations = tuner._posterior()
    # precision 1/0.25 + 2/0.0625 = 36; mean (0.5 * 4 + 1.6 * 16) / 36
    assert means[arm] == pytest.approx(27.6 / 36)
    assert deviations[arm] == pytest.approx(1 / 6)
    untouched = (arm + 1) % len(means)
    assert (means[untouched], deviations[untouched]) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("name", ["ucb1", "thompson", "dr-ucb"])
def test_the_best_arm_is_recommended(name: str) -> None:
    arguments = {"exploration": 0.1} if name == "ucb1" else {}
    tuner = started(name, **arguments)
    noise = np.random.Generator(np.random.PCG64(7))
    arms = list(default_library(KnobSpace()).values())
    assert tuner.recommend() == default_setting()
    for _ in range(200):
        setting = tuner.ask()
        assert isinstance(setting, Setting)
        assert setting in arms
        mean = 0.8 if setting == arms[4] else 0.6
        tuner.tell(outcome(setting, mean + 0.05 * noise.standard_normal(), FSD))
    assert tuner.recommend() == arms[4]


@pytest.mark.parametrize("rate", [10e9, 25e9, 100e9, 400e9])
def test_every_arm_is_legal_at_every_speed(rate: float) -> None:
    library = default_library(KnobSpace(TUNED_KNOBS, rate))
    assert len({setting.numbers for setting in library.values()}) == len(library) == 8
    for name, setting in library.items():
        setting.check(rate, name)


def test_a_library_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "arms.toml"
    path.write_text("[slow]\nrp_ai_rate = 5\n[fast]\nrp_ai_rate = 500\n")
    tuner = started("ucb1", library=str(path))
    proposal = tuner.ask()
    assert proposal == default_setting().replace({"rp_ai_rate": 5})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[one]\nrp_ai_rate = 5\n", "at least two"),
        ("rp_ai_rate = 5\n", "expected tables of knobs"),
        ("[a]\nrp_ai = 5\n[b]\npmax = 0.1\n", "did you mean 'rp_ai_rate'"),
        ("[a]\npmax = 7\n[b]\npmax = 0.1\n", r"\[a\]: pmax = 7 .*expected 0 to 1"),
        ("[a]\npmax = 'x'\n[b]\npmax = 0.1\n", "expected a number"),
    ],
)
def test_a_bad_library(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "arms.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        started("ucb1", library=str(path))


def test_a_library_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no such file"):
        started("ucb1", library="nowhere.toml")
