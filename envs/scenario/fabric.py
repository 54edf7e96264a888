"""An expanded topology: hosts, switches in tiers, and links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dcqcn_gym.core.groups import Devices
from dcqcn_gym.envs.scenario.rates import Link


@dataclass(frozen=True)
class Fabric:
    """An expanded topology: hosts ``0..n_hosts-1``, then one tier per switch, then the links."""

    n_hosts: int
    tiers: tuple[int, ...]
    links: tuple[Link, ...]

    @property
    def n_nodes(self) -> int:
        """Hosts and switches."""
        return self.n_hosts + len(self.tiers)

    def is_host(self, node: int) -> bool:
        """True if this node is a host."""
        return node < self.n_hosts

    def tier(self, node: int) -> int:
        """Tier of a switch: 0 ToR, 1 spine or aggregation, 2 core."""
        return self.tiers[node - self.n_hosts]

    @cached_property
    def tier_of(self) -> dict[int, int]:
        """Tier of every switch, by its node number."""
        return {node: self.tier(node) for node in range(self.n_hosts, self.n_nodes)}

    @cached_property
    def peers(self) -> tuple[tuple[int, ...], ...]:
        """The nodes that each node has links to, in the order of its ports."""
        peers: list[list[int]] = [[] for _ in range(self.n_nodes)]
        for link in self.links:
            peers[link.a].append(link.b)
            peers[link.b].append(link.a)
        return tuple(map(tuple, peers))

    @cached_property
    def devices(self) -> Devices:
        """Hosts, switches and egress ports, ports numbered node by node as in reports."""
        peers = self.peers
        ports = [(node, index) for node, found in enumerate(peers) for index in range(len(found))]
        nodes, indices = zip(*ports, strict=True)
        up = tuple(self._is_up(node, peer) for node, found in enumerate(peers) for peer in found)
        return Devices(self.n_hosts, nodes, indices, self.tier_of, port_up=up)

    def _is_up(self, node: int, peer: int) -> bool:
        if self.is_host(node) or self.is_host(peer):
            return self.is_host(node)
        return self.tier(peer) >= self.tier(node)

    @cached_property
    def host_link(self) -> tuple[Link, ...]:
        """The one link of each host, as ``a`` = host, ``b`` = its ToR."""
        found: dict[int, Link] = {}
        for link in self.links:
            for end, peer in ((link.a, link.b), (link.b, link.a)):
                if self.is_host(end):
                    found[end] = Link(end, peer, link.ps_per_byte, link.delay_ps)
        return tuple(found[host] for host in range(self.n_hosts))

    def tor(self, host: int) -> int:
        """The switch that a host hangs on."""
        return self.host_link[host].b

    @cached_property
    def racks(self) -> tuple[tuple[int, ...], ...]:
        """Hosts of each ToR, both in ascending order."""
        racks: dict[int, list[int]] = {}
        for host in range(self.n_hosts):
            racks.setdefault(self.tor(host), []).append(host)
        return tuple(tuple(racks[tor]) for tor in sorted(racks))

    @cached_property
    def uplink_bps(self) -> dict[int, float]:
        """Capacity of each ToR (a switch with hosts) towards other switches, in bit/s."""
        total = {self.tor(host): 0.0 for host in range(self.n_hosts)}
        for link in self.links:
            if not self.is_host(link.a) and not self.is_host(link.b):
                for end in (link.a, link.b):
                    if end in total:
                        total[end] += link.rate_bps
        return total

    @cached_property
    def fastest_bps(self) -> float:
        """Rate of the fastest link."""
        return max(link.rate_bps for link in self.links)

    def round_robin(self) -> tuple[int, ...]:
        """All hosts, the first of every rack, then the second of every rack, and so on."""
        deepest = max(len(rack) for rack in self.racks)
        return tuple(rack[i] for i in range(deepest) for rack in self.racks if i < len(rack))
