"""The native backend with one simulation in several threads: ``native-threads:4``."""

from __future__ import annotations

from dcqcn_gym import _core
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.envs.backends.native import NativeBackend

MOST_THREADS = 64


class ThreadedNativeBackend(NativeBackend):
    """The packet engine in ``threads`` threads, 1 to 64; it reports what one does, bit by bit.

    It pays on idle cores and large networks; many networks at once are better served by one thread
    each.
    """

    argument = "THREADS"

    def __init__(self, threads: int) -> None:
        """Raise ConfigError for a number of threads that is out of range."""
        if not 1 <= threads <= MOST_THREADS:
            raise ConfigError(f"{threads} threads; expected 1 to {MOST_THREADS}")
        self._threads = threads

    @classmethod
    def from_argument(cls, text: str) -> ThreadedNativeBackend:
        """Return one with the threads that ``native-threads:N`` names."""
        if not text.isdecimal():
            raise ConfigError(f"{quote(text)} threads; expected a number from 1 to {MOST_THREADS}")
        return cls(int(text))

    def _simulate(self, compiled: str, seed: int) -> _core.Simulation:
        return _core.Simulation(compiled, seed, threads=self._threads)
