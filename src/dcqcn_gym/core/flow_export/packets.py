"""The first bytes of a packet: which RoCE flow it belongs to, and how much payload it carries.

Read are Ethernet with VLAN tags, Linux's cooked links and bare IP; IPv4 and IPv6 with extension
headers; what mirrors and tunnels wrap around a packet (VXLAN, RFC 7348; Geneve, RFC 8926; GRE, RFC
2784, with ERSPAN or Ethernet inside; IP in IP, RFC 2003; MPLS, RFC 3032); RoCE v2 (UDP to port
4791) and v1 (Ethernet type 0x8915); the base transport header of InfiniBand (IBTA volume 1, section
9.2 and annexes A14, A16, A17). Everything else has a name, so that a reader can count what it
leaves out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dcqcn_gym.core.flow_export.fields import DatagramError, Fields

FlowKey = tuple[bytes, bytes, int, int]
"""Source and destination address, UDP source port, destination queue pair (0 if not known)."""

ROCE_PORT = 4791
UDP = 17
_TAGS = (0x8100, 0x88A8, 0x9100)
_IPV4, _IPV6, _ROCE_V1, _BRIDGED = 0x0800, 0x86DD, 0x8915, 0x6558
_ERSPAN = {0x88BE: 8, 0x22EB: 12}
"""GRE protocol of a mirrored frame -> bytes of its own header (types II and III)."""
_GRE, _AUTHENTICATION, _FRAGMENT = 47, 51, 44
_EXTENSIONS = (0, 43, 60, 135, 139, 140)
"""IPv6 extension headers that tell their length in units of 8 bytes."""
_VXLAN_PORT, _GENEVE_PORT, _ULTRA_ETHERNET_PORT = 4789, 6081, 4793
_MPLS = (0x8847, 0x8848)
_IN_IP = {4: _IPV4, 41: _IPV6}
"""IP protocol of an IP packet inside -> its Ethernet type."""
_MOST_WRAPS = 4
ETHERNET = 1
LINKS = (0, 1, 12, 14, 101, 108, 113, 228, 229, 276)
"""Link types of captures that are read: Ethernet, loopback, bare IP, Linux's cooked links."""

_BTH, _RETH, _ICRC, _GRH = 12, 16, 4, 40
IP_HEADERS = 20 + 8 + _BTH + _ICRC
"""Bytes of an IPv4 packet of RoCE v2 beside its payload."""
OVERHEAD = 14 + IP_HEADERS + 4
"""Bytes of a frame over IPv4 beside its payload, with the checksum of Ethernet at its end."""

TRANSPORTS = {0: "RC", 1: "UC", 2: "RD", 3: "UD", 4: "CNP", 5: "XRC"}
"""Upper three bits of an opcode -> transport service; 6 and 7 are the maker's own (DC)."""
_EXTENDED = {"UD": 8, "XRC": 4, "RD": 12}
"""Bytes of the transport's own header behind the base header."""
_DATA = frozenset({*range(0x0C), 0x16, 0x17})
"""SEND (with invalidate too) and RDMA WRITE; 0x0c asks for a READ, 0x11 is an ACK."""
_READ_RESPONSES = range(0x0D, 0x11)
"""Data as well, from the host that was read: first, middle, last, only."""
_BEGINS = (0x00, 0x04, 0x05, 0x06, 0x0A, 0x0B, 0x0D, 0x10, 0x17)
_ENDS = (0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0A, 0x0B, 0x0F, 0x10, 0x16, 0x17)
"""Last packets of a message, and only ones."""
_WITH_RETH = (0x06, 0x0A, 0x0B)
_BEHIND_BTH = {0x03: 4, 0x05: 4, 0x09: 4, 0x0B: 4, 0x0D: 4, 0x0F: 4, 0x10: 4,
               0x16: 4, 0x17: 4}  # fmt: skip
"""Bytes between base header (and RETH) and payload: immediate data, an AETH, an IETH."""
_NO_DATA = {0x0C: "READ requests", 0x11: "ACKs", 0x12: "ACKs of atomics", 0x13: "atomics",
            0x14: "atomics"}  # fmt: skip


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
    begins: bool = False
    """Whether its message begins with it."""
    transport: str = "RC"
    """Of :data:`TRANSPORTS`."""


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


@dataclass(frozen=True)
class Inner:
    """The innermost IP packet, or InfiniBand's, of a frame."""

    source: bytes
    target: bytes
    protocol: int
    """IP protocol; -1: RoCE v1, whose base header follows."""
    length: int
    """Bytes behind its header, by the header."""
    body: Fields
    ecn: int = 0
    """The last two bits of its traffic class; 3: a switch has marked it (CE)."""


