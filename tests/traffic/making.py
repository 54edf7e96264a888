"""Captures, datagrams and networks made by hand from the formats' public descriptions."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

__all__ = [
    "graphml", "ipfix", "minigraph", "neighbours", "netflow5", "netflow9", "pcap", "pcapng",
    "roce", "sflow", "udp",
]  # fmt: skip

START_S = 1_750_000_000


def udp(source: str, target: str, port: int, to: int, body: bytes) -> bytes:
    """An Ethernet frame with IPv4 and UDP."""
    ends = b"".join(bytes(map(int, name.split("."))) for name in (source, target))
    datagram = struct.pack(">HHHH", port, to, 8 + len(body), 0) + body
    ip = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(datagram), 0, 64, 17, 0) + ends
    return bytes(12) + b"\x08\x00" + ip + datagram


def roce(
    source: str, target: str, opcode: int, sequence: int, payload: int, pair: int = 7
) -> bytes:
    """A packet of RoCE v2; payloads are padded to words, with RETH or AETH if it has one."""
    more = 16 * (opcode in (0x06, 0x0A, 0x0B)) + 4 * (opcode in (0x03, 0x0D, 0x0F, 0x10, 0x11))
    pad = -payload % 4
    bth = struct.pack(">BBHII", opcode, pad << 4, 0xFFFF, pair, sequence)
    return udp(source, target, 50_000 + pair, 4791, bth + bytes(more + payload + pad + 4))


def pcap(frames: Sequence[tuple[int, bytes]], magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    """A classic capture, little-endian; times in us (magic 0xA1B23C4D: in ns) after START_S."""
    unit = 10**9 if magic == 0xA1B23C4D else 10**6
    found = [struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 262_144, link)]
    for when, frame in frames:
        head = (START_S + when // unit, when % unit, len(frame), len(frame))
        found.append(struct.pack("<IIII", *head) + frame)
    return b"".join(found)


def pcapng(frames: Sequence[tuple[int, bytes]]) -> bytes:
    """The newer form, times in us."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = 12 + len(body)
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    found = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    found.append(block(1, struct.pack("<HHI", 1, 0, 262_144)))
    for when, frame in frames:
        at = START_S * 10**6 + when
        sizes = (0, at >> 32, at & 0xFFFFFFFF, len(frame), len(frame))
        found.append(block(6, struct.pack("<IIIII", *sizes) + frame))
    return b"".join(found)


Flow = tuple[str, str, int, int, int]
"""Source, target, octets, packets, start in ms after START_S."""


def _address(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


def _template(number: int, fields: Sequence[tuple[int, int]]) -> bytes:
    named = b"".join(struct.pack(">HH", *field) for field in fields)
    return struct.pack(">HH", number, len(fields)) + named


def netflow5(flows: Sequence[Flow], uptime_ms: int = 60_000, protocol: int = 17) -> bytes:
    """A datagram of version 5, exported at START_S + 10 s."""
    head = struct.pack(">HHIIIIBBH", 5, len(flows), uptime_ms, START_S + 10, 0, 0, 0, 0, 0)
    booted_ms = 10_000 - uptime_ms
    rows = [
        _address(a) + _address(b) + bytes(4) + struct.pack(
            ">HHIIIIHHBBBBHHBBH", 0, 0, packets, octets, start - booted_ms, start - booted_ms + 1,
            50_000, 4791, 0, 0, protocol, 0, 0, 0, 0, 0, 0,
        )
        for a, b, octets, packets, start in flows
    ]  # fmt: skip
    return head + b"".join(rows)


def netflow9(flows: Sequence[Flow], uptime_ms: int = 60_000) -> bytes:
    """A datagram of version 9 with its template: octets have 4 bytes, times are of the uptime."""
    fields = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4), (2, 4), (22, 4))
    template = struct.pack(">HH", 300, len(fields)) + b"".join(
        struct.pack(">HH", *f) for f in fields
    )
    booted_ms = 10_000 - uptime_ms
    rows = b"".join(
        _address(a) + _address(b)
        + struct.pack(">HHBIII", 50_000, 4791, 17, octets, packets, start - booted_ms)
        for a, b, octets, packets, start in flows
    )  # fmt: skip
    rows += bytes(-len(rows) % 4)
    sets = struct.pack(">HH", 0, 4 + len(template)) + template
    sets += struct.pack(">HH", 300, 4 + len(rows)) + rows
    return struct.pack(">HHIIII", 9, 1 + len(flows), uptime_ms, START_S + 10, 0, 1) + sets


