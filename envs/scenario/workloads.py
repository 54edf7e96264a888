"""Workloads of ``[[workloads]]``: a list of them is a mixture.

Start, stop and repeat times make phases. Times count from the start of the simulation, before
the warm-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import ByKind, ShortDumpModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import mean, total
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.hosts import (
    Connections,
    HostSet,
    Priority,
    Timed,
    TimeUs,
    select_hosts,
)
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.tables import (
    MOST_FLOW_BYTES,
    UNLIMITED,
    Cdf,
    CdfField,
    FlowsField,
    FlowSize,
)
from dcqcn_gym.envs.scenario.workload import BaseWorkload, items, listed, stop_ps

if TYPE_CHECKING:
    from dcqcn_gym.core.applications import Application
    from dcqcn_gym.core.collectives import Collective
    from dcqcn_gym.envs.scenario.servers import Servers


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

    def check(self, net: Fabric, servers: Servers | None) -> None:
        """Raise :class:`ConfigError` for hosts that are not there and a load nobody can offer."""
        self.mean_gap_ps(net)

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        hosts, dsts = self.resolve(net)
        several = {"connections": self.connections} if self.connections > 1 else {}
        yield "workload poisson " + items(
            cdf=cdfs.index(self.cdf),
            hosts=listed(hosts),
            dsts=listed(dsts),
            mean_gap_ps=repr(self.mean_gap_ps(net)),
            start_ps=us_to_ps(self.start_us),
            stop_ps=stop_ps(self.stop_us),
            repeat_ps=us_to_ps(self.repeat_us),
            priority=self.priority,
            **several,
        )

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the largest size of the distribution."""
        return int(self.cdf.points[-1][0]), 1

    def flows_at_once(self, net: Fabric, interval_us: float, run_us: float) -> float:
        """Return what starts in an interval, or what hosts cannot send until the run is over."""
        hosts, _ = self.resolve(net)
        gap_us = self.mean_gap_ps(net) / 1e6
        offered = self.cdf.mean_bytes * 8e6 / gap_us
        rate = mean([net.host_link[host].rate_bps for host in hosts])
        span = run_us
        if self.stop_us is not None and not self.repeat_us:
            span = min(span, self.stop_us - self.start_us)
        left = max(0.0, 1.0 - rate / offered)
        return len(hosts) / gap_us * max(min(interval_us, span), left * span)

    @property
    def amount(self) -> str:
        """The load, or the gap that is given in its place."""
        key = "load" if self.mean_gap_us is None else "mean_gap_us"
        return f"{key} = {getattr(self, key):g}"

    @property
    def endless(self) -> bool:
        """Whether there is no end, or the window comes again."""
        return self.stop_us is None or bool(self.repeat_us)

    @property
    def distribution(self) -> Cdf:
        """The flow sizes."""
        return self.cdf

    def mean_gap_ps(self, net: Fabric) -> float:
        """Return the mean gap between two flows of one host, in picoseconds.

        Host load r: mean size x 8 / (r x rate); hosts of different rates share one gap, from their
        mean rate. Uplink load r: the gap at which the payload that leaves the senders' racks is
        r x the uplink capacity of these racks.
        """
        if self.mean_gap_us is not None:
            return self.mean_gap_us * 1e6
        hosts, dsts = self.resolve(net)
        bits, load = self.cdf.mean_bytes * 8.0, float(self.load or 0.0)
        if self.load_of == "host":
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


