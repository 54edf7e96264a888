"""The facts of a scenario's fabric, without its traffic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.scenario import Network


def facts_of(network: Network) -> FabricFacts:
    """Return what is known of a network before any traffic."""
    net = network.fabric
    fastest, slowest = network.line_rate_bps, min(link.rate_bps for link in net.host_link)
    return FabricFacts(
        line_rate_gbps=fastest / 1e9,
        hosts=net.n_hosts,
        meeting_hosts=net.n_hosts - 1,
        base_rtt_us=2 * _longest_path_ps(net) / 1e6,
        shared_bytes=network.shared_bytes,
        oversubscription=_oversubscription(net),
        scheme=network.scheme.name,
        reaction_point=network.rp,
        pfc=network.switch.pfc,
        slowest_gbps=slowest / 1e9 if slowest < fastest else None,
    )


def _oversubscription(net: Fabric) -> float:
    """Return host over uplink capacity of the worst rack; 1 without a rack that has uplinks."""
    worst = 1.0
    for rack in net.racks:
        uplinks = net.uplink_bps[net.tor(rack[0])]
        hosts = len(rack) * net.host_link[rack[0]].rate_bps
        if uplinks > 0:
            worst = max(worst, hosts / uplinks)
    return worst


def _longest_path_ps(net: Fabric) -> int:
    """Return the delay of the longest of the shortest paths between two hosts.

    Two sweeps: exact for trees and for every fabric whose racks are alike.
    """
    peers: Mapping[int, list[tuple[int, int]]] = defaultdict(list)
    for link in net.links:
        peers[link.a].append((link.b, link.delay_ps))
        peers[link.b].append((link.a, link.delay_ps))
    first = _delays(0, peers, net.n_nodes)[: net.n_hosts]
    farthest = max(range(net.n_hosts), key=first.__getitem__)
    return max(_delays(farthest, peers, net.n_nodes)[: net.n_hosts])


def _delays(
    source: int, peers: Mapping[int, Sequence[tuple[int, int]]], nodes: int
) -> Sequence[int]:
    found = [-1] * nodes
    queue = [(0, source)]
    while queue:
        delay, node = heappop(queue)
        if found[node] >= 0:
            continue
        found[node] = delay
        for peer, more in peers[node]:
            if found[peer] < 0:
                heappush(queue, (delay + more, peer))
    return found
