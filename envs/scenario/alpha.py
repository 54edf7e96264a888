"""The share of the free buffer at which PFC pauses, computed from buffer, rates and delays.

PARALEON (ICNP'24) and HPCC fix alpha in advance, from topology and rates; DCQCN (SIGCOMM'15,
section 4) says what it must be so that marking comes before PFC: with every one of a switch's n
ports holding q bytes, no ingress may have reached its threshold, ``n q < alpha (P - n q)``, where P
is the buffer less headroom and reserve. (The paper has this for eight priorities and q = Kmin.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.network import Network

__all__ = ["computed_alpha"]

_POWERS = (-7, 3)
"""Devices hold powers of two; SONiC's ``dynamic_th`` goes from 2^-7 to 2^3."""


def computed_alpha(network: Network) -> float:
    """Return the smallest power of two in 1/128..8 that holds for every switch; 8 if none does.

    q is ours: what a host link brings in one round trip across the fabric, its rate times the sum
    of delays of the longest path there and back, so that alpha does not depend on any knob.
    """
    net = network.fabric
    ports: dict[int, int] = {}
    taken: dict[int, int] = {}
    for link in net.links:
        room = network.headroom_bytes(link.ps_per_byte, link.delay_ps)
        for end in (link.a, link.b):
            ports[end] = ports.get(end, 0) + 1
            taken[end] = taken.get(end, 0) + room + network.switch.reserve_bytes
    hops = 2 * (1 + max(net.tier(node) for node in range(net.n_hosts, net.n_nodes)))
    trip_s = 2 * hops * max(link.delay_ps for link in net.links) * 1e-12
    queued = network.line_rate_bps / 8 * trip_s
    classes = max(1, len(network.switch.lossless))
    needs = [
        _needed(network.buffer_bytes - classes * taken[node], ports[node] * queued)
        for node in range(net.n_hosts, net.n_nodes)
    ]
    low, high = _POWERS
    power = max(math.ceil(math.log2(need)) if need < math.inf else high for need in needs)
    return float(2.0 ** min(max(power, low), high))


def _needed(pool: float, queued: float) -> float:
    """Return the alpha at which so many queued bytes just reach a threshold."""
    return queued / (pool - queued) if pool > queued else math.inf