class Flows(BaseWorkload, ShortDumpModel):
    """An explicit list of flows, inline or from a CSV file ``src,dst,bytes,start_ns``.

    With ``blocks_us`` a setting is judged on blocks of that length of its later part, in another
    order; of several lists the longest block counts. ``sampled`` is the number of packets of which
    one was counted where the list is of a sampled export: then it is not the network's traffic.
    ``stretch_ms`` says where a part lies that was cut out of a longer list.
    """

    later: ClassVar[tuple[str, ...]] = ("blocks_us", "sampled", "stretch_ms")

    kind: Literal["flows"] = "flows"
    flows: FlowsField = Field(min_length=1)
    priority: Priority = 3
    blocks_us: TimeUs = 0.0
    sampled: int = Field(default=1, ge=1, description="one packet in so many was counted")
    stretch_ms: tuple[float, float, float] | None = Field(
        default=None, description="begin and end of this stretch of a trace, and its whole length"
    )

    def resolve(self, net: Fabric) -> None:
        """Check every flow against the topology."""
        for i, flow in enumerate(self.flows):
            problem = flow.problem(net.n_hosts)
            if problem:
                raise ConfigError(f"flows[{i}]: {problem}")

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield a line a flow below one of their own."""
        yield f"workload flows priority={self.priority}"
        for flow in self.flows:
            yield f"flow {flow.src} {flow.dst} {flow.bytes} {round(flow.start_ns * 1000)}"

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the largest flow of the list that has an end."""
        return max((f.bytes for f in self.flows if f.bytes != UNLIMITED), default=0), 1

    @property
    def unlimited(self) -> bool:
        """Whether no flow of the list has an end."""
        return all(flow.bytes == UNLIMITED for flow in self.flows)


class Streams(BaseWorkload):
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

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the line of the compiled text."""
        hosts, dsts = self.resolve(net)
        yield "workload streams " + items(
            hosts=listed(hosts),
            dsts=listed(dsts),
            bytes=self.bytes,
            flows=self.flows,
            start_ps=us_to_ps(self.start_us),
            within_ps=us_to_ps(self.within_us),
            priority=self.priority,
        )

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of a flow that has an end."""
        return 0 if self.bytes == UNLIMITED else self.bytes, 1

    @property
    def unlimited(self) -> bool:
        """Whether the flows have no end."""
        return self.bytes == UNLIMITED


KINDS = {
    "poisson": f"{__name__}:Poisson",
    "alltoall": "dcqcn_gym.envs.scenario.rounds:AllToAll",
    "ring": "dcqcn_gym.envs.scenario.rounds:Ring",
    "incast": "dcqcn_gym.envs.scenario.rounds:Incast",
    "permutation": "dcqcn_gym.envs.scenario.rounds:Permutation",
    "pairs": "dcqcn_gym.envs.scenario.rounds:Pairs",
    "flows": f"{__name__}:Flows",
    "streams": f"{__name__}:Streams",
    "storage": "dcqcn_gym.envs.scenario.applications:Storage",
    "parameter-server": "dcqcn_gym.envs.scenario.applications:ParameterServer",
    "job": "dcqcn_gym.envs.scenario.job:JobLoad",
}
"""Kind to ``module:Class``: one line each, imported when a scenario has one."""

Workload = Annotated[BaseWorkload, ByKind(KINDS)]


def collectives_of(workloads: Sequence[BaseWorkload], net: Fabric) -> list[Collective]:
    """Return what each of these workloads that is a collective operation is."""
    found = (workload.as_collective(net, i) for i, workload in enumerate(workloads))
    return [one for one in found if one is not None]


def draws_traffic(scenario: object) -> bool:
    """Return whether another seed gives other traffic; ``scenario`` is that of a log's first line.

    Lists of flows and rounds of given transfers are the same on every seed: what seeds change under
    them is only which packets are marked. False where the log does not hold the workloads.
    """
    found = scenario.get("workloads") if isinstance(scenario, Mapping) else None
    return isinstance(found, Sequence) and any(
        isinstance(one, Mapping) and _draws(one) for one in found
    )


def _draws(workload: Mapping[str, Any]) -> bool:
    if workload.get("kind") == "streams":
        return bool(workload.get("within_us"))
    return workload.get("kind") in ("poisson", "permutation", "storage")


def applications_of(workloads: Sequence[BaseWorkload], net: Fabric) -> list[Application]:
    """Return how the operations of those workloads that have some are recognised."""
    found = (workload.as_application(net, i) for i, workload in enumerate(workloads))
    return [one for one in found if one is not None]
