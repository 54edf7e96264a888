"""Which exported records and samples are RoCE v2, of which flow, and their payload.

Whoever reads exports uses this, a live collector and a reader of files alike, so that the same
datagrams give the same bytes.
"""

from __future__ import annotations

from dcqcn_gym.core.flow_export.fields import DatagramError
from dcqcn_gym.core.flow_export.packets import (
    IP_HEADERS,
    ROCE_PORT,
    UDP,
    RocePacket,
    classify,
)
from dcqcn_gym.core.flow_export.sflow import FlowSample
from dcqcn_gym.core.tally import Tally

SAMPLES = "samples"
"""The unit in which sFlow is accounted for."""
FlowKey = tuple[bytes, bytes, int, int]
"""Source, target, UDP source port, queue pair (0: not known)."""


def is_roce(protocol: int, target_port: int) -> bool:
    """Return whether a record is of RoCE v2."""
    return protocol == UDP and target_port == ROCE_PORT


def payload_bytes(octets: int, packets: int, rate: int) -> int:
    """Return the payload of RoCE packets from bytes and number of IP packets, as counted."""
    return max(octets - IP_HEADERS * packets, 0) * rate


def sampled_flow(sample: FlowSample, tally: Tally) -> tuple[FlowKey, int] | None:
    """Return the flow of a sample and the payload of its packet; None, counted, if not RoCE's."""
    tally.came(SAMPLES)
    if not sample.header:
        if not is_roce(sample.protocol, sample.target_port):
            tally.leave_out(SAMPLES, "samples are of other packets than RoCE's data")
            return None
        size = payload_bytes(sample.ip_bytes, 1, 1)
        tally.take(SAMPLES)
        return (sample.source_address, sample.target_address, sample.source_port, 0), size
    try:
        packet = classify(sample.header)
    except DatagramError as error:
        tally.leave_out(SAMPLES, "samples are broken", error)
        return None
    if not isinstance(packet, RocePacket):
        tally.leave_out(SAMPLES, "samples are of other packets than RoCE's data", packet)
        return None
    tally.take(SAMPLES)
    return packet.key, packet.payload_bytes
