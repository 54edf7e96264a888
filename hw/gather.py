"""The figures of all devices at one instant: asked for at once, with the time that each was read.

A report that does not come is missing and stays so: nothing stands in for it. One that comes is of
the instant at which its agent had read it, which :class:`AgentClock` puts into the
controller's time.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.client import Call

# As in NTP (RFC 5905, section 8): by the controller's clock a call leaves at t1 and its answer
# comes at t4; by its own the agent begins at t2 and ends at t3. The difference of the clocks is
# ((t2 - t1) + (t3 - t4)) / 2, wrong by at most half of what the two ways took,
# (t4 - t1) - (t3 - t2). Of the last answers the quickest one is believed: its error is the
# smallest.
ANSWERS = 8
"""Answers that are looked at, as in NTP's clock filter."""
DRIFT = 200e-6
"""How much faster one clock may run than another; crystals are within half of it each."""
SLACK_S = 1e-3
"""What scheduling may add."""


@dataclass(frozen=True)
class Times:
    """Of one call, in seconds: asked and answered by the controller's clock, the others by the
    agent's."""

    asked_s: float
    began_s: float
    ended_s: float
    answered_s: float

    @property
    def ahead_s(self) -> float:
        """How far the agent's clock is ahead of the controller's."""
        return ((self.began_s - self.asked_s) + (self.ended_s - self.answered_s)) / 2

    @property
    def error_s(self) -> float:
        """The most that :attr:`ahead_s` can be wrong by."""
        return max((self.answered_s - self.asked_s) - (self.ended_s - self.began_s), 0.0) / 2


@dataclass
class AgentClock:
    """One agent's clock as its answers show it."""

    _last: deque[Times] = field(default_factory=lambda: deque(maxlen=ANSWERS))

    def learn(self, times: Times) -> bool:
        """Take up an answer; return True if the agent's clock has jumped since the ones before.

        After a jump only this answer counts.
        """
        jumped = bool(self._last) and self._beyond(times)
        if jumped:
            self._last.clear()
        self._last.append(times)
        return jumped

    def _beyond(self, times: Times) -> bool:
        """Return whether an answer cannot be of the clock that is known."""
        best = self._best
        drift = DRIFT * abs(times.answered_s - best.answered_s) + SLACK_S
        return abs(times.ahead_s - best.ahead_s) > times.error_s + best.error_s + drift

    @property
    def _best(self) -> Times:
        return min(self._last, key=lambda t: t.error_s)

    @property
    def ahead_s(self) -> float:
        """How far the agent's clock is ahead of the controller's; 0 before the first answer."""
        return self._best.ahead_s if self._last else 0.0

    @property
    def error_s(self) -> float:
        """The most that :attr:`ahead_s` can be wrong by; infinite before the first answer."""
        return self._best.error_s if self._last else float("inf")

    def here(self, times: Times) -> float:
        """Return when the agent had ended, in the controller's time: between asked and answered."""
        return min(max(times.ended_s - self.ahead_s, times.asked_s), times.answered_s)


@dataclass(frozen=True)
class Gathered:
    """What came when figures were asked for."""

    figures: Mapping[str, dict[str, int]]
    """Device -> its figures."""
    read_s: Mapping[str, float]
    """Device -> when it had read them, in the controller's time."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Device that gave none -> why."""
    jumped: tuple[str, ...] = ()
    """Devices whose clock has jumped since the time before."""

    @property
    def instant_s(self) -> float:
        """When, in the controller's time: the median over the devices."""
        return statistics.median(self.read_s.values())

    def later_than(self, until_s: float) -> list[str]:
        """Return the devices that read after ``until_s``."""
        return [name for name, when in self.read_s.items() if when > until_s]


class Gatherer:
    """Asks, and keeps what it learns of the agents' clocks."""

    def __init__(
        self, begin: Callable[[str, Mapping[str, Any]], Iterable[tuple[str, Call]]]
    ) -> None:
        """``begin`` starts a call on devices and gives each with its call, in order."""
        self._begin = begin
        self.clocks: dict[str, AgentClock] = {}

    def gather(self, names: Iterable[str], interval: int) -> Gathered:
        """Return the figures of now; ``interval`` is the number of the one that ends.

        Only an agent out of reach or a device that cannot be read is missing; other errors raise.
        """
        figures, read_s, missing, jumped = {}, {}, {}, []
        for name, call in self._begin("Counters", dict.fromkeys(names, pb.Ask(interval=interval))):
            try:
                found = call.result()
                if found.interval != interval:
                    raise DeviceError(
                        f"{name}: its figures are of interval {found.interval}, not of {interval}"
                    )
            except DeviceError as error:
                missing[name] = str(error)
                continue
            times = Times(call.asked_s, found.began_s, found.ended_s, call.answered_s)
            clock = self.clocks.setdefault(name, AgentClock())
            if clock.learn(times):
                jumped.append(name)
            figures[name], read_s[name] = dict(found.values), clock.here(times)
        return Gathered(figures, read_s, missing, tuple(jumped))
