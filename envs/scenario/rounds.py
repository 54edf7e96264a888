"""Closed loops: rounds of transfers, each of which starts when the one before has finished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from dcqcn_gym.core.collectives import Collective
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.hosts import (
    Bytes,
    Connections,
    HostNumber,
    HostSet,
    Timed,
    TimeUs,
    select_hosts,
)
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.tables import Cdf
from dcqcn_gym.envs.scenario.workload import items, listed, stop_ps


class Closed(Timed):
    """Closed loop: the next round starts ``off_us`` after the last flow of a round finished.

    ``rounds = 0`` repeats for ever.
    """

    off_us: TimeUs = 0.0
    rounds: int = Field(default=0, ge=0, description="the number of rounds, 0 for no end")

    @property
    def endless(self) -> bool:
        """Whether neither a time nor a number of rounds ends it."""
        return self.stop_us is None and self.rounds == 0

    def _line(self, kind: str, what: str, **extra: object) -> str:
        """Return the line of the compiled text: who sends what, then when."""
        when = items(
            **extra,
            off_ps=us_to_ps(self.off_us),
            start_ps=us_to_ps(self.start_us),
            stop_ps=stop_ps(self.stop_us),
            rounds=self.rounds,
            priority=self.priority,
        )
        return f"workload {kind} {what} {when}"

    def _collective(self, net: Fabric, number: int, kind: str, size: int, flows: int) -> Collective:
        """Return a collective operation among the workers."""
        pause = max(us_to_ps(self.off_us), min(link.delay_ps for link in net.links))
        return Collective(number, kind, len(self.resolve(net)), size, flows, pause)


class _Rounds(Closed):
    """Rounds of transfers that start together.

    Every transfer is ``messages`` messages of ``bytes`` each, posted at once on one queue pair:
    they are sent in order, the rate state stays, and each is a flow with a completion time. With
    several ``connections`` they go to those in turn, each a queue pair.
    """

    messages: int = Field(default=1, ge=1, le=65536, description="messages per transfer")
    connections: Connections = 1

    @property
    def _transfers(self) -> dict[str, int]:
        """The words on messages and connections; more than one connection alone is said."""
        several = {"connections": self.connections} if self.connections > 1 else {}
        return {"messages": self.messages, **several}

    def _largest(self, size: int) -> tuple[int, int]:
        return size, -(-self.messages // self.connections)


class AllToAll(_Rounds):
    """Every worker sends ``bytes`` to every other worker, all at once: the ON phase of training."""

    kind: Literal["alltoall"] = "alltoall"
    bytes: Bytes
    hosts: HostSet = "all"
    placement: Literal["round-robin", "packed"] = "round-robin"

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        """Return the workers."""
        return _workers(self, net)

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        what = items(hosts=listed(self.resolve(net)), bytes=self.bytes)
        yield self._line(self.kind, what, **self._transfers)

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of a message."""
        return self._largest(self.bytes)

    def as_collective(self, net: Fabric, number: int) -> Collective | None:
        """Return the all-to-all."""
        n = len(self.resolve(net))
        size, flows = n * self.bytes * self.messages, n * (n - 1) * self.messages
        return self._collective(net, number, "all-to-all", size, flows)

    def flows_at_once(self, net: Fabric, interval_us: float, run_us: float) -> float:
        """Return the flows of a round."""
        return len(self.resolve(net)) * (len(self.resolve(net)) - 1) * self.messages


class Permutation(AllToAll):
    """Every host sends ``bytes`` to one other host; each round draws a new permutation."""

    kind: Literal["permutation"] = "permutation"  # type: ignore[assignment]

    def as_collective(self, net: Fabric, number: int) -> None:
        """Return None: no collective operation."""

    def flows_at_once(self, net: Fabric, interval_us: float, run_us: float) -> float:
        """Return the flows of a round."""
        return len(self.resolve(net)) * self.messages


