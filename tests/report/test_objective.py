"""The objective for studies of one's own."""

from __future__ import annotations

import pytest

import dcqcn_gym
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.objective import Objective


class Trial:
    """What an objective asks of one."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.params: dict[str, float] = {}
        self.user_attrs: dict[str, object] = {}

    def suggest_float(self, name: str, low: float, high: float) -> float:
        self.params[name] = min(max(self.at, low), high)
        return self.params[name]

    def set_user_attr(self, key: str, value: object) -> None:
        self.user_attrs[key] = value


def test_a_trial_is_worth_its_score_and_carries_its_knobs_and_harms() -> None:
    goal = dcqcn_gym.objective("mini-fb-hadoop", seeds=(1, 2), intervals=3)
    assert isinstance(goal, Objective)
    trial = Trial(0.3)
    found = goal(trial)
    assert found == goal(Trial(0.3)) != goal(Trial(-0.9))
    setting = goal.setting(trial.params)
    assert trial.user_attrs["kmin, KB"] == setting["kmin"]
    assert isinstance(trial.user_attrs["harms"], list)
    judged = goal.verdict(setting, goal.seeds)
    assert judged.score.mean == found
    assert judged.score.low is not None  # traffic that is drawn has an interval
    assert goal.verdict(goal.base, (1, 2)).score.mean == 0


def test_several_figures_are_several_objectives() -> None:
    names = ("S", "slowdown-mice", "slowdown-elephants", "goodput", "paused")
    goal = dcqcn_gym.objective("mini-fb-hadoop", seeds=(1, 2), intervals=3, figures=names)
    assert goal.directions == ["maximize", "minimize", "minimize", "maximize", "minimize"]
    trial = Trial(0.3)
    values = goal(trial)
    assert isinstance(values, tuple)
    setting = goal.setting(trial.params)
    runs = evaluate([setting], [goal.scenario], goal.seeds, 3)[0][0]
    assert values[0] == goal.verdict(setting, goal.seeds).score.mean
    assert values[1] == pytest.approx(sum(run.classes[0].p99 for run in runs) / 2)
    assert values[2] == pytest.approx(sum(run.classes[2].p99 for run in runs) / 2)
    assert values[3] == pytest.approx(sum(run.goodput_bps for run in runs) / 2e9)
    assert values[4] == pytest.approx(sum(run.pause_share for run in runs) * 50)


def test_a_figure_that_is_none_is_named() -> None:
    with pytest.raises(UnknownNameError, match="goodputs"):
        dcqcn_gym.objective("mini-fb-hadoop", figures=("goodputs",))
    with pytest.raises(ConfigError, match="goodput"):
        dcqcn_gym.objective("mini-fb-hadoop", figures="goodput")
