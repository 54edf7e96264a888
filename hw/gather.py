"""The figures of all devices at one instant: asked for at once, with the time that each was read.

A report that does not come is missing and stays so: nothing stands in for it. One that comes is of
the instant at which its agent had read it, which :mod:`dcqcn_gym.hw.clocks` puts into the
controller's time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.client import Call
from dcqcn_gym.hw.clocks import AgentClock, Times

__all__ = ["Gathered", "Gatherer"]


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