def innermost(frame: bytes, link: int = ETHERNET) -> Inner | str:
    """Return the innermost packet of a frame of a link type, or what else the frame holds.

    Raises DatagramError if its headers are cut off or contradict each other.
    """
    fields = Fields(frame, "a sampled packet")
    kind = _link_kind(fields, link)
    for _ in range(_MOST_WRAPS):
        while kind in _TAGS:
            fields.take(2)
            kind = fields.number(2)
        if kind in _MPLS:
            while not fields.number(4) >> 8 & 1:
                pass
            kind = _IPV4 if fields.peek() >> 4 == 4 else _IPV6
        if kind == _ROCE_V1:
            return _grh(fields)
        if kind not in (_IPV4, _IPV6):
            return f"frames of Ethernet type {kind:#06x}, which is neither IP nor RoCE"
        inner = _ipv4(fields) if kind == _IPV4 else _ipv6(fields)
        if isinstance(inner, str):
            return inner
        wrapped = _unwrapped(inner)
        if wrapped is None:
            return inner
        kind = wrapped
        fields = inner.body
    return f"frames wrapped more than {_MOST_WRAPS} times"


def udp_datagram(frame: bytes, link: int = ETHERNET) -> Udp | None:
    """Return the UDP datagram of a frame; None if it holds none.

    Raises DatagramError if its headers are cut off or contradict each other.
    """
    inner = innermost(frame, link)
    return None if isinstance(inner, str) else _udp(inner)


def _udp(inner: Inner) -> Udp | None:
    if inner.protocol != UDP or inner.length < 8:
        return None
    port, to = inner.body.number(2), inner.body.number(2)
    inner.body.take(4)
    return Udp(inner.source, inner.target, port, to, inner.length, inner.body)


def classify(frame: bytes, link: int = ETHERNET) -> RocePacket | str:
    """Return the RoCE data packet that begins with these bytes, or what it is instead.

    Raises DatagramError if its headers are cut off or contradict each other.
    """
    inner = innermost(frame, link)
    if isinstance(inner, str):
        return inner
    if inner.protocol == -1:
        return _transport(inner.source, inner.target, 0, inner.length, inner.body)
    udp = _udp(inner)
    if udp is None:
        return f"packets of IP protocol {inner.protocol}, which is not UDP"
    if udp.target_port == _ULTRA_ETHERNET_PORT:
        return "packets of Ultra Ethernet (UDP port 4793)"
    if udp.target_port != ROCE_PORT:
        return "UDP datagrams to other ports than RoCE's"
    return _transport(udp.source, udp.target, udp.source_port, udp.length - 8, udp.body)


def _transport(
    source: bytes, target: bytes, port: int, length: int, body: Fields
) -> RocePacket | str:
    """Read InfiniBand's base transport header; ``length``: its bytes with all that follows."""
    if length < _BTH + _ICRC:
        return "packets too short for InfiniBand's base header"
    opcode = body.number(1)
    pad = body.number(1) >> 4 & 3
    body.take(3)  # partition key, reserved
    pair = body.number(3)
    transport, operation = TRANSPORTS.get(opcode >> 5, ""), opcode & 0x1F
    if opcode == 0x81:
        return "CNPs"
    if not transport:
        return f"packets of opcode {opcode:#04x}, which is its maker's own"
    response = operation in _READ_RESPONSES
    if transport == "CNP" or (operation not in _DATA and not response):
        what = _NO_DATA.get(operation, f"packets of opcode {opcode:#04x}")
        return what if transport == "RC" else f"{what} of {transport}"
    if transport == "UD" and pair <= 1:
        return "management datagrams (queue pairs 0 and 1)"
    body.take(1)
    sequence = body.number(3)
    headers = _BTH + _EXTENDED.get(transport, 0) + _BEHIND_BTH.get(operation, 0)
    headers += _RETH if operation in _WITH_RETH else 0
    payload = length - _ICRC - headers - pad
    if payload < 0:
        raise DatagramError("a sampled packet: its length is less than its headers")
    begins, ends = operation in _BEGINS, operation in _ENDS
    key = (source, target, port, pair)
    return RocePacket(key, payload, sequence, ends, response, begins, transport)


def _link_kind(fields: Fields, link: int) -> int:
    """Step over a link's header; return the Ethernet type of what follows."""
    if link == ETHERNET:
        fields.take(12)
        return fields.number(2)
    if link == 113:  # cooked, version 1
        fields.take(14)
        return fields.number(2)
    if link == 276:  # cooked, version 2
        kind = fields.number(2)
        fields.take(18)
        return kind
    if link == 228:
        return _IPV4
    if link == 229:
        return _IPV6
    if link in (0, 108):  # loopback: the address family, in the host's or in network order
        family = fields.take(4)
        return _IPV4 if 2 in (family[0], family[3]) else _IPV6
    if link in (12, 14, 101):
        return _IPV4 if fields.peek() >> 4 == 4 else _IPV6
    raise DatagramError(f"a sampled packet: link type {link} is not known")


