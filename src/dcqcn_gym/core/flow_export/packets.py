"""The first bytes of a sampled packet: which RoCE v2 flow it is of, and how much payload it has.

Ethernet with VLAN tags, IPv4 or IPv6, UDP to port 4791, the base transport header of InfiniBand
(IBTA volume 1, annex A17). ACKs, CNPs and everything else is no data of a flow.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dcqcn_gym.core.flow_export.fields import DatagramError, Fields

FlowKey = tuple[bytes, bytes, int, int]
"""Source and destination address, UDP source port, destination queue pair (0 if not known)."""

ROCE_PORT = 4791
UDP = 17
_TAGS = (0x8100, 0x88A8)
_DATA_OPCODES = frozenset({*range(0x0C), 0x16, 0x17})
"""SEND (with invalidate too) and RDMA WRITE of a reliable connection; 0x0c asks for a READ, 0x11 is
an ACK, 0x81 a CNP."""
_READ_RESPONSES = range(0x0D, 0x11)
"""Data as well, from the host that was read: first, middle, last, only."""
_ENDS = (0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0A, 0x0B, 0x0F, 0x10, 0x16, 0x17)
"""Last packets of a message, and only ones."""
_WITH_RETH = (0x06, 0x0A, 0x0B)
_BEHIND_BTH = {0x03: 4, 0x05: 4, 0x09: 4, 0x0B: 4, 0x0D: 4, 0x0F: 4, 0x10: 4,
               0x16: 4, 0x17: 4}  # fmt: skip
"""Bytes between base header (and RETH) and payload: immediate data, an AETH, an IETH."""
_BTH, _RETH, _ICRC = 12, 16, 4
OVERHEAD = 14 + 20 + 8 + _BTH + _ICRC + 4
"""Bytes of a frame over IPv4 beside its payload, with the checksum of Ethernet at its end."""


@dataclass(frozen=True)
class RocePacket:
    """One data packet."""

    key: FlowKey
    payload_bytes: int
    sequence: int = 0
    """Packet sequence number, 24 bits."""
    ends: bool = False
    """Whether its message ends with it."""
    response: bool = False
    """Whether it answers an RDMA READ: numbered by the reader's side."""


@dataclass(frozen=True)
class Udp:
    """A UDP datagram inside a frame."""

    source: bytes
    target: bytes
    source_port: int
    target_port: int
    length: int
    """Bytes of the datagram with its header, by the IP header."""
    body: Fields
    """What was captured behind the UDP header."""


def udp_datagram(frame: bytes) -> Udp | None:
    """Return the UDP datagram of an Ethernet frame; None if it holds none.

    Raises DatagramError if its headers are cut off or contradict each other.
    """
    fields = Fields(frame, "a sampled packet")
    fields.take(12)
    kind = fields.number(2)
    while kind in _TAGS:
        fields.take(2)
        kind = fields.number(2)
    if kind == 0x0800:
        source, target, protocol, length = _ipv4(fields)
    elif kind == 0x86DD:
        source, target, protocol, length = _ipv6(fields)
    else:
        return None
    if protocol != UDP or length < 8:
        return None
    port, to = fields.number(2), fields.number(2)
    fields.take(4)
    return Udp(source, target, port, to, length, fields)


def roce_packet(frame: bytes) -> RocePacket | None:
    """Return the packet that begins with these bytes; None if it is no RoCE v2 data.

    Raises DatagramError if its headers are cut off or contradict each other.
    """
    udp = udp_datagram(frame)
    if udp is None or udp.target_port != ROCE_PORT or udp.length < 8 + _BTH + _ICRC:
        return None
    opcode = udp.body.number(1)
    pad = udp.body.number(1) >> 4 & 3
    udp.body.take(3)  # partition key, reserved
    pair = udp.body.number(3)
    if opcode not in _DATA_OPCODES and opcode not in _READ_RESPONSES:
        return None
    udp.body.take(1)
    sequence = udp.body.number(3)
    headers = _BTH + (_RETH if opcode in _WITH_RETH else 0) + _BEHIND_BTH.get(opcode, 0)
    payload = udp.length - 8 - _ICRC - headers - pad
    if payload < 0:
        raise DatagramError("a sampled packet: its UDP length is less than its headers")
    key = (udp.source, udp.target, udp.source_port, pair)
    return RocePacket(key, payload, sequence, opcode in _ENDS, opcode in _READ_RESPONSES)


def _ipv4(fields: Fields) -> tuple[bytes, bytes, int, int]:
    """Return source, target, protocol and the bytes behind the header."""
    first = fields.number(1)
    words = first & 15
    if first >> 4 != 4 or words < 5:
        raise DatagramError(f"a sampled packet: first byte {first:#x} of IPv4")
    fields.take(1)
    total = fields.number(2)
    fields.take(4)
    fields.take(1)
    protocol = fields.number(1)
    fields.take(2)
    source, target = fields.take(4), fields.take(4)
    fields.take(4 * (words - 5))
    return source, target, protocol, total - 4 * words


def _ipv6(fields: Fields) -> tuple[bytes, bytes, int, int]:
    first = fields.number(4)
    if first >> 28 != 6:
        raise DatagramError(f"a sampled packet: first word {first:#x} of IPv6")
    length = fields.number(2)
    protocol = fields.number(1)
    fields.take(1)
    return fields.take(16), fields.take(16), protocol, length


def header_of(key: FlowKey, payload_bytes: int) -> bytes:
    """Return the first bytes of an RDMA WRITE's packet over IPv4: what a switch would sample."""
    source, target, port, pair = key
    udp = 8 + _BTH + payload_bytes + _ICRC
    ip = struct.pack(">BBHIBBH4s4s", 0x45, 0x6A, 20 + udp, 0x4000, 64, UDP, 0, source, target)
    bth = struct.pack(">BBHII", 0x07, 0, 0xFFFF, pair, 0)
    return bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", port, ROCE_PORT, udp, 0) + bth
