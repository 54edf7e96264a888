"""Uniform random search: the smallest tuner that searches, and the template for a new one."""

from __future__ import annotations

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import Tuner, TunerContext


class RandomTuner(Tuner):
    """Draws every proposal uniformly from the action box; recommends the best one seen."""

    name = "random"
    summary = "uniform random search over the action box"

    def start(self, context: TunerContext) -> None:
        """Take the tuner's own random stream."""
        super().start(context)
        self._random = context.generator()

    def ask(self) -> Setting:
        """Return a uniform draw over the action box."""
        space = self.context.space
        return space.setting(self._random.uniform(-1.0, 1.0, space.n), self.context.base)