def _unwrapped(inner: Inner) -> int | None:
    """Step into what a mirror wrapped; return the Ethernet type inside, None if nothing is."""
    if inner.protocol == _GRE:
        flags, kind = inner.body.number(2), inner.body.number(2)
        inner.body.take(4 * len([bit for bit in (0x8000, 0x2000, 0x1000) if flags & bit]))
        if kind == 0x88BE and not flags & 0x1000:  # ERSPAN type I has no header of its own
            inner.body.take(12)
            return inner.body.number(2)
        if kind in _ERSPAN:
            header = inner.body.take(_ERSPAN[kind])
            if kind == 0x22EB and header[-1] & 1:  # an optional sub-header
                inner.body.take(8)
            inner.body.take(12)
            return inner.body.number(2)
        if kind == _BRIDGED:
            inner.body.take(12)
            return inner.body.number(2)
        return kind
    if inner.protocol in _IN_IP:
        return _IN_IP[inner.protocol]
    port = inner.body.peek(2, 2) if inner.protocol == UDP and inner.body.left >= 16 else 0
    if port == _VXLAN_PORT:
        inner.body.take(8 + 8 + 12)
        return inner.body.number(2)
    if port == _GENEVE_PORT:
        inner.body.take(8)
        options, kind = inner.body.number(2) >> 8 & 0x3F, inner.body.number(2)
        inner.body.take(4 + 4 * options + (12 if kind == _BRIDGED else 0))
        return inner.body.number(2) if kind == _BRIDGED else kind
    return None


def _grh(fields: Fields) -> Inner | str:
    """Read the global routing header of RoCE v1, which is laid out as IPv6's."""
    first = fields.number(4)
    length = fields.number(2)
    following = fields.number(1)
    fields.take(1)
    source, target = fields.take(16), fields.take(16)
    if first >> 28 != 6 or following != 0x1B:
        return "packets of RoCE v1 without InfiniBand's base header"
    return Inner(source, target, -1, length, fields, first >> 20 & 3)


def _ipv4(fields: Fields) -> Inner | str:
    available = fields.left
    first = fields.number(1)
    words = first & 15
    if first >> 4 != 4 or words < 5:
        raise DatagramError(f"a sampled packet: first byte {first:#x} of IPv4")
    ecn = fields.number(1) & 3
    total = fields.number(2) or available  # 0: the sender's NIC was to cut it (segmentation)
    fields.take(2)
    fragment = fields.number(2) & 0x1FFF
    fields.take(1)
    protocol = fields.number(1)
    fields.take(2)
    source, target = fields.take(4), fields.take(4)
    fields.take(4 * (words - 5))
    if fragment:
        return "later fragments of IP packets"
    return Inner(source, target, protocol, total - 4 * words, fields, ecn)


def _ipv6(fields: Fields) -> Inner | str:
    available = fields.left
    first = fields.number(4)
    if first >> 28 != 6:
        raise DatagramError(f"a sampled packet: first word {first:#x} of IPv6")
    length = fields.number(2) or available - 40
    protocol = fields.number(1)
    fields.take(1)
    source, target = fields.take(16), fields.take(16)
    while protocol in (*_EXTENSIONS, _FRAGMENT, _AUTHENTICATION):
        following, size = fields.number(1), fields.number(1)
        if protocol == _FRAGMENT:
            size = 0
            if fields.number(2) >> 3:
                return "later fragments of IP packets"
            fields.take(4)
            used = 8
        else:
            used = 4 * (size + 2) if protocol == _AUTHENTICATION else 8 * (size + 1)
            fields.take(used - 2)
        length -= used
        protocol = following
    return Inner(source, target, protocol, length, fields, first >> 20 & 3)


def header_of(key: FlowKey, payload_bytes: int) -> bytes:
    """Return the first bytes of an RDMA WRITE's packet over IPv4: what a switch would sample."""
    source, target, port, pair = key
    udp = 8 + _BTH + payload_bytes + _ICRC
    ip = struct.pack(">BBHIBBH4s4s", 0x45, 0x6A, 20 + udp, 0x4000, 64, UDP, 0, source, target)
    bth = struct.pack(">BBHII", 0x07, 0, 0xFFFF, pair, 0)
    return bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", port, ROCE_PORT, udp, 0) + bth
