"""Simulated annealing by itself: the temperature schedule and the rule of acceptance.

Shared by PARALEON and its ablations; what to try next is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pydantic import Field, model_validator

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.tuners.base import TunerSettings

__all__ = ["Annealer", "AnnealingSettings"]


class AnnealingSettings(TunerSettings):
    """The schedule; the defaults are those of PARALEON (ICNP'24) section IV."""

    initial_temperature: float = Field(
        default=90.0, gt=0, description="temperature of the first level"
    )
    final_temperature: float = Field(
        default=10.0, gt=0, description="stop at or below this temperature"
    )
    cooling: float = Field(
        default=0.85, gt=0, lt=1, description="factor from one level to the next"
    )
    iterations: int = Field(default=20, ge=1, description="settings tried per level")
    temperature_scale: float = Field(
        default=1.0, gt=0, description="both temperatures are multiplied by this"
    )

    @model_validator(mode="after")
    def _falls(self) -> AnnealingSettings:
        if self.final_temperature >= self.initial_temperature:
            raise ValueError(
                f"final_temperature {self.final_temperature:g} must be below "
                f"initial_temperature {self.initial_temperature:g}"
            )
        return self


class Annealer:
    """Algorithm 1 of PARALEON without lines 14-22: levels of temperature, accept, keep the best.

    A utility lies in 0..1; before the first one, ``current_utility`` and ``best_utility`` are -1,
    so the first setting measured is always accepted and is the first best (as in the authors'
    code). ``draw`` gives uniform numbers in [0, 1) and is called only for a setting that is not
    better, as the ``or`` of line 6 is read.
    """

    def __init__(self, settings: AnnealingSettings, draw: Callable[[], float]) -> None:
        self._settings = settings
        self._draw = draw
        self.restart()

    def restart(self) -> None:
        """Go back to the first temperature and forget every utility."""
        self.temperature = self._settings.initial_temperature * self._settings.temperature_scale
        self.iteration = 0
        self.current_utility = -1.0
        self.current: DeviceSetting | None = None
        self.best_utility = -1.0
        self.best: DeviceSetting | None = None

    @property
    def finished(self) -> bool:
        """True once the temperature has reached the final one (line 2)."""
        final = self._settings.final_temperature * self._settings.temperature_scale
        return self.temperature <= final

    def judge(self, setting: DeviceSetting, utility: float) -> bool:
        """Take one measured setting (lines 5-13), cool (lines 3 and 24); True if accepted."""
        accepted = utility > self.current_utility or self._leap(utility)
        if accepted:
            self.current_utility = utility
            self.current = setting
        if self.current_utility > self.best_utility:
            self.best_utility = self.current_utility
            self.best = self.current
        self.iteration += 1
        if self.iteration == self._settings.iterations:
            self.iteration = 0
            self.temperature *= self._settings.cooling
        return accepted

    def _leap(self, utility: float) -> bool:
        return math.exp((utility - self.current_utility) / self.temperature) > self._draw()
