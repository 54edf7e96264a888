"""Whether traffic has shifted since something was decided: what decides anew. Ours."""

from __future__ import annotations

import math

from dcqcn_gym.tuners.congestion_signals import Signs


class TrafficShift:
    """Counts intervals in a row that are unlike those of a decision.

    They are where ``factor`` times as many pairs of hosts talk, or as few, or where less than a
    fifth of ``pause`` is paused and no queue is above ``queue_us``, though pauses decided.
    ``calm`` of them are a shift.
    """

    def __init__(self, factor: float, calm: int, pause: float, queue_us: float) -> None:
        self._factor, self._calm_for = factor, calm
        self._pause, self._queue_us = pause / 5, queue_us
        self.settle(math.nan, paused=False)

    def settle(self, talking: float, *, paused: bool) -> None:
        """Begin anew: so many pairs talked when it was decided (NaN: not known)."""
        self._calm = self._unpaused = 0
        self._talking, self._paused = talking, paused

    def add(self, signs: Signs, defeats: int = 0) -> str:
        """Return how the traffic has shifted, "" if it has not; each defeat doubles the wait."""
        far = math.isfinite(self._talking) and self._talking > 0 and signs.busy > 0
        ratio = signs.busy / self._talking if far else 1.0
        limit = self._factor
        calm = self._calm_for * 2 ** max(defeats - 1, 0)  # ever rarer where a setting loses
        self._calm = self._calm + 1 if ratio > limit or ratio < 1 / limit else 0
        quiet = self._paused and signs.pause < self._pause and not signs.peak_us > self._queue_us
        self._unpaused = self._unpaused + 1 if quiet else 0
        if self._calm >= calm:
            now, then = signs.busy, self._talking
            return f"the traffic has shifted: {now:.0f} pairs of hosts talk, {then:.0f} did"
        if self._unpaused >= 2 * calm:
            return f"nothing was paused for {self._unpaused} intervals"
        return ""
