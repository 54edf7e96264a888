"""An objective for searches of one's own, such as an Optuna study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.verdict import Measured, Verdict, verdict
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate


class Trial(Protocol):
    """What an objective asks of a trial; Optuna's has it."""

    def suggest_float(self, name: str, low: float, high: float) -> float:
        """Return a number from low to high."""

    def set_user_attr(self, key: str, value: object) -> None:
        """Remember a value beside the trial."""


class Objective:
    """Calls give S against the setting in force, to be maximized; above 0 is better.

    ``harms`` beside a trial are the limits that it crosses, and the knobs in NVIDIA's units.
    ``space`` has the knobs; :meth:`setting` makes a setting of a trial's parameters, and
    :meth:`verdict` judges one on seeds that the search has not seen.
    """

    def __init__(
        self, scenario: str | Path | Scenario, seeds: Sequence[int] = (1, 2, 3), intervals: int = 20
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        self.seeds, self.intervals = tuple(seeds), intervals
        s = self.scenario
        self.base = s.initial_setting()
        self.space = KnobSpace(s.turned, s.line_rate_bps, s.table, s.ranges)
        self._in_force = self._runs(self.base, self.seeds)

    def __call__(self, trial: Trial) -> float:
        """Return S of what the trial suggests, each knob in -1..1 of its range."""
        at = {name: trial.suggest_float(name, -1.0, 1.0) for name in self.space.knobs}
        setting = self.setting(at)
        found = verdict(self._runs(setting, self.seeds), self._in_force)
        for name in self.space.knobs:
            trial.set_user_attr(f"{name}, {setting.table[name].unit}", setting[name])
        trial.set_user_attr("harms", [flag.name for flag in found.flags if flag.state == "up"])
        return float(found.score.mean)

    def setting(self, parameters: dict[str, float]) -> Setting:
        """Return the setting of a trial's ``params``."""
        return self.space.setting([parameters[name] for name in self.space.knobs], self.base)

    def verdict(self, setting: DeviceSetting, seeds: Sequence[int]) -> Verdict:
        """Judge a setting against the one in force, on these seeds."""
        return verdict(self._runs(setting, seeds), self._runs(self.base, seeds))

    def _runs(self, setting: DeviceSetting, seeds: Sequence[int]) -> list[Measured]:
        return evaluate([setting], [self.scenario], seeds, self.intervals)[0][0]


def objective(
    scenario: str | Path | Scenario, seeds: Sequence[int] = (1, 2, 3), intervals: int = 20
) -> Objective:
    """Return the objective of a scenario: S over ``seeds``, each of so many intervals."""
    return Objective(scenario, seeds, intervals)
