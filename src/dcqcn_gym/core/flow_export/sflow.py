"""sFlow version 5: samples of packets (sflow.org, sflow_version_5.txt), all numbers in XDR.

A datagram has samples, a flow sample has records, and everything tells its own length: what is not
known here (counters, other vendors' records) is stepped over, what contradicts its length is no
datagram. Only the record of a packet's first bytes is looked into.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dcqcn_gym.core.flow_export.fields import DatagramError, Fields

VERSION = 5
FLOW, EXPANDED_FLOW = 1, 3
RAW_HEADER = 1
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
    """Its first bytes."""


@dataclass(frozen=True)
class SflowDatagram:
    """What one datagram says."""

    agent: bytes
    sequence: int
    samples: tuple[FlowSample, ...]


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
    for _ in range(fields.number(4)):
        kind = fields.number(4)
        body = fields.within(fields.number(4), "sFlow sample")
        if kind in (FLOW, EXPANDED_FLOW):
            samples += _flow_sample(body, expanded=kind == EXPANDED_FLOW)
    fields.end()
    return SflowDatagram(agent, sequence, tuple(samples))


def _flow_sample(body: Fields, *, expanded: bool) -> Iterable[FlowSample]:
    """Return the packets of one flow sample: one for each record with a packet's first bytes."""
    body.take(4)  # sequence
    if expanded:
        body.take(4)
        source = body.number(4)
    else:
        source = body.number(4) & 0xFFFFFF
    rate = body.number(4)
    if not rate:
        raise DatagramError("sFlow sample: a sampling rate of 0")
    body.take(24 if expanded else 16)  # pool, drops, input, output
    found = []
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
                found.append(FlowSample(source, rate, frame, header))
    body.end()
    return found


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
