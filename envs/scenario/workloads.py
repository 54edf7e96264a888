"""Workloads: what a person writes in ``[[workloads]]``. A list of them is a mixture; start, stop
and repeat times make phases.

Times count from the start of the simulation, before the warm-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from dcqcn_gym.core.applications import Application
from dcqcn_gym.core.collectives import Collective
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.applications import ParameterServer, Storage
from dcqcn_gym.envs.scenario.hosts import HostSet, Priority, TimeUs, select_hosts
from dcqcn_gym.envs.scenario.poisson import Poisson
from dcqcn_gym.envs.scenario.rounds import AllToAll, Incast, Pairs, Permutation, Ring
from dcqcn_gym.envs.scenario.tables import (
    MOST_FLOW_BYTES,
    UNLIMITED,
    Cdf,
    FlowsField,
    FlowSize,
)
from dcqcn_gym.envs.scenario.topology import Fabric, us_to_ps
from dcqcn_gym.envs.scenario.workload import BaseWorkload, items, listed

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
    "applications_of",
    "collectives_of",
    "draws_traffic",
    "select_hosts",
]


class Flows(BaseWorkload):
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
    """Return how the operations of each of these workloads that has some are told."""
    found = (workload.as_application(net, i) for i, workload in enumerate(workloads))
    return [one for one in found if one is not None]
