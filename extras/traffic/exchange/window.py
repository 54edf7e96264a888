"""The window that HPCC's simulator computes: the largest product of rate and round trip."""

from __future__ import annotations

from dcqcn_gym.envs.scenario.fabric import Fabric


def window_bytes(net: Fabric, payload_bytes: int) -> int:
    """Return the largest window of all pairs of hosts, in bytes.

    A round trip is twice the delays of a shortest path plus the time of a full payload on each
    link, in whole nanoseconds; the rate is that of its slowest link.
    """
    peers: list[list[tuple[int, int, int]]] = [[] for _ in range(net.n_nodes)]
    for link in net.links:
        peers[link.a].append((link.b, link.ps_per_byte, link.delay_ps))
        peers[link.b].append((link.a, link.ps_per_byte, link.delay_ps))
    largest, known = 0, set()
    for host in range(net.n_hosts):
        link = net.host_link[host]
        place = (link.b, link.ps_per_byte, link.delay_ps)
        if place not in known:  # hosts alike at one switch have the same round trips
            known.add(place)
            largest = max(largest, _largest_from(net, host, peers, payload_bytes))
    return largest


def _largest_from(
    net: Fabric, host: int, peers: list[list[tuple[int, int, int]]], payload: int
) -> int:
    found = {host: (0, 0, 0)}  # delay in ps, sending in ns, slowest ps per byte
    edge, largest = [host], 0
    for node in edge:
        delay, sending, slowest = found[node]
        for peer, step, flight in peers[node]:
            if peer in found:
                continue
            found[peer] = (delay + flight, sending + payload * step // 1000, max(slowest, step))
            if not net.is_host(peer):
                edge.append(peer)
                continue
            trip_ns = 2 * found[peer][0] // 1000 + found[peer][1]
            largest = max(largest, trip_ns * 1000 // found[peer][2])
    return largest
