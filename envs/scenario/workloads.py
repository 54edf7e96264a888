"""Workloads: what a person writes in ``[[workloads]]``. A list of them is a mixture; start, stop
and repeat times make phases.

Times count from the start of the simulation, before the warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.collectives import Collective
from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import mean, total
from dcqcn_gym.envs.scenario.applications import ParameterServer, Storage
from dcqcn_gym.envs.scenario.hosts import (
    Bytes,
    Connections,
    HostNumber,
    HostSet,
    Priority,
    Timed,
    TimeUs,
    select_hosts,
)
from dcqcn_gym.envs.scenario.tables import (
    MOST_FLOW_BYTES,
    UNLIMITED,
    CdfField,
    FlowsField,
    FlowSize,
)
from dcqcn_gym.envs.scenario.topology import Fabric, us_to_ps

__all__ = [
    "AllToAll",
    "Flows",
    "HostSet",
    "Incast",
    "Pairs",
    "ParameterServer",
    "Permutation",
    "Poisson",
    "Ring",
    "Storage",
    "Streams",
    "Workload",
    "collectives_of",
    "largest_flow",
    "mean_gap_ps",
    "select_hosts",
    "unlimited",
]


class _Closed(Timed):
    """Closed loop: the next round starts ``off_us`` after the last flow of a round finished.

    ``rounds = 0`` repeats for ever.
    """

    off_us: TimeUs = 0.0
    rounds: int = Field(default=0, ge=0, description="the number of rounds, 0 for no end")


class _Rounds(_Closed):
    """Rounds of transfers that start together.

    Every transfer is ``messages`` messages of ``bytes`` each, posted at once on one queue pair:
    they are sent in order, the rate state is kept, and each is a flow with a completion time. With
    several ``connections`` they go to those in turn, each a queue pair.
    """

    messages: int = Field(default=1, ge=1, le=65536, description="messages per transfer")
    connections: Connections = 1


class Poisson(Timed):
    """Every host sends flows with exponential gaps, sizes from a CDF, uniform destinations.

    Give ``load`` (share of a capacity taken by payload) or ``mean_gap_us`` (per host).
    ``load_of = "host"`` refers to the host link, ``"uplink"`` to the links between ToRs and the
    tier above, counting only the payload that crosses them. ``repeat_us`` repeats the window
    from ``start_us`` to ``stop_us``.
    """

    kind: Literal["poisson"] = "poisson"
    cdf: CdfField
    load: float | None = Field(default=None, gt=0, le=1.5, description="a load such as 0.3")
    load_of: Literal["host", "uplink"] = "host"
    mean_gap_us: float | None = Field(default=None, gt=0, le=1e12)
    hosts: HostSet = "all"
    dsts: HostSet | None = None
    placement: Literal["round-robin", "packed"] = "round-robin"
    repeat_us: TimeUs = 0.0
    connections: Connections = 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.load is None) == (self.mean_gap_us is None):
            raise ConfigError("give either 'load' or 'mean_gap_us', not both or neither")
        if self.load is not None and self.cdf.thinned:
            raise ConfigError(
                f"cdf = {self.cdf.name!r} is thinned, its mean is not that of its source, so it "
                "cannot be used with a load; use 'mean_gap_us' or another CDF"
            )
        if self.repeat_us and (
            self.stop_us is None or self.repeat_us < self.stop_us - self.start_us
        ):
            raise ConfigError(
                f"repeat_us = {self.repeat_us:g}; expected a 'stop_us' and a period of at least "
                "stop_us - start_us"
            )
        return self

    def resolve(self, net: Fabric) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the sending and the receiving hosts."""
        hosts = select_hosts(net, self.hosts, placement=self.placement)
        if self.dsts is None:
            dsts = hosts
        else:
            dsts = select_hosts(net, self.dsts, placement=self.placement)
        targets = set(dsts)
        for host in hosts:
            if not targets or targets == {host}:
                raise ConfigError(f"host {host} has nobody to send to; expected another 'dsts'")
        return hosts, dsts


class AllToAll(_Rounds):
    """Every worker sends ``bytes`` to every other worker, all at once: the ON phase of training."""

    kind: Literal["alltoall"] = "alltoall"
    bytes: Bytes
    hosts: HostSet = "all"
    placement: Literal["round-robin", "packed"] = "round-robin"

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        """Return the workers."""
        return _workers(self, net)


class Permutation(AllToAll):
    """Every host sends ``bytes`` to one other host; each round draws a new permutation."""

    kind: Literal["permutation"] = "permutation"  # type: ignore[assignment]


class Ring(_Closed):
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


class Flows(StrictModel):
    """An explicit list of flows, inline or from a CSV file ``src,dst,bytes,start_ns``."""

    kind: Literal["flows"] = "flows"
    flows: FlowsField = Field(min_length=1)
    priority: Priority = 3

    def resolve(self, net: Fabric) -> None:
        """Check every flow against the topology."""
        for i, flow in enumerate(self.flows):
            problem = flow.problem(net.n_hosts)
            if problem:
                raise ConfigError(f"flows[{i}]: {problem}")


