"""Captures (pcap, pcapng): RoCE's own packets, or the NetFlow, IPFIX and sFlow that switches sent.

Of RoCE a record is a message: from its first packet to the one that ends it. Of NetFlow and IPFIX
it is a record of the exporter, of sFlow what one flow's samples stand for until it is silent. A
flow that several switches report counts for the first of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from dcqcn_gym.core.errors import ConfigError, MissingExtraError, in_one_line
from dcqcn_gym.core.flow_export import sflow
from dcqcn_gym.core.flow_export.fields import DatagramError
from dcqcn_gym.core.flow_export.netflow import TemplateReader
from dcqcn_gym.core.flow_export.packets import (
    ROCE_PORT,
    UDP,
    FlowKey,
    Udp,
    roce_packet,
    udp_datagram,
)
from dcqcn_gym.extras.traffic.opening import open_bytes
from dcqcn_gym.extras.traffic.records import Record, Tally, address

MOST_BLOCK = 1 << 20
"""Bytes of a packet; a file that announces more is broken."""
MOST_OPEN = 1 << 20
"""Messages that may be under way at a time."""
SILENT_NS = 1_000_000_000
"""A sampled flow without a sample for so long has ended."""
_PACKETS_TO_GUESS = 1000
_MAGIC = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1",
          b"\x0a\x0d\x0d\x0a")  # fmt: skip
_ETHERNET = 1
_ROCE_OVERHEAD = 20 + 8 + 12 + 4
"""Bytes of an IPv4 packet of RoCE v2 beside its payload."""
_HALF = 1 << 23
"""Half of the packet sequence numbers: what is behind by less was sent before."""


def is_capture(path: Path) -> bool:
    """Return whether a file begins as pcap or pcapng do."""
    with open_bytes(path) as file:
        return file.read(4) in _MAGIC


class _Bounded:
    """A file of which nobody reads more than a packet at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.name = getattr(file, "name", "")

    def read(self, size: int) -> bytes:
        """Return the next bytes; raise ValueError if there are fewer, or too many are wanted."""
        if not 0 <= size <= MOST_BLOCK:
            raise ValueError(f"a block of {size} bytes")
        data = self._file.read(size)
        if 0 < len(data) < size:
            raise ValueError(f"{size} bytes were announced, {len(data)} are left")
        return data

    def seek(self, place: int) -> int:
        """Go to a place."""
        return self._file.seek(place)


