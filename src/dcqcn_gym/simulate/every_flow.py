"""Slowdowns of every flow of a simulation, unfinished ones at their age; memory does not grow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.score import GUARD
from dcqcn_gym.core.statistics import SlowdownCounter, slowdowns
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.backends.base import live_flows_of

__all__ = ["EveryFlow"]


class EveryFlow:
    """Counts the flows that started before the guard of ``duration_ps``, as the verdict does.

    The guard is the last share :data:`~dcqcn_gym.core.score.GUARD` of the time, whose flows had no
    time to finish. An infinite duration, of a simulation that waits for every flow, has none.
    """

    def __init__(self, duration_ps: float = math.inf) -> None:
        self._before_ps = (1 - GUARD) * duration_ps
        self._counter = SlowdownCounter()
        self._last: IntervalReport | None = None

    def add(self, report: IntervalReport) -> None:
        """Count the flows that finished in an interval."""
        flows, self._last = report.finished, report
        counted = flows.start_ps < self._before_ps
        slow = slowdowns(flows.fct_ps[counted], flows.ideal_fct_ps[counted])
        self._counter.add(flows.bytes[counted], np.maximum(slow, 1.0))

    def summary(self, world: Backend) -> dict[str, dict[str, Any]] | None:
        """Return the statistics by size once ``world`` has stopped, what is unfinished at its age.

        None if the backend does not know which flows are unfinished, and there may be some.
        """
        live, last = live_flows_of(world), self._last
        if last is None:
            return self._counter.summary()
        if live is None:
            known = "active_flows" not in last.unknown
            return self._counter.summary() if known and not last.active_flows else None
        counted = live.start_ps < self._before_ps
        ages = slowdowns(last.end_ps - live.start_ps[counted], live.ideal_fct_ps[counted])
        self._counter.add(live.bytes[counted], np.maximum(ages, 1.0))
        return self._counter.summary()
