"""Frames of a capture file with their times and link types: pcap and pcapng.

pcapng (draft-ietf-opsawg-pcapng) may change byte order with each section, and has several
interfaces with a link type and a clock of their own; the libraries at hand know one of each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.flow_export.packets import LINKS
from dcqcn_gym.core.gzip_files import open_bytes
from dcqcn_gym.core.tally import Tally

MOST_BLOCK = 1 << 20
"""Bytes of a packet; a file that announces more is broken."""
FRAMES = "frames"
"""The unit in which captures are accounted for."""
_PCAP = {b"\xa1\xb2\xc3\xd4": (">", 1000), b"\xd4\xc3\xb2\xa1": ("<", 1000),
         b"\xa1\xb2\x3c\x4d": (">", 1), b"\x4d\x3c\xb2\xa1": ("<", 1),
         b"\xa1\xb2\xcd\x34": (">", 1000), b"\x34\xcd\xb2\xa1": ("<", 1000)}  # fmt: skip
"""First bytes of a pcap -> byte order, nanoseconds of a tick; the last two are Kuznetzov's."""
_KUZNETZOV = (b"\xa1\xb2\xcd\x34", b"\x34\xcd\xb2\xa1")
_SECTION, _INTERFACE, _OBSOLETE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_RESOLUTION, _OFFSET = 9, 14
_MAGIC = (*_PCAP, b"\x0a\x0d\x0d\x0a")


class Frame(NamedTuple):
    """One packet as it was captured."""

    when_ns: int
    link: int
    data: bytes


class _Interface(NamedTuple):
    link: int
    ticks_a_second: int
    offset_s: int


def is_capture(path: Path) -> bool:
    """Return whether a file begins as pcap or pcapng do."""
    with open_bytes(path) as file:
        return file.read(4) in _MAGIC


def frames(path: Path, tally: Tally) -> Iterator[Frame]:
    """Yield the frames of a capture; one that breaks off ends there, with a note.

    Each frame is counted as come in; who reads on takes it or leaves it out. Those of links that
    are not known, and those without a time, are left out here. Raises :class:`ConfigError` for
    what is no capture.
    """
    with open_bytes(path) as file:
        magic = file.read(4)
        if magic in _PCAP:
            found = _pcap(file, magic, path)
        elif magic in _MAGIC:
            found = _pcapng(file, tally)
        else:
            raise ConfigError(f"{path}: no capture that can be read, pcap or pcapng")
        iterator = iter(found)
        while True:
            try:
                frame = next(iterator)
            except StopIteration:
                return
            except ConfigError:  # of a packed file, or of one that is no capture
                raise
            except ValueError as error:
                tally.note("places where the capture breaks off", error)
                return
            tally.came(FRAMES)
            if frame.link not in LINKS:
                reason = f"frames of link type {frame.link}; expected Ethernet, cooked or IP"
                tally.leave_out(FRAMES, reason)
                continue
            yield frame


def _take(file: IO[bytes], size: int) -> bytes:
    """Return the next bytes, none at the end; raise ValueError if there are fewer."""
    if not 0 <= size <= MOST_BLOCK:
        raise ValueError(f"a block of {size} bytes")
    data = file.read(size)
    if 0 < len(data) < size:
        raise ValueError(f"{size} bytes were announced, {len(data)} are left")
    return data


def _pcap(file: IO[bytes], magic: bytes, path: Path) -> Iterator[Frame]:
    order, tick_ns = _PCAP[magic]
    head = file.read(20)
    if len(head) < 20:
        raise ConfigError(f"{path}: no capture that can be read, pcap or pcapng")
    link = struct.unpack(order + "HHiIII", head)[-1] & 0x0FFFFFFF
    record = struct.Struct(order + "IIII")
    behind = 8 if magic in _KUZNETZOV else 0
    while raw := _take(file, record.size):
        seconds, ticks, captured, _ = record.unpack(raw)
        _take(file, behind)
        data = _take(file, captured)
        if len(data) < captured:
            raise ValueError(f"{captured} bytes were announced, 0 are left")
        yield Frame(seconds * 10**9 + ticks * tick_ns, link, data)


def _pcapng(file: IO[bytes], tally: Tally) -> Iterator[Frame]:
    order, interfaces = "<", list[_Interface]()
    begin = b"\x0a\x0d\x0d\x0a"
    while begin:
        kind = struct.unpack(order + "I", begin)[0]
        raw = _take(file, 4)
        if kind == _SECTION or begin == b"\x0a\x0d\x0d\x0a":
            mark = _take(file, 4)
            order = ">" if mark == b"\x1a\x2b\x3c\x4d" else "<"
            if mark not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                raise ValueError(f"a section with the byte order {mark.hex()}")
            interfaces = []
            _body(file, order, raw, 12)
        elif kind == _INTERFACE:
            interfaces.append(_interface(_body(file, order, raw, 8), order))
        else:
            body = _body(file, order, raw, 8)
            if kind in (_ENHANCED, _OBSOLETE):
                yield _packet(body, order, kind, interfaces)
            elif kind == _SIMPLE:
                tally.came(FRAMES)
                tally.leave_out(FRAMES, "frames without a time (simple packet blocks)")
        begin = _take(file, 4)


def _body(file: IO[bytes], order: str, raw: bytes, read: int) -> bytes:
    """Return a block's body behind what was read of it; both of its lengths must agree."""
    if len(raw) < 4:
        raise ValueError("a block without a length")
    (size,) = struct.unpack(order + "I", raw)
    if size < read + 4 or size % 4:
        raise ValueError(f"a block of {size} bytes")
    body = _take(file, size - read - 4)
    end = _take(file, 4)
    if len(body) < size - read - 4 or end != raw:
        raise ValueError(f"a block of {size} bytes that ends otherwise")
    return body


def _interface(body: bytes, order: str) -> _Interface:
    if len(body) < 8:
        raise ValueError("an interface without a link type")
    link = struct.unpack_from(order + "H", body)[0]
    ticks, offset, at = 10**6, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + size]
        if code == _RESOLUTION and size == 1:
            ticks = 1 << (value[0] & 0x7F) if value[0] & 0x80 else 10 ** min(value[0], 18)
        elif code == _OFFSET and size == 8:
            offset = struct.unpack(order + "q", value)[0]
        elif code == 0:
            break
        at += 4 + size + -size % 4
    return _Interface(link, ticks, offset)


def _packet(body: bytes, order: str, kind: int, interfaces: list[_Interface]) -> Frame:
    head = struct.Struct(order + ("IIIII" if kind == _ENHANCED else "HHIIII"))
    if len(body) < head.size:
        raise ValueError("a packet without a header")
    number, *rest = head.unpack_from(body)
    high, low, captured, _ = rest[-4:]
    if number >= len(interfaces):
        raise ValueError(f"a packet of interface {number}; there are {len(interfaces)}")
    if captured > len(body) - head.size:
        raise ValueError(f"{captured} bytes were announced, {len(body) - head.size} are left")
    link, ticks, offset = interfaces[number]
    when = ((high << 32 | low) * 10**9) // ticks + offset * 10**9
    return Frame(when, link, body[head.size : head.size + captured])
