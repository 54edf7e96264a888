"""CPU time, wall time and memory of a simulation, child processes included."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass

_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


@dataclass(frozen=True)
class Spent:
    """What a simulation cost: seconds of CPU and of the clock, bytes of memory at its most."""

    cpu_s: float
    wall_s: float
    peak_memory_bytes: int


class Clock:
    """What this process and those that it starts spend from now on."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._children = _children_s()

    def opened(self) -> None:
        """Leave out the processes that have ended by now: compilers, which simulate nothing."""
        self._children = _children_s()

    def spent(self) -> Spent:
        """Return it; a process that still runs is not counted."""
        unit = 1 if sys.platform == "darwin" else 1024
        return Spent(
            cpu_s=time.process_time() - self._cpu + _children_s() - self._children,
            wall_s=time.perf_counter() - self._wall,
            peak_memory_bytes=max(resource.getrusage(who).ru_maxrss for who in _WHO) * unit,
        )


def _children_s() -> float:
    """Return the CPU seconds of every process that we have started and that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