class Ring(Closed):
    """A ring collective of ``bytes`` per rank: chunks of bytes/n travel from rank to rank.

    The order of the ranks is that of ``hosts``. In each step a rank sends a chunk to its
    successor; receiving a chunk starts its next step. All-reduce takes 2 (n - 1) steps,
    reduce-scatter and all-gather n - 1.
    """

    kind: Literal["ring"] = "ring"
    collective: Literal["all-reduce", "reduce-scatter", "all-gather"] = "all-reduce"
    bytes: Bytes
    hosts: HostSet = "all"
    placement: Literal["round-robin", "packed"] = "round-robin"

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        """Return the ranks in ring order."""
        return _workers(self, net)

    def chunk_bytes(self, ranks: int) -> int:
        """Return what one rank sends in one step: bytes / ranks, rounded up."""
        return -(-self.bytes // ranks)

    def steps(self, ranks: int) -> int:
        """Return the number of steps of a round."""
        return (ranks - 1) * (2 if self.collective == "all-reduce" else 1)

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        hosts = self.resolve(net)
        what = items(hosts=listed(hosts), bytes=self.chunk_bytes(len(hosts)))
        yield self._line(self.kind, what, steps=self.steps(len(hosts)), messages=1)

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of a chunk."""
        return self.chunk_bytes(len(self.resolve(net))), 1

    def as_collective(self, net: Fabric, number: int) -> Collective:
        """Return the operation of the ring."""
        n = len(self.resolve(net))
        return self._collective(net, number, self.collective, self.bytes, n * self.steps(n))


def _workers(workload: AllToAll | Ring, net: Fabric) -> tuple[int, ...]:
    hosts = select_hosts(net, workload.hosts, placement=workload.placement)
    if len(hosts) < 2:
        raise ConfigError(f"hosts has {len(hosts)} worker; expected at least 2")
    return hosts


class Incast(_Rounds):
    """Senders (``hosts``) send ``bytes`` each to one receiver ``dst`` at once."""

    kind: Literal["incast"] = "incast"
    bytes: Bytes
    dst: HostNumber = 0
    hosts: HostSet = "all"
    placement: Literal["round-robin", "packed"] = "round-robin"

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        """Return the senders."""
        if self.dst >= net.n_hosts:
            raise ConfigError(
                f"dst = {self.dst} does not exist in this topology; expected 0 to {net.n_hosts - 1}"
            )
        hosts = select_hosts(net, self.hosts, placement=self.placement, without=self.dst)
        if self.dst in hosts or not hosts:
            raise ConfigError(f"hosts = {list(hosts)}; expected senders other than dst {self.dst}")
        return hosts

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        what = items(hosts=listed(self.resolve(net)), dst=self.dst, bytes=self.bytes)
        yield self._line(self.kind, what, **self._transfers)

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of a message."""
        return self._largest(self.bytes)

    def flows_at_once(self, net: Fabric, interval_us: float, run_us: float) -> float:
        """Return the flows of a round."""
        return len(self.resolve(net)) * self.messages


class Pairs(_Rounds):
    """A round of listed transfers ``[src, dst, bytes]``."""

    kind: Literal["pairs"] = "pairs"
    pairs: tuple[tuple[HostNumber, HostNumber, Bytes], ...] = Field(
        min_length=1, description="a list of [src, dst, bytes]"
    )
    rounds: int = Field(default=1, ge=0, description="the number of rounds, 0 for no end")

    def resolve(self, net: Fabric) -> tuple[tuple[int, int, int], ...]:
        """Return the transfers."""
        for i, (src, dst, _) in enumerate(self.pairs):
            for host in (src, dst):
                if host >= net.n_hosts:
                    raise ConfigError(
                        f"pairs[{i}] names host {host}, which does not exist in this topology; "
                        f"expected 0 to {net.n_hosts - 1}"
                    )
            if src == dst:
                raise ConfigError(f"pairs[{i}] sends from host {src} to itself")
        return self.pairs

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        what = items(pairs=listed(f"{a}>{b}:{size}" for a, b, size in self.resolve(net)))
        yield self._line(self.kind, what, **self._transfers)

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of the largest message."""
        return self._largest(max(size for _, _, size in self.pairs))

    def flows_at_once(self, net: Fabric, interval_us: float, run_us: float) -> float:
        """Return the flows of a round."""
        return len(self.pairs) * self.messages