def packets(path: Path, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """Yield (time in ns, frame) of an Ethernet capture; one that breaks off ends there.

    Times are exact where the file counts nanoseconds (pcap), else to the microsecond. Raises
    :class:`ConfigError` for what is no capture of Ethernet.
    """
    try:
        import dpkt
    except ImportError:
        raise MissingExtraError("reading captures", "traffic") from None
    broken = (dpkt.Error, ValueError, struct.error, OverflowError, IndexError, TypeError)
    with open_bytes(path) as file:
        try:
            reader = dpkt.pcap.UniversalReader(_Bounded(file))
            link = reader.datalink()
        except ConfigError:  # of a packed file
            raise
        except broken:
            raise ConfigError(f"{path}: no capture that can be read, pcap or pcapng") from None
        if link != _ETHERNET:
            raise ConfigError(f"{path}: link type {link}; expected Ethernet, which is 1")
        frames = iter(reader)
        while True:
            try:
                when, frame = next(frames)
            except StopIteration:
                return
            except ConfigError:
                raise
            except broken as error:
                tally.note("places where the capture breaks off", in_one_line(error))
                return
            exact = not isinstance(when, float)
            yield (int(when * 10**9) if exact else round(when * 10**6) * 1000), bytes(frame)


def form_of_capture(path: Path) -> str:
    """Return what a capture holds, a key of :data:`CAPTURE_FORMS`; raise ConfigError if nothing."""
    for number, (_, frame) in enumerate(packets(path, Tally())):
        if number == _PACKETS_TO_GUESS:
            break
        try:
            udp = udp_datagram(frame)
        except DatagramError:
            continue
        if udp is None:
            continue
        if udp.target_port == ROCE_PORT:
            return "roce"
        begin = udp.body.take(min(udp.body.left, 4))
        if begin[:2] in (b"\0\5", b"\0\x09", b"\0\x0a") and begin != b"\0\0\0\5":
            return "netflow"
        if begin == b"\0\0\0\5":
            return "sflow"
    raise ConfigError(
        f"{path}: its first {_PACKETS_TO_GUESS} packets hold no RoCE (UDP to {ROCE_PORT}), no "
        "NetFlow, IPFIX or sFlow; name what it holds by --form"
    )


def _read_roce(path: Path, tally: Tally) -> Iterator[Record]:
    """Yield the messages of a capture of RoCE v2, each when it ends."""
    under_way: dict[tuple[FlowKey, bool], list[int]] = {}
    """Queue pair -> start, bytes, sequence number expected."""
    for when, frame in packets(path, tally):
        packet = _or_none(roce_packet, frame, tally, "packets are no RoCE")
        if packet is None:
            continue
        tally.read += 1
        key = (packet.key, packet.response)
        state = under_way.get(key)
        if state is None:
            if len(under_way) == MOST_OPEN:
                oldest = next(iter(under_way))
                tally.note("messages were cut: too many at a time")
                yield _message(oldest[0], under_way.pop(oldest))
            state = under_way[key] = [when, 0, packet.sequence]
        behind = (packet.sequence - state[2]) & 0xFFFFFF
        if behind >= _HALF:
            tally.note("packets were sent again")
            continue
        if behind:
            tally.note("packets are not in the capture, by their numbers", count=behind)
        if not state[1]:
            state[0] = when
        state[1] += packet.payload_bytes
        state[2] = (packet.sequence + 1) & 0xFFFFFF
        if packet.ends:
            yield _message(packet.key, state)
            state[1] = 0
    for (flow, _), state in under_way.items():
        if state[1]:
            tally.note("messages go on when the capture ends")
            yield _message(flow, state)


def _message(key: FlowKey, state: list[int]) -> Record:
    return Record(address(key[0]), address(key[1]), state[1], state[0])


_T = TypeVar("_T")


def _or_none(read: Callable[[bytes], _T | None], data: bytes, tally: Tally, what: str) -> _T | None:
    try:
        return read(data)
    except DatagramError as error:
        tally.note(what, error)
        return None


def _datagrams(path: Path, tally: Tally) -> Iterator[tuple[int, Udp, bytes]]:
    """Yield time, datagram and its bytes of every UDP packet that is whole."""
    for when, frame in packets(path, tally):
        udp = _or_none(udp_datagram, frame, tally, "packets are broken")
        if udp is None:
            continue
        if udp.body.left < udp.length - 8:
            tally.note("datagrams were captured in part only")
            continue
        yield when, udp, udp.body.take(udp.length - 8)


def _read_netflow(path: Path, tally: Tally) -> Iterator[Record]:
    """Yield the records of RoCE flows in NetFlow v5, v9 or IPFIX."""
    templates = TemplateReader()
    first: dict[Any, bytes] = {}
    for when, udp, data in _datagrams(path, tally):
        exporter = address(udp.source)
        records = _or_none(
            lambda body: templates.parse(body, exporter),  # noqa: B023
            data, tally, "datagrams are no NetFlow",
        )  # fmt: skip
        for record in records or []:
            tally.read += 1
            if (record.protocol, record.target_port) != (UDP, ROCE_PORT):
                tally.note("records are of other protocols than RoCE")
                continue
            key = (record.source, record.target, record.source_port)
            if not _of_first(first, key, udp.source, tally):
                continue
            if record.start_ns is None:
                tally.note("records have no start time: that of their export was taken")
            payload = max(record.octets - _ROCE_OVERHEAD * record.packets, 0) * record.rate
            start = when if record.start_ns is None else record.start_ns
            yield Record(address(record.source), address(record.target), payload, start)
    if templates.unknown_sets:
        tally.note("data sets came before their template", count=templates.unknown_sets)


def _of_first(first: dict[Any, bytes], key: Any, exporter: bytes, tally: Tally) -> bool:
    """Return whether this exporter was the first that reported a flow."""
    if first.get(key, exporter) != exporter:
        tally.note("records are of flows that another switch reports too")
        return False
    if len(first) == MOST_OPEN:
        first.pop(next(iter(first)))
    first[key] = exporter
    return True


def _read_sflow(path: Path, tally: Tally) -> Iterator[Record]:
    """Yield flows as sFlow's samples show them: bytes are samples times their rate."""
    under_way: dict[FlowKey, list[int]] = {}
    """Flow -> start, bytes, last sample."""
    first: dict[Any, bytes] = {}
    for when, _, data in _datagrams(path, tally):
        datagram = _or_none(sflow.parse, data, tally, "datagrams are no sFlow")
        for sample in datagram.samples if datagram else ():
            tally.read += 1
            packet = _or_none(roce_packet, sample.header, tally, "samples are broken")
            if packet is None:
                tally.note("samples are of other packets than RoCE's data")
                continue
            if not _of_first(first, packet.key, datagram.agent if datagram else b"", tally):
                continue
            state = under_way.get(packet.key)
            if state is not None and when - state[2] > SILENT_NS:
                yield _message(packet.key, under_way.pop(packet.key))
                state = None
            if state is None:
                if len(under_way) == MOST_OPEN:
                    oldest = next(iter(under_way))
                    yield _message(oldest, under_way.pop(oldest))
                state = under_way[packet.key] = [when, 0, when]
            state[1] += packet.payload_bytes * sample.rate
            state[2] = when
    for key, state in under_way.items():
        yield _message(key, state)


CAPTURE_FORMS: Mapping[str, Callable[[Path, Tally], Iterator[Record]]] = {
    "roce": _read_roce,
    "netflow": _read_netflow,
    "sflow": _read_sflow,
}
"""What a capture holds -> its reader; netflow is v5, v9 and IPFIX."""
