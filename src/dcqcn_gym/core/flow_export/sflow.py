"""sFlow version 5: samples of packets (sflow.org, sflow_version_5.txt), all numbers in XDR.

A datagram has samples, a flow sample has records, and everything tells its own length: what is not
known here (other vendors' records) is counted and stepped over, what contradicts its length is no
datagram. A packet is known by its first bytes or, without them, by the record of its IP header.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from dcqcn_gym.core.flow_export.fields import DatagramError, Fields

VERSION = 5
FLOW, EXPANDED_FLOW = 1, 3
RAW_HEADER, SAMPLED_IPV4, SAMPLED_IPV6 = 1, 3, 4
COUNTERS = (2, 4)
ETHERNET = 1
MOST_BYTES = 1400
"""Bytes of a datagram that this module makes; those of others may be longer."""
_FIXED = 28


@dataclass(frozen=True)
class FlowSample:
    """One packet in about ``rate`` that a source saw."""

    source: int
    """Number of the interface or port group."""
    rate: int
    frame_bytes: int
    """Length of the whole frame on the wire, checksum included."""
    header: bytes
    """Its first bytes; none if the switch sent only what follows."""
    source_address: bytes = b""
    """Of a sample without first bytes, as are those below."""
    target_address: bytes = b""
    protocol: int = 0
    ip_bytes: int = 0
    source_port: int = 0
    target_port: int = 0
    drops: int = 0
    """Samples that were lost until now for want of resources."""


@dataclass(frozen=True)
class SflowDatagram:
    """What one datagram says."""

    agent: bytes
    sequence: int
    samples: tuple[FlowSample, ...]
    other: tuple[str, ...] = ()
    """What else it holds, one sentence's subject each."""


def parse(data: bytes) -> SflowDatagram:
    """Read a datagram; raise DatagramError, which says why, if it is none."""
    fields = Fields(data, "sFlow datagram")
    version = fields.number(4)
    if version != VERSION:
        raise DatagramError(f"sFlow datagram: version {version}; expected {VERSION}")
    family = fields.number(4)
    if family not in (1, 2):
        raise DatagramError(f"sFlow datagram: address of type {family}; expected 1 or 2")
    agent = fields.take(4 if family == 1 else 16)
    fields.take(4)  # sub-agent
    sequence = fields.number(4)
    fields.take(4)  # uptime
    samples: list[FlowSample] = []
    other: list[str] = []
    for _ in range(fields.number(4)):
        kind = fields.number(4)
        body = fields.within(fields.number(4), "sFlow sample")
        if kind in (FLOW, EXPANDED_FLOW):
            found = _flow_sample(body, expanded=kind == EXPANDED_FLOW)
            samples += found
            other += [] if found else ["flow samples without a packet's header"]
        else:
            other.append("counter samples" if kind in COUNTERS else f"samples of type {kind}")
    fields.end()
    return SflowDatagram(agent, sequence, tuple(samples), tuple(other))


def _flow_sample(body: Fields, *, expanded: bool) -> list[FlowSample]:
    """Return the packet of a flow sample: by its first bytes, else by its IP header; or none."""
    body.take(4)  # sequence
    if expanded:
        body.take(4)
        source = body.number(4)
    else:
        source = body.number(4) & 0xFFFFFF
    rate = body.number(4)
    if not rate:
        raise DatagramError("sFlow sample: a sampling rate of 0")
    body.take(4)  # pool
    drops = body.number(4)
    body.take(16 if expanded else 8)  # input, output
    raw: list[FlowSample] = []
    decoded: list[FlowSample] = []
    for _ in range(body.number(4)):
        kind = body.number(4)
        record = body.within(body.number(4), "sFlow record")
        if kind == RAW_HEADER:
            protocol, frame = record.number(4), record.number(4)
            record.take(4)  # stripped
            length = record.number(4)
            header = record.take(length)
            record.take(-length % 4)
            record.end()
            if protocol == ETHERNET:
                raw.append(FlowSample(source, rate, frame, header, drops=drops))
        elif kind in (SAMPLED_IPV4, SAMPLED_IPV6):
            length, protocol = record.number(4), record.number(4)
            size = 4 if kind == SAMPLED_IPV4 else 16
            sender, receiver = record.take(size), record.take(size)
            ports = record.number(4), record.number(4)
            decoded.append(FlowSample(source, rate, length + 18, b"", sender, receiver, protocol,
                                      length, *ports, drops))  # fmt: skip
    body.end()
    return raw or decoded


def encode(agent: bytes, sequence: int, samples: Sequence[FlowSample]) -> list[bytes]:
    """Return the datagrams of a switch for these samples, none longer than :data:`MOST_BYTES`."""
    packed = [_encoded(sample, number) for number, sample in enumerate(samples)]
    found: list[bytes] = []
    while packed:
        length = _FIXED
        taken = 0
        while taken < len(packed) and length + len(packed[taken]) <= MOST_BYTES:
            length += len(packed[taken])
            taken += 1
        taken = max(taken, 1)
        head = struct.pack(">II4sIIII", VERSION, 1, agent, 0, sequence + len(found), 0, taken)
        found.append(head + b"".join(packed[:taken]))
        packed = packed[taken:]
    return found


def _encoded(sample: FlowSample, number: int) -> bytes:
    padded = sample.header + bytes(-len(sample.header) % 4)
    record = struct.pack(">IIII", ETHERNET, sample.frame_bytes, 4, len(sample.header)) + padded
    body = struct.pack(">IIIIIIII", number, sample.source, sample.rate, 0, 0, 0, 0, 1)
    body += struct.pack(">II", RAW_HEADER, len(record)) + record
    return struct.pack(">II", FLOW, len(body)) + body
