"""Captures: RoCE's own packets, or the NetFlow, IPFIX and sFlow that switches sent.

Of RoCE a record is a message, of NetFlow and IPFIX it is the exporter's record, of sFlow what one
flow's samples stand for until it is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.flow_export import sflow
from dcqcn_gym.core.flow_export.fields import DatagramError
from dcqcn_gym.core.flow_export.netflow import TemplateReader
from dcqcn_gym.core.flow_export.packets import (
    ROCE_PORT,
    RocePacket,
    Udp,
    classify,
    udp_datagram,
)
from dcqcn_gym.core.flow_export.roce_flows import is_roce, payload_bytes, sampled_flow
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.frames import FRAMES, frames
from dcqcn_gym.extras.traffic.messages import REUSED, Connection, Message
from dcqcn_gym.extras.traffic.records import RECORDS, Record, address

MOST_OPEN = 1 << 20
"""Queue pairs, or sampled flows, that may be under way at a time."""
SILENT_NS = 1_000_000_000
"""A sampled flow without a sample for so long has ended."""
_FRAMES_TO_GUESS = 100_000
_NETFLOW = (b"\0\5", b"\0\x09", b"\0\x0a")
_PARTS = "parts of datagrams"


@dataclass
class Sampling:
    """What is known of sampling before a file is read: by option, and from an earlier reading."""

    given: int | None = None
    """Packets of which one was counted, where the file does not say."""
    rates: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """What exporters announced (:class:`TemplateReader`), also later in the file."""


def form_of_capture(path: Path) -> str:
    """Return what a capture holds, a key of :data:`CAPTURE_FORMS`; raise ConfigError if nothing."""
    tally = Tally()
    for number, frame in enumerate(frames(path, tally)):
        if number == _FRAMES_TO_GUESS:
            break
        try:
            packet = classify(frame.data, frame.link)
            udp = None if isinstance(packet, RocePacket) else udp_datagram(frame.data, frame.link)
        except DatagramError as error:
            tally.leave_out(FRAMES, "frames are broken", error)
            continue
        if isinstance(packet, RocePacket):
            return "roce"
        begin = b"" if udp is None else udp.body.take(min(udp.body.left, 4))
        if begin == b"\0\0\0\5" or (begin[:2] in _NETFLOW and udp and udp.target_port != ROCE_PORT):
            return "sflow" if begin == b"\0\0\0\5" else "netflow"
        tally.leave_out(FRAMES, packet)
    raise ConfigError(
        f"{path}: its first {_FRAMES_TO_GUESS} frames hold no RoCE data, no NetFlow, IPFIX or "
        "sFlow; name what it holds by --form" + "".join(f"; {line}" for line in tally.lines())
    )


def _read_roce(path: Path, tally: Tally, sampling: Sampling) -> Iterator[Record]:
    """Yield the messages of a capture of RoCE, each when it is whole or given up."""
    connections: dict[tuple[Any, ...], Connection] = {}
    for frame in frames(path, tally):
        try:
            packet = classify(frame.data, frame.link)
        except DatagramError as error:
            tally.leave_out(FRAMES, "frames are broken", error)
            continue
        if not isinstance(packet, RocePacket):
            tally.leave_out(FRAMES, packet)
            continue
        source, target, _, pair = packet.key
        # not the UDP source port: entropy changes it while a connection lives
        key = (source, target, pair, packet.transport, packet.response)
        if packet.transport == "UD":  # every packet is a message of its own
            tally.take(FRAMES)
            message = Message(frame.when_ns, frame.when_ns, packet.payload_bytes)
            yield from _recorded(key, [message], tally)
            continue
        connection = connections.get(key)
        if connection is not None and connection.is_over(packet, frame.when_ns):
            tally.note(REUSED)
            yield from _recorded(key, connection.rest(tally, ended=False), tally)
            connection = None
        if connection is None:
            if len(connections) == MOST_OPEN:
                oldest = next(iter(connections))
                tally.note("queue pairs were forgotten: too many at a time")
                rest = connections.pop(oldest).rest(tally, ended=False)
                yield from _recorded(oldest, rest, tally)
            connection = connections[key] = Connection()
        yield from _recorded(key, connection.add(packet, frame.when_ns, tally), tally)
    for key, connection in connections.items():
        yield from _recorded(key, connection.rest(tally, ended=True), tally)


def _recorded(
    key: tuple[Any, ...], messages: Iterator[Message] | list[Message], tally: Tally
) -> Iterator[Record]:
    for message in messages:
        tally.came(RECORDS)
        yield Record(
            address(key[0]), address(key[1]), message.bytes, message.start_ns, message.end_ns
        )


def _datagrams(path: Path, tally: Tally) -> Iterator[tuple[int, Udp, bytes]]:
    """Yield time, datagram and its bytes of every UDP packet that is whole."""
    for frame in frames(path, tally):
        try:
            udp = udp_datagram(frame.data, frame.link)
        except DatagramError as error:
            tally.leave_out(FRAMES, "frames are broken", error)
            continue
        if udp is None:
            tally.leave_out(FRAMES, "frames hold no UDP datagram")
        elif udp.body.left < udp.length - 8:
            tally.leave_out(FRAMES, "datagrams were captured in part only")
        else:
            yield frame.when_ns, udp, udp.body.take(udp.length - 8)


def _read_netflow(path: Path, tally: Tally, sampling: Sampling) -> Iterator[Record]:
    """Yield the records of RoCE flows in NetFlow v5, v9 or IPFIX."""
    reader = TemplateReader(sampling.given or 1, tally, sampling.rates)
    for when, udp, data in _datagrams(path, tally):
        exporter = address(udp.source)
        try:
            records = reader.parse(data, exporter)
        except DatagramError as error:
            tally.leave_out(FRAMES, "datagrams are no NetFlow", error)
            continue
        tally.take(FRAMES)
        for record in records:
            if not is_roce(record.protocol, record.target_port):
                tally.leave_out(RECORDS, "records are of other protocols than RoCE")
                continue
            if record.start_ns is None:
                tally.note("records have no start time: that of their export was taken")
            yield Record(
                address(record.source), address(record.target),
                payload_bytes(record.octets, record.packets, record.rate),
                when if record.start_ns is None else record.start_ns, record.end_ns,
                record.resolution_ns,
                (record.source, record.target, record.source_port, record.total),
                exporter, record.rate,
            )  # fmt: skip
    reader.end()
    if reader.unannounced and sampling.given is None:
        tally.note("records without a sampling rate: every packet was taken to be counted "
                   "(else --sampling N)", count=reader.unannounced)  # fmt: skip


@dataclass
class _Sampled:
    """A flow as its samples show it."""

    start_ns: int
    last_ns: int
    bytes: int = 0
    agent: str = ""
    rate: int = 1


def _read_sflow(path: Path, tally: Tally, sampling: Sampling) -> Iterator[Record]:
    """Yield flows as sFlow's samples show them: bytes are samples times their rate."""
    under_way: dict[tuple[Any, ...], _Sampled] = {}
    drops: dict[tuple[bytes, int], int] = {}
    for when, _, data in _datagrams(path, tally):
        try:
            datagram = sflow.parse(data)
        except DatagramError as error:
            tally.leave_out(FRAMES, "datagrams are no sFlow", error)
            continue
        tally.take(FRAMES)
        for other in datagram.other:
            tally.came(_PARTS)
            tally.leave_out(_PARTS, other)
        for sample in datagram.samples:
            lost = sample.drops - drops.get((datagram.agent, sample.source), 0)
            if lost > 0:
                tally.note("samples were lost at their switch, by its own count", count=lost)
            drops[datagram.agent, sample.source] = sample.drops
            found = sampled_flow(sample, tally)
            if found is None:
                continue
            key, size = (*found[0], datagram.agent), found[1]
            flow = under_way.get(key)
            if flow is not None and when - flow.last_ns > SILENT_NS:
                yield _sampled_record(key, under_way.pop(key), tally)
                flow = None
            if flow is None:
                if len(under_way) == MOST_OPEN:
                    oldest = next(iter(under_way))
                    yield _sampled_record(oldest, under_way.pop(oldest), tally)
                agent = address(datagram.agent)
                flow = under_way[key] = _Sampled(when, when, agent=agent, rate=sample.rate)
            flow.bytes += size * sample.rate
            flow.last_ns = when
    for key, flow in under_way.items():
        yield _sampled_record(key, flow, tally)


def _sampled_record(key: tuple[Any, ...], flow: _Sampled, tally: Tally) -> Record:
    tally.came(RECORDS)
    return Record(
        address(key[0]), address(key[1]), flow.bytes, flow.start_ns, flow.last_ns, 1, key[:-1],
        flow.agent, flow.rate,
    )  # fmt: skip


CAPTURE_FORMS: Mapping[str, Callable[[Path, Tally, Sampling], Iterator[Record]]] = {
    "roce": _read_roce,
    "netflow": _read_netflow,
    "sflow": _read_sflow,
}
"""What a capture holds -> its reader; netflow is v5, v9 and IPFIX."""