class Streams(StrictModel):
    """``flows`` flows that start at random within ``within_us`` of ``start_us``, once.

    Flow i goes from sender i to receiver i, senders (``hosts``) and receivers (``dsts``) taken in
    turn. ``bytes = "unlimited"`` is a flow that never ends.
    """

    kind: Literal["streams"] = "streams"
    flows: int = Field(ge=1, le=1_000_000, description="the number of flows")
    bytes: FlowSize = "unlimited"
    hosts: HostSet
    dsts: HostSet
    placement: Literal["round-robin", "packed"] = "packed"
    start_us: TimeUs = 0.0
    within_us: TimeUs = 0.0
    priority: Priority = 3

    def resolve(self, net: Fabric) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the sending and the receiving hosts, which have none in common."""
        hosts = select_hosts(net, self.hosts, placement=self.placement)
        dsts = select_hosts(net, self.dsts, placement=self.placement)
        if self.bytes != UNLIMITED and not 1 <= self.bytes <= MOST_FLOW_BYTES:
            raise ConfigError(f"bytes = {self.bytes}; expected 1 to 2^50, or {UNLIMITED!r}")
        both = sorted(set(hosts) & set(dsts))
        if both:
            raise ConfigError(f"host {both[0]} is in 'hosts' and in 'dsts'; expected it in one")
        for name, found in (("hosts", hosts), ("dsts", dsts)):
            if not found:
                raise ConfigError(f"{name} is empty; expected at least one host")
        return hosts, dsts


Workload = Annotated[
    Poisson
    | AllToAll
    | Ring
    | Incast
    | Permutation
    | Pairs
    | Flows
    | Streams
    | Storage
    | ParameterServer,
    Field(discriminator="kind"),
]


def largest_flow(workload: Workload, net: Fabric) -> tuple[int, int]:
    """Return the bytes of its largest flow, and how many of those a queue pair gets at once.

    Flows without an end do not count.
    """
    if isinstance(workload, Poisson):
        return int(workload.cdf.points[-1][0]), 1
    if isinstance(workload, Flows):
        return max((f.bytes for f in workload.flows if f.bytes != UNLIMITED), default=0), 1
    if isinstance(workload, Ring):
        return workload.chunk_bytes(len(workload.resolve(net))), 1
    if isinstance(workload, Streams):
        return 0 if workload.bytes == UNLIMITED else workload.bytes, 1
    if isinstance(workload, Storage):
        return max(workload.message_bytes, *workload.blocks), 1
    if isinstance(workload, ParameterServer):
        return workload.gradient_bytes, 1
    size = max(p[2] for p in workload.pairs) if isinstance(workload, Pairs) else workload.bytes
    return size, -(-workload.messages // workload.connections)


def unlimited(workload: Workload) -> bool:
    """Return True if none of its flows has an end."""
    if isinstance(workload, Flows):
        return all(flow.bytes == UNLIMITED for flow in workload.flows)
    return isinstance(workload, Streams) and workload.bytes == UNLIMITED


def collectives_of(workloads: Sequence[object], net: Fabric) -> list[Collective]:
    """Return what each all-to-all and ring among these workloads is as a collective operation."""
    found = []
    for i, workload in enumerate(workloads):
        if not isinstance(workload, AllToAll | Ring) or isinstance(workload, Permutation):
            continue
        n = len(workload.resolve(net))
        if isinstance(workload, Ring):
            kind: str = workload.collective
            size, flows = workload.bytes, n * workload.steps(n)
        else:
            kind = "all-to-all"
            size = n * workload.bytes * workload.messages
            flows = n * (n - 1) * workload.messages
        pause = max(us_to_ps(workload.off_us), min(link.delay_ps for link in net.links))
        found.append(Collective(i, kind, n, size, flows, pause))
    return found


def mean_gap_ps(workload: Poisson, net: Fabric) -> float:
    """Return the mean gap between two flows of one host, in picoseconds.

    Host load r: mean size x 8 / (r x rate); hosts of different rates share one gap, from their
    mean rate. Uplink load r: the gap at which the payload that leaves the senders' racks is
    r x the uplink capacity of these racks.
    """
    if workload.mean_gap_us is not None:
        return workload.mean_gap_us * 1e6
    hosts, dsts = workload.resolve(net)
    bits, load = workload.cdf.mean_bytes * 8.0, float(workload.load or 0.0)
    if workload.load_of == "host":
        rate = mean([net.host_link[h].rate_bps for h in hosts])
        return bits / (load * rate) * 1e12
    capacity = total(net.uplink_bps[tor] for tor in {net.tor(h) for h in hosts})
    crossing = _crossing(net, hosts, dsts)
    if capacity == 0 or crossing == 0:
        raise ConfigError(
            "load_of = 'uplink' needs flows that cross uplinks, and this topology and these "
            "hosts have none; use load_of = 'host'"
        )
    return bits * crossing / (load * capacity) * 1e12


def _crossing(net: Fabric, hosts: tuple[int, ...], dsts: tuple[int, ...]) -> float:
    """Return the sum over senders of the chance that a destination is in another rack."""
    per_rack: dict[int, int] = {}
    for dst in dsts:
        per_rack[net.tor(dst)] = per_rack.get(net.tor(dst), 0) + 1
    among = set(dsts)
    total = 0.0
    for host in hosts:
        others = len(dsts) - (host in among)
        total += (len(dsts) - per_rack.get(net.tor(host), 0)) / others
    return total
