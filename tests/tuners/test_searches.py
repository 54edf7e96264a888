"""Optuna's samplers and the policy searches: they find, repeat, and name what is missing."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from outcomes import outcome

from dcqcn_gym.core.errors import MissingExtraError
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.extras.search.optuna_tuners import OptunaTuner
from dcqcn_gym.tuners import TUNERS, Outcome, Tuner, TunerContext, make_tuner
from dcqcn_gym.tuners.policy_search import ArsTuner

FSD = FlowSizeDistribution()
KNOBS = ("rp_ai_rate", "rp_min_dec_fac", "kmin")
SPACE = KnobSpace(KNOBS)
TARGET = np.array([0.5, -0.4, 0.3])

OPTUNA = ("tpe", "cmaes", "nsga2", "qmc")
GP = pytest.param("gp", marks=pytest.mark.slow)


def started(name: str, seed: int = 1, observation: int = 0, **arguments: object) -> Tuner:
    tuner = make_tuner(name, arguments)
    looked = np.zeros(observation, dtype=np.float32)
    tuner.start(TunerContext(SPACE, default_setting(), seed, 200, observation=looked))
    return tuner


def utility(setting: Setting) -> float:
    """A bowl with its top, 1, at TARGET of the action box."""
    return float(1.0 - 0.2 * np.sum((SPACE.encode(setting) - TARGET) ** 2))


def search(tuner: Tuner, intervals: int) -> list[float]:
    utilities = []
    for _ in range(intervals):
        setting = tuner.ask()
        assert isinstance(setting, Setting)
        utilities.append(utility(setting))
        tuner.tell(outcome(setting, utilities[-1], FSD))
    return utilities


@pytest.mark.parametrize("name", [*OPTUNA, GP])
class TestOptuna:
    def test_begins_with_the_setting_in_force(self, name: str) -> None:
        pytest.importorskip("torch" if name == "gp" else "cmaes")
        pytest.importorskip("optuna")
        setting = started(name).ask()
        assert isinstance(setting, Setting)
        assert SPACE.encode(setting) == pytest.approx(SPACE.encode(default_setting()), abs=1e-3)

    def test_finds_the_top_of_a_bowl(self, name: str) -> None:
        pytest.importorskip("torch" if name == "gp" else "cmaes")
        pytest.importorskip("optuna")
        tuner = started(name)
        begin = utility(default_setting())
        search(tuner, 30 if name == "gp" else 80)
        found = utility(tuner.recommend())
        assert found > begin + 0.5 * (1.0 - begin)

    def test_another_seed_searches_elsewhere(self, name: str) -> None:
        pytest.importorskip("torch" if name == "gp" else "cmaes")
        pytest.importorskip("optuna")
        assert search(started(name, 1), 15) == search(started(name, 1), 15)
        assert search(started(name, 1), 15) != search(started(name, 2), 15)

    def test_a_missing_package_is_named_at_the_start(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tuner = make_tuner(name)  # importing and making it needs nothing
        monkeypatch.setattr(type(tuner), "modules", ("a_module_nobody_has",))
        extra = cast(OptunaTuner, tuner).extra
        with pytest.raises(MissingExtraError, match=rf"'{name}'.*\[{extra}\]"):
            tuner.start(TunerContext(SPACE, default_setting(), 1, 10))


def test_nsga2_sees_the_three_terms() -> None:
    pytest.importorskip("optuna")
    tuner = cast(OptunaTuner, started("nsga2"))
    setting = tuner.ask()
    assert isinstance(setting, Setting)
    told = outcome(setting, 0.6, FSD)
    tuner.tell(
        Outcome(setting, 0.6, Terms(0.1, 0.2, 0.3), told.observation, told.report, triggered=False)
    )
    assert tuner._study.trials[0].values == [0.1, 0.2, 0.3]


def test_ars_update_by_hand() -> None:
    # one knob, no observation: the policy is its bias b; two directions, the best one is used
    tuner = make_tuner("ars", {"directions": 2, "best": 1, "step": 0.1, "noise": 0.2, "episode": 1})
    space = KnobSpace(("rp_min_dec_fac",))
    tuner.start(TunerContext(space, default_setting(), 1, 100))
    ars = cast(ArsTuner, tuner)
    begin = float(ars._weights[0, 0])
    ars._deltas = np.array([[[1.0]], [[-0.5]]])
    asked = []
    for value in (0.5, 0.7, 0.6, 0.3):  # +d1, -d1, +d2, -d2
        setting = ars.ask()
        asked.append(float(space.encode(setting)[0]))
        ars.tell(outcome(setting, value, FSD))
    expected = [begin + 0.2, begin - 0.2, begin - 0.1, begin + 0.1]
    assert asked == pytest.approx(expected, abs=0.02)  # whole percents
    # the best direction is the first (0.7 > 0.6); sigma_R of (0.5, 0.7) is 0.1:
    # b += 0.1 / (1 * 0.1) * (0.5 - 0.7) * 1
    assert float(ars._weights[0, 0]) == pytest.approx(begin - 0.2)


def test_ars_learns_nothing_from_equal_returns() -> None:
    tuner = cast(ArsTuner, started("ars"))
    before = tuner._weights.copy()
    for _ in range(16):
        tuner.tell(outcome(tuner.ask(), 0.5, FSD))
    assert tuner.state()["updates"] == 1
    assert np.array_equal(tuner._weights, before)


@pytest.mark.parametrize("name", ["ars", "cmaes-policy"])
def test_a_policy_improves_and_uses_the_observation(name: str) -> None:
    pytest.importorskip("cmaes")
    tuner = started(name, observation=1)
    begin = utility(default_setting())
    utilities = search(tuner, 400)
    assert np.mean(utilities[-40:]) > begin
    assert tuner.state()["weights_norm"] > 0 or tuner.state()["updates"] > 0


def test_cmaes_policy_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cmaes", None)
    assert TUNERS.load("cmaes-policy").missing_extra() == "optuna"  # the list of tuners says it
    with pytest.raises(MissingExtraError, match=r"cmaes-policy.*\[optuna\]'"):
        started("cmaes-policy")


def test_sobol_points_are_scrambled_by_the_seed() -> None:
    pytest.importorskip("scipy")
    pytest.importorskip("optuna")
    first = []
    for seed in (1, 2):
        tuner = started("qmc", seed=seed)
        search(tuner, 3)  # the setting in force, then points of the sequence
        asked = tuner.ask()
        assert isinstance(asked, Setting)
        first.append(SPACE.encode(asked))
    assert not np.allclose(first[0], first[1])  # else it is one sequence for all
