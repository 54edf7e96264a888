"""The base class of workloads: lines of the compiled text, sizes of flows, whether it ends.

A new kind is a class below :class:`BaseWorkload` and a line in the table ``KINDS`` of
``workloads.py``; nobody else asks which kind one is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.tables import Cdf

if TYPE_CHECKING:
    from dcqcn_gym.core.applications import Application
    from dcqcn_gym.core.collectives import Collective
    from dcqcn_gym.envs.scenario.servers import Servers


def items(**values: object) -> str:
    """Return ``key=value`` words."""
    return " ".join(f"{key}={value}" for key, value in values.items())


def listed(values: Iterable[object]) -> str:
    """Return values with commas between."""
    return ",".join(map(str, values))


def stop_ps(stop_us: float | None) -> int:
    """Return a time after which nothing starts, in picoseconds; -1: none."""
    return -1 if stop_us is None else us_to_ps(stop_us)


class BaseWorkload(StrictModel):
    """A workload: :meth:`resolve`, :meth:`lines` and :meth:`largest_flow` are every kind's own."""

    if TYPE_CHECKING:  # keys of every kind, each with its own default and place
        kind: str
        priority: int

    def resolve(self, net: Fabric) -> Any:
        """Return the hosts that take part; raise :class:`ConfigError` if the network lacks them."""
        raise NotImplementedError

    def check(self, net: Fabric, servers: Servers | None) -> None:
        """Raise :class:`ConfigError` if this cannot run on the network and in its servers."""
        self.resolve(net)

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the lines of the compiled text; ``cdfs`` are the distributions by number."""
        raise NotImplementedError

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of the largest flow, and how many of those a queue pair gets at once.

        Flows without an end do not count.
        """
        raise NotImplementedError

    def flows_at_once(self, net: Fabric, interval_us: float, run_us: float) -> float:
        """Return how many of its flows there are at once, at least, in intervals of a run."""
        return 0.0

    @property
    def amount(self) -> str:
        """The key that says how much traffic it is, with its value."""
        return f"{self.kind} with messages = {getattr(self, 'messages', 1)}"

    @property
    def endless(self) -> bool:
        """Whether new flows never stop to come."""
        return False

    @property
    def unlimited(self) -> bool:
        """Whether none of its flows has an end."""
        return False

    @property
    def distribution(self) -> Cdf | None:
        """The flow sizes that it draws from, which the compiled text holds once."""
        return None

    def least_iteration_ms(self, line_rate_bps: float) -> float | None:
        """Return what an iteration of a job takes at least; None of what is no job."""
        return None

    @property
    def takes_scale(self) -> bool:
        """Whether it is a job whose bytes and times can be scaled, and nobody gave it a scale."""
        return False

    def scaled(self, scale: float) -> Self:
        """Return a job that can be scaled with this scale; what is none, as it is."""
        return self

    def as_collective(self, net: Fabric, number: int) -> Collective | None:
        """Return what it is as a collective operation, as workload ``number``."""
        return None

    def as_application(self, net: Fabric, number: int) -> Application | None:
        """Return how its operations are recognised in its flows, as workload ``number``."""
        return None