def ipfix(flows: Sequence[Flow]) -> bytes:
    """A message with its template: octets have 8 bytes, times are milliseconds since 1970."""
    fields = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 8), (2, 8), (152, 8))
    template = struct.pack(">HH", 256, len(fields)) + b"".join(
        struct.pack(">HH", *f) for f in fields
    )
    rows = b"".join(
        _address(a) + _address(b)
        + struct.pack(">HHBQQQ", 50_000, 4791, 17, octets, packets, START_S * 1000 + start)
        for a, b, octets, packets, start in flows
    )  # fmt: skip
    sets = struct.pack(">HH", 2, 4 + len(template)) + template
    sets += struct.pack(">HH", 256, 4 + len(rows)) + rows
    return struct.pack(">HHIII", 10, 16 + len(sets), START_S + 10, 0, 1) + sets


def sflow(agent: str, frames: Sequence[bytes], rate: int) -> bytes:
    """A datagram of version 5 with a sample a frame."""
    found = struct.pack(">II", 5, 1) + _address(agent) + struct.pack(">IIII", 0, 1, 0, len(frames))
    for number, frame in enumerate(frames):
        head = frame[:128]
        record = struct.pack(">IIII", 1, len(frame) + 4, 4, len(head)) + head
        record += bytes(-len(head) % 4)
        body = struct.pack(">IIIIIIII", number, 3, rate, 0, 0, 0, 0, 1)
        body += struct.pack(">II", 1, len(record)) + record
        found += struct.pack(">II", 1, len(body)) + body
    return found


def neighbours(rows: list[tuple[str, str, bool]]) -> bytes:
    """What ``lldpctl -f json`` prints: interface, its neighbour, whether that is a switch."""
    found = []
    for name, peer, switch in rows:
        capability = [{"type": "Bridge", "enabled": switch}, {"type": "Station", "enabled": True}]
        chassis = {peer: {"id": {"type": "mac", "value": "aa:bb"}, "capability": capability}}
        port = {"id": {"type": "ifname", "value": "e0"}, "auto-negotiation": {"current": "100G"}}
        found.append({name: {"via": "LLDP", "chassis": chassis, "port": port}})
    return json.dumps({"lldp": {"interface": found}}).encode()


def minigraph(links: list[tuple[str, str, int]], kinds: dict[str, str]) -> bytes:
    """SONiC's: cables with their Mb/s, devices with their kind."""
    rows = "".join(
        "<DeviceLinkBase><ElementType>DeviceInterfaceLink</ElementType>"
        f"<Bandwidth>{mbps}</Bandwidth><EndDevice>{b}</EndDevice><StartDevice>{a}</StartDevice>"
        "</DeviceLinkBase>"
        for a, b, mbps in links
    )
    devices = "".join(
        f"<Device><Hostname>{name}</Hostname><ElementType>{kind}</ElementType></Device>"
        for name, kind in kinds.items()
    )
    return (
        '<DeviceMiniGraph xmlns="Microsoft.Search.Autopilot.Evolution"><PngDec>'
        f"<DeviceInterfaceLinks>{rows}</DeviceInterfaceLinks><Devices>{devices}</Devices>"
        "</PngDec></DeviceMiniGraph>"
    ).encode()


def graphml(nodes: dict[str, str], edges: list[tuple[str, str, str]]) -> bytes:
    """Nodes with their role, edges with their speed."""
    keys = '<key id="d0" for="node" attr.name="role"/><key id="d1" for="edge" attr.name="speed"/>'
    drawn = "".join(f'<node id="{n}"><data key="d0">{r}</data></node>' for n, r in nodes.items())
    drawn += "".join(
        f'<edge source="{a}" target="{b}"><data key="d1">{speed}</data></edge>'
        for a, b, speed in edges
    )
    return (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'{keys}<graph edgedefault="undirected">{drawn}</graph></graphml>'
    ).encode()
