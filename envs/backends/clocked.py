"""The native backend with a timer around the engine, for measurements of speed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dcqcn_gym.envs.backends.native import NativeBackend

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario


class _ClockedSimulation:
    """A simulation that counts the CPU seconds of ``advance``."""

    def __init__(self, simulation: Any, clock: ClockedBackend) -> None:
        self._simulation = simulation
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulation, name)

    def advance(self, until_ps: int) -> None:
        before = time.thread_time()
        self._simulation.advance(until_ps)
        self._clock.engine_s += time.thread_time() - before


class ClockedBackend(NativeBackend):
    """Counts in ``engine_s`` the CPU seconds that the engine has spent, over all episodes."""

    def __init__(self) -> None:
        self.engine_s = 0.0

    def open(self, scenario: Scenario, seed: int) -> None:
        """Build the network, with the clock around it."""
        super().open(scenario, seed)
        opened: Any = self._opened("open")
        opened.simulation = _ClockedSimulation(opened.simulation, self)
