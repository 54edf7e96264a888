"""Bytes that monitoring and tuning would put on the wire, event-driven as in PARALEON (ICNP'24).

The engine always computes every metric. A real deployment does not: the flow-size distribution
travels in every interval, round trips and pauses only while a tuner needs them, a setting only
when it changes (section III-A). What travels is what the records below pack into; beside it
stands what Table IV of the paper gives for the same events.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS, NIC_KNOBS, KnobTable
from dcqcn_gym.core.sums import count

RNIC_RECORD = struct.Struct("<3f")
"""RNIC to controller: bytes sent, mean base RTT / RTT, paused time."""
SWITCH_HEADER = struct.Struct("<2I")
"""Begins a switch's message to the controller: node and number of ports."""
PORT_RECORD = struct.Struct("<2f")
"""One port of it: bytes sent, paused time."""
NIC_DISPATCH = struct.Struct(f"<2I{len(NIC_KNOBS)}f")
"""Controller to RNIC: node, sequence number, the knobs of the NIC."""
ECN_DISPATCH = struct.Struct(f"<2I{len(ECN_KNOBS)}f")
"""Controller to switch: node, sequence number, the ECN knobs of all its ports."""


@dataclass(frozen=True)
class Published:
    """Bytes per message in PARALEON Table IV (testbed, 30 ms intervals)."""

    switch: int = 520
    """Switch to controller, while tuning."""
    rnic: int = 12
    """RNIC to controller, while tuning."""
    dispatch: int = 76
    """Controller to each device, per setting."""
    fsd: int = 8
    """Share of ``switch`` that is the distribution, which always travels. Our reading of 520 as
    2 x 4 + 64 ports x 2 x 4 bytes; the paper does not split it."""


PUBLISHED = Published()


@dataclass(frozen=True)
class WireCost:
    """Bytes on the wire in one step, event-driven."""

    fsd_bytes: int = 0
    """The monitor's messages, in every interval."""
    metrics_bytes: int = 0
    """Round trips and pauses, in the intervals that a tuner needed them for."""
    dispatch_bytes: int = 0
    """The setting to every device, if it changed."""
    published_bytes: int = 0
    """The same events at the sizes of Table IV."""


def wire_cost(
    reports: Sequence[IntervalReport],
    tuning: Sequence[bool],
    *,
    dispatched: bool,
    table: KnobTable = DCQCN,
) -> WireCost:
    """Return the bytes of a step: one flag per report, True if its metrics were needed.

    ``dispatched`` says whether the setting changed at the beginning of the step. The size of the
    network is read from the reports; without one the cost is 0. ``table`` has a setting's knobs.
    """
    if not reports:
        return WireCost()
    hosts = len(reports[0].host_tx_bytes)
    ports = reports[0].node_ports[hosts:]
    switches = int(np.count_nonzero(ports))
    collected = count(tuning)
    metrics = hosts * RNIC_RECORD.size + switches * SWITCH_HEADER.size
    metrics += int(ports.sum()) * PORT_RECORD.size
    more = 4 * (len(table.nic) - len(NIC_KNOBS))  # of another scheme than DCQCN
    optional = 4 * (len(table.ecn) - len(ECN_KNOBS))
    dispatch = hosts * (NIC_DISPATCH.size + more) + switches * (ECN_DISPATCH.size + optional)
    silent = len(reports) - collected
    published = collected * (hosts * PUBLISHED.rnic + switches * PUBLISHED.switch)
    published += silent * switches * PUBLISHED.fsd
    published += dispatched * (hosts + switches) * PUBLISHED.dispatch
    return WireCost(
        fsd_bytes=count(r.fsd.monitor_bytes for r in reports),
        metrics_bytes=collected * metrics,
        dispatch_bytes=dispatched * dispatch,
        published_bytes=published,
    )
