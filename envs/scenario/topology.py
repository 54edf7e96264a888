"""Topologies: what a person writes in ``[topology]``, expanded into one plain network.

Hosts are numbered first (rack by rack), then switches (ToRs, then upper tiers). Links are listed
hosts first; this order numbers the ports of each node. Rates must give whole picoseconds per byte.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import ShortDumpModel, StrictModel
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.limits import check_ports, check_size
from dcqcn_gym.envs.scenario.rates import (
    DelayUs,
    Gbps,
    Link,
    PsPerByte,
    Rated,
    us_to_ps,
)
from dcqcn_gym.envs.scenario.servers import ServerFabric
from dcqcn_gym.envs.scenario.three_tier import ThreeTier

MAX_SWITCHES = 65536
Count = Annotated[int, Field(ge=1, le=MAX_SWITCHES)]


class SingleSwitch(Rated):
    """Every host on one switch."""

    kind: Literal["single-switch"] = "single-switch"
    hosts: int = Field(ge=2, le=65536, description="the number of hosts")
    gbps: Gbps = 100.0
    ps_per_byte: PsPerByte = None
    delay_us: DelayUs = 5.0

    def size(self) -> tuple[int, int, int]:
        """Return the numbers of hosts, switches and links."""
        return self.hosts, 1, self.hosts

    def expand(self) -> Fabric:
        """Return the plain network."""
        step, delay = self.step_of(), us_to_ps(self.delay_us)
        links = tuple(Link(h, self.hosts, step, delay) for h in range(self.hosts))
        return Fabric(self.hosts, (0,), links)


class Racks(Rated):
    """Further racks of a leaf-spine network, of other hosts or uplinks than the first ones."""

    tors: Count = Field(description="the number of ToR switches")
    hosts_per_tor: Count = Field(description="the number of hosts of each rack")
    links_per_spine: int = Field(default=1, ge=1, le=64, description="parallel links ToR to spine")
    host_gbps: Gbps = 100.0
    host_ps_per_byte: PsPerByte = None
    uplink_gbps: Gbps = 100.0
    uplink_ps_per_byte: PsPerByte = None


class LeafSpine(Rated, ShortDumpModel):
    """Two tiers: every ToR has ``links_per_spine`` links to every spine.

    Give ``spines`` or ``oversubscription`` (host capacity of a rack over its uplink capacity).
    ``racks`` are further ones, of other speeds or sizes; the oversubscription is the first ones'.
    """

    kind: Literal["leaf-spine"] = "leaf-spine"
    tors: Count = Field(description="the number of ToR switches")
    hosts_per_tor: Count = Field(description="the number of hosts of each rack")
    spines: Count | None = Field(default=None, description="the number of spine switches")
    oversubscription: float | None = Field(
        default=None, gt=0, description="rack over uplink capacity"
    )
    links_per_spine: int = Field(default=1, ge=1, le=64, description="parallel links ToR to spine")
    host_gbps: Gbps = 100.0
    host_ps_per_byte: PsPerByte = None
    uplink_gbps: Gbps = 100.0
    uplink_ps_per_byte: PsPerByte = None
    host_delay_us: DelayUs = 5.0
    uplink_delay_us: DelayUs = 5.0
    racks: tuple[Racks, ...] = ()
    later = ("racks",)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.spines is None) == (self.oversubscription is None):
            raise ConfigError("give either 'spines' or 'oversubscription', not both or neither")
        if self.tors * self.hosts_per_tor < 2:
            raise ConfigError("a network needs at least 2 hosts; raise 'tors' or 'hosts_per_tor'")
        self.n_spines  # noqa: B018  (raises if it is not whole)
        return self

    def size(self) -> tuple[int, int, int]:
        """Return the numbers of hosts, switches and links."""
        spines = self.n_spines
        hosts = count(r.tors * r.hosts_per_tor for r in self._all)
        uplinks = count(r.tors * spines * r.links_per_spine for r in self._all)
        return hosts, count(r.tors for r in self._all) + spines, hosts + uplinks

    @property
    def _all(self) -> tuple[LeafSpine | Racks, ...]:
        return (self, *self.racks)

    @property
    def n_spines(self) -> int:
        """Number of spines, given or from the oversubscription."""
        if self.spines is not None:
            return self.spines
        rack = self.hosts_per_tor * self.step_of("uplink_") / self.step_of("host_")
        exact = rack / (float(self.oversubscription or 1) * self.links_per_spine)
        if not 1 <= exact <= MAX_SWITCHES or abs(exact - round(exact)) > 1e-9:
            raise ConfigError(
                f"oversubscription = {self.oversubscription:g} needs {exact:.4g} spines; expected "
                f"a value that gives a whole number of spines, 1 to {MAX_SWITCHES} (or set "
                "'spines')"
            )
        return round(exact)

    def expand(self) -> Fabric:
        """Return the plain network."""
        spines = self.n_spines
        tors = [
            (rack, rack.step_of("host_"), rack.step_of("uplink_"))
            for rack in self._all
            for _ in range(rack.tors)
        ]
        n = count(rack.hosts_per_tor for rack, _, _ in tors)
        near, far = us_to_ps(self.host_delay_us), us_to_ps(self.uplink_delay_us)
        below = [
            (n + i, down) for i, (r, down, _) in enumerate(tors) for _ in range(r.hosts_per_tor)
        ]
        links = [Link(h, tor, down, near) for h, (tor, down) in enumerate(below)]
        links += [
            Link(n + i, n + len(tors) + spine, up, far)
            for i, (rack, _, up) in enumerate(tors)
            for spine in range(spines)
            for _ in range(rack.links_per_spine)
        ]
        return Fabric(n, (0,) * len(tors) + (1,) * spines, tuple(links))


class Dumbbell(Rated):
    """Two switches with hosts on both sides of one bottleneck link."""

    kind: Literal["dumbbell"] = "dumbbell"
    left: Count = Field(description="the number of hosts on the left")
    right: Count = Field(description="the number of hosts on the right")
    host_gbps: Gbps = 100.0
    host_ps_per_byte: PsPerByte = None
    bottleneck_gbps: Gbps = 100.0
    bottleneck_ps_per_byte: PsPerByte = None
    host_delay_us: DelayUs = 5.0
    bottleneck_delay_us: DelayUs = 5.0

    def size(self) -> tuple[int, int, int]:
        """Return the numbers of hosts, switches and links."""
        return self.left + self.right, 2, self.left + self.right + 1

    def expand(self) -> Fabric:
        """Return the plain network."""
        n = self.left + self.right
        step, delay = self.step_of("host_"), us_to_ps(self.host_delay_us)
        links = [Link(h, n if h < self.left else n + 1, step, delay) for h in range(n)]
        middle = us_to_ps(self.bottleneck_delay_us)
        links.append(Link(n, n + 1, self.step_of("bottleneck_"), middle))
        return Fabric(n, (0, 0), tuple(links))


class FatTree(Rated):
    """Three tiers, k-ary: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores.

    Each edge switch has ``hosts_per_edge`` hosts (k/2 by default, which is full bisection), each
    aggregation switch ``cores_per_agg`` cores (k/2 by default): fewer leave out cores.
    """

    kind: Literal["fat-tree"] = "fat-tree"
    k: int = Field(ge=2, le=64, multiple_of=2, description="ports per switch, an even number")
    hosts_per_edge: Count | None = Field(default=None, description="hosts of each edge switch")
    cores_per_agg: Count | None = Field(
        default=None, description="cores above each aggregation switch, at most k/2"
    )
    host_gbps: Gbps = 100.0
    host_ps_per_byte: PsPerByte = None
    edge_gbps: Gbps = 100.0
    edge_ps_per_byte: PsPerByte = None
    core_gbps: Gbps = 100.0
    core_ps_per_byte: PsPerByte = None
    delay_us: DelayUs = 5.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.cores_per_agg is not None and self.cores_per_agg > self.k // 2:
            raise ConfigError(
                f"cores_per_agg = {self.cores_per_agg}; expected at most k/2 = {self.k // 2}"
            )
        return self

    @property
    def tiers(self) -> ThreeTier:
        """The same tree in the words of :class:`ThreeTier`."""
        half = self.k // 2
        return ThreeTier(
            pods=self.k, tors_per_pod=half, hosts_per_tor=self.hosts_per_edge or half,
            aggs_per_pod=half, cores_per_agg=self.cores_per_agg or half,
            host_ps_per_byte=self.step_of("host_"), tor_ps_per_byte=self.step_of("edge_"),
            core_ps_per_byte=self.step_of("core_"), delay_us=self.delay_us,
        )  # fmt: skip

    def size(self) -> tuple[int, int, int]:
        """Return the numbers of hosts, switches and links."""
        return self.tiers.size()

    def expand(self) -> Fabric:
        """Return the plain network."""
        return self.tiers.expand()


class GraphLink(Rated):
    """``parallel`` links between two named nodes: hosts ``h0, h1, ...``, switches ``s0, ...``."""

    ends: tuple[str, str] = Field(description='two node names such as ["h0", "s0"]')
    gbps: Gbps = 100.0
    ps_per_byte: PsPerByte = None
    delay_us: DelayUs = 5.0
    parallel: int = Field(default=1, ge=1, le=64, description="number of such links side by side")


class Graph(StrictModel):
    """Any connected network, link by link; each host has exactly one link.

    ``tiers`` gives the tier of each switch; by default 0 for switches with hosts, else 1.
    """

    kind: Literal["graph"] = "graph"
    hosts: int = Field(ge=2, le=65536, description="the number of hosts, named h0, h1, ...")
    switches: Count = Field(description="the number of switches, named s0, s1, ...")
    links: tuple[GraphLink, ...] = Field(min_length=1, description="the list of links")
    tiers: tuple[Annotated[int, Field(ge=0, le=2)], ...] | None = None

    def size(self) -> tuple[int, int, int]:
        """Return the numbers of hosts, switches and links."""
        return self.hosts, self.switches, count(link.parallel for link in self.links)

    @model_validator(mode="after")
    def _check(self) -> Self:
        ends = [(self._node(i, 0), self._node(i, 1)) for i in range(len(self.links))]
        self._check_hosts(ends)
        reached, edge = {0}, [0]
        peers: dict[int, list[int]] = {}
        for a, b in ends:
            peers.setdefault(a, []).append(b)
            peers.setdefault(b, []).append(a)
        while edge:
            new = [p for p in peers.get(edge.pop(), []) if p not in reached]
            reached.update(new)
            edge += new
        for node in range(self.hosts + self.switches):
            if node not in reached:
                raise ConfigError(f"{self._name(node)} cannot be reached from h0; add a link to it")
        if self.tiers is not None and len(self.tiers) != self.switches:
            raise ConfigError(
                f"tiers has {len(self.tiers)} entries; expected one for each of the "
                f"{self.switches} switches"
            )
        return self

    def _check_hosts(self, ends: list[tuple[int, int]]) -> None:
        used = [0] * self.hosts
        for i, (a, b) in enumerate(ends):
            if a == b or (a < self.hosts and b < self.hosts):
                raise ConfigError(
                    f"links[{i}] joins {self._name(a)} and {self._name(b)}; expected a switch "
                    "at one end and another node at the other"
                )
            for end in (a, b):
                if end < self.hosts:
                    used[end] += self.links[i].parallel
        for host, n in enumerate(used):
            if n != 1:
                raise ConfigError(f"h{host} has {n} links; expected exactly one")

    def _node(self, i: int, end: int) -> int:
        name = self.links[i].ends[end]
        known = {"h": self.hosts, "s": self.switches}.get(name[:1], 0)
        if not name[1:].isdecimal() or int(name[1:]) >= known:
            raise ConfigError(
                f"links[{i}] ends at {quote(name)}, which does not exist; expected a host h0 to "
                f"h{self.hosts - 1} or a switch s0 to s{self.switches - 1}"
            )
        return int(name[1:]) + (0 if name[0] == "h" else self.hosts)

    def _name(self, node: int) -> str:
        return f"h{node}" if node < self.hosts else f"s{node - self.hosts}"

    def expand(self) -> Fabric:
        """Return the plain network; host links first, so that port 0 of a host is its link."""
        links = [
            Link(self._node(i, 0), self._node(i, 1), x.step_of(), us_to_ps(x.delay_us))
            for i, x in enumerate(self.links)
            for _ in range(x.parallel)
        ]
        near = {max(x.a, x.b) for x in links if min(x.a, x.b) < self.hosts}
        every = range(self.hosts, self.hosts + self.switches)
        tiers = self.tiers or tuple(0 if switch in near else 1 for switch in every)
        return Fabric(self.hosts, tiers, tuple(links))


Topology = Annotated[
    SingleSwitch | LeafSpine | Dumbbell | FatTree | ThreeTier | ServerFabric | Graph,
    Field(discriminator="kind"),
]


@lru_cache(maxsize=64)
def fabric(topology: Topology) -> Fabric:
    """Return the expanded network of a topology (cached; a network is immutable).

    Raises :class:`ConfigError`, before it expands anything, if the network would be too large, and
    if a switch has too many ports.
    """
    check_size(*topology.size())
    net = topology.expand()
    check_ports(net.n_hosts, (end for link in net.links for end in (link.a, link.b)))
    return net
