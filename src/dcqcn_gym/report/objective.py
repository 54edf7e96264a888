"""An objective for searches of one's own, such as an Optuna study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.verdict import Measured, Verdict, verdict
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate


class ObjectiveTrial(Protocol):
    """What an objective asks of a trial; Optuna's has it."""

    def suggest_float(self, name: str, low: float, high: float) -> float:
        """Return a number from low to high."""

    def set_user_attr(self, key: str, value: object) -> None:
        """Remember a value beside the trial."""


def _slowdown(of_class: int, run: Measured) -> float:
    return run.classes[of_class].p99


FIGURES: Mapping[str, tuple[str, Callable[[Measured], float]]] = {
    **{
        f"slowdown-{of.name.split()[0]}": ("minimize", partial(_slowdown, i))
        for i, of in enumerate(CLASSES)
    },
    "goodput": ("maximize", lambda run: run.goodput_bps * 1e-9),
    "paused": ("minimize", lambda run: run.pause_share * 100),
}
"""Figures beside S: p99 of slowdowns by class, Gb/s of payload, % of time that the mean device was
paused; each is the mean over the seeds. A class without flows is NaN, which fails an Optuna trial.
"""


class Objective:
    """Calls give S against the setting in force, to be maximized; above 0 is better.

    S is over ``seeds``, each of so many ``intervals``. With several ``figures``, of ``S`` and those
    of :data:`FIGURES`, calls give a value of each, and ``directions`` says which are to be
    minimized: what a study of several objectives asks for. ``harms`` beside a trial are the limits
    that it crosses, and the knobs in NVIDIA's units. ``space`` has the knobs; :meth:`setting` makes
    a setting of a trial's parameters, and :meth:`verdict` judges one on seeds that the search has
    not seen. Raises ConfigError for no figure or a repeated one, UnknownNameError for one that
    there is not.
    """

    def __init__(
        self,
        scenario: str | Path | Scenario,
        seeds: Sequence[int] = (1, 2, 3),
        intervals: int = 20,
        figures: Sequence[str] = ("S",),
    ) -> None:
        if isinstance(figures, str) or not figures or len(set(figures)) < len(figures):
            raise ConfigError(f"figures = {figures!r}: expected a list of names, none repeated")
        for name in figures:
            if name != "S" and name not in FIGURES:
                raise UnknownNameError("figure", name, ["S", *FIGURES])
        self.figures = tuple(figures)
        self.scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        self.seeds, self.intervals = tuple(seeds), intervals
        s = self.scenario
        self.base = s.initial_setting()
        self.space = KnobSpace(s.turned, s.line_rate_bps, s.table, s.ranges)
        self._in_force = self._runs(self.base, self.seeds)

    @property
    def directions(self) -> list[str]:
        """``"maximize"`` or ``"minimize"`` for every figure."""
        return ["maximize" if name == "S" else FIGURES[name][0] for name in self.figures]

    def __call__(self, trial: ObjectiveTrial) -> float | tuple[float, ...]:
        """Return what the trial's suggestion is worth, each knob in -1..1 of its range.

        One figure is a number, several are a tuple.
        """
        at = {name: trial.suggest_float(name, -1.0, 1.0) for name in self.space.knobs}
        setting = self.setting(at)
        runs = self._runs(setting, self.seeds)
        found = verdict(runs, self._in_force)
        for name in self.space.knobs:
            trial.set_user_attr(f"{name}, {setting.table[name].unit}", setting[name])
        trial.set_user_attr("harms", [flag.name for flag in found.flags if flag.state == "up"])
        values = tuple(
            float(found.score.mean) if name == "S" else mean([FIGURES[name][1](r) for r in runs])
            for name in self.figures
        )
        return values if len(values) > 1 else values[0]

    def setting(self, parameters: dict[str, float]) -> Setting:
        """Return the setting of a trial's ``params``."""
        return self.space.setting([parameters[name] for name in self.space.knobs], self.base)

    def verdict(self, setting: DeviceSetting, seeds: Sequence[int]) -> Verdict:
        """Judge a setting against the one in force, on these seeds."""
        return verdict(self._runs(setting, seeds), self._runs(self.base, seeds))

    def _runs(self, setting: DeviceSetting, seeds: Sequence[int]) -> list[Measured]:
        return evaluate([setting], [self.scenario], seeds, self.intervals)[0][0]


objective = Objective
"""The objective of a scenario, by the name under which ``dcqcn_gym`` offers it."""
