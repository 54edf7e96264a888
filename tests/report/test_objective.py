"""The objective for studies of one's own."""

from __future__ import annotations

import dcqcn_gym
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
