"""Flow records as text: CSV with any columns, nfdump's among them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal, DecimalException
from itertools import chain
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, did_you_mean, printable, quote
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.core.flow_export.packets import UDP
from dcqcn_gym.core.flow_export.roce_flows import is_roce, payload_bytes
from dcqcn_gym.core.gzip_files import open_text
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.extras.traffic.captures import Sampling
from dcqcn_gym.extras.traffic.records import (
    RECORDS,
    Record,
    Tally,
    bounded_lines,
)

UNITS: Mapping[str, int] = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Unit of a start time -> nanoseconds."""

_KNOWN: Mapping[str, Sequence[str]] = {
    "src": ("src", "source", "from", "sender", "sa", "srcaddr", "src_addr", "src_ip", "srcip",
            "ip.src", "id.orig_h", "src4_addr", "ip_src", "ipv4_src_addr", "sip"),
    "dst": ("dst", "destination", "dest", "to", "receiver", "da", "dstaddr", "dst_addr", "dst_ip",
            "dstip", "ip.dst", "id.resp_h", "dst4_addr", "ip_dst", "ipv4_dst_addr", "dip"),
    "bytes": ("bytes", "octets", "size", "length", "ibyt", "in_bytes", "byt", "sum_bytes",
              "frame.len", "orig_bytes", "totbytes"),
    "start": ("start", "time", "ts", "timestamp", "start_time", "first", "firstseen",
              "first_switched", "frame.time_epoch", "timestamp_start", "stime", "starttime",
              "time_flow_start", "timeflowstart"),
}  # fmt: skip
"""What is read -> names of columns that mean it, in lower case: those of nfdump (CSV and JSON),
tshark, Zeek, pmacct, nProbe, SiLK, Argus, goflow2 and of clouds' flow logs included."""
_OPTIONAL: Mapping[str, Sequence[str]] = {
    "end": ("end", "te", "end_time", "last", "lastseen", "last_switched", "timestamp_end",
            "etime", "lasttime"),
    "duration": ("duration", "td", "dur"),
    "packets": ("packets", "pkts", "ipkt", "in_packets", "in_pkts", "totpkts"),
    "protocol": ("protocol", "proto", "pr", "ip_proto", "pro"),
    "src_port": ("src_port", "srcport", "sport", "sp", "udp.srcport", "id.orig_p", "port_src",
                 "l4_src_port"),
    "dst_port": ("dst_port", "dstport", "dport", "dp", "udp.dstport", "id.resp_p", "port_dst",
                 "l4_dst_port"),
    "exporter": ("exporter", "router", "ra", "agent", "sampler_address", "sampleraddress",
                 "exporter_address", "peer_ip_src"),
    "rate": ("sampling", "sampling_rate", "rate", "samplingrate"),
}  # fmt: skip
"""What is used where it is there: columns that tell RoCE from the rest, and one record's span."""
_PROTOCOLS = {"udp": UDP, "tcp": 6, "icmp": 1}
_MOST_LINE = 1 << 14
"""Characters of a line; a longer one is no flow record."""
_MOST_NUMBER = 40
_MOST_SHOWN = 40
"""Characters of a column's name in a message."""
_LAST_NS = 2**63
_PACKET_WISE = ("frame.len", "frame.time_epoch")
"""Columns of exports that have a row a packet."""


@dataclass(frozen=True)
class Columns:
    """Places of the four columns that count, and the unit of the start."""

    src: int
    dst: int
    bytes: int
    start: int
    unit: str
    """Of :data:`UNITS`; a date is read in any case."""
    other: Mapping[str, int] = field(default_factory=dict)
    """Places of what is there of :data:`_OPTIONAL`."""

    @property
    def most(self) -> int:
        """The last place that is looked at."""
        return max(self.src, self.dst, self.bytes, self.start, *self.other.values(), 0)


def columns_of(header: Sequence[str], given: str | None, where: str) -> Columns:
    """Return where the four columns are.

    ``given`` names them as ``src=from,dst=to,bytes=octets,start=when:ms``; what it leaves out is
    found by its usual names. Raises :class:`ConfigError`.
    """
    names = [printable(name.strip().strip('"'))[:_MOST_SHOWN] for name in header]
    lower = [re.sub(r"(?<=[a-z])(Ns|Us|Ms)$", r"_\1", name).lower() for name in names]
    asked = _asked(given)
    places: dict[str, int] = {}
    unit = ""
    for what, usual in _KNOWN.items():
        name = asked.get(what, "")
        if what == "start":
            name, _, unit = name.partition(":")
        if name:
            if name not in names:
                raise ConfigError(f"{where}: no column {quote(name)}{did_you_mean(name, names)}")
            places[what] = names.index(name)
            continue
        wanted = [*usual, *(f"{word}_{u}" for word in usual for u in UNITS if what == "start")]
        matches = [i for i, name in enumerate(lower) if name in wanted]
        if len(matches) != 1:
            several = f"{len(matches)} columns may be" if matches else "no column is known to be"
            raise ConfigError(
                f"{where}: {several} {quote(what)}; its columns are {', '.join(names[:40])}; name "
                f"it by --columns {what}=NAME{other_use(Path(where))}"
            )
        places[what] = matches[0]
    if unit and unit not in UNITS:
        raise ConfigError(f"--columns start={names[places['start']]}:{unit}; expected a unit of "
                          f"{', '.join(UNITS)}")  # fmt: skip
    ending = lower[places["start"]].rpartition("_")[2]
    other = {
        what: next(i for i, name in enumerate(lower) if name in usual)
        for what, usual in _OPTIONAL.items()
        if any(name in usual for name in lower)
    }
    used = set(places.values())
    other = {what: place for what, place in other.items() if place not in used}
    return Columns(**places, unit=unit or (ending if ending in UNITS else "s"), other=other)


def _asked(given: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in (given or "").split(","):
        if not word.strip():
            continue
        what, equals, name = (part.strip() for part in word.partition("="))
        if not equals or not name or what not in _KNOWN:
            raise ConfigError(
                f"--columns {word}; expected src=NAME, dst=NAME, bytes=NAME or start=NAME[:UNIT]"
                + did_you_mean(what, _KNOWN)
            )
        found[what] = name
    return found


def read_table(
    path: Path, given: str | None, tally: Tally, sampling: Sampling | None = None
) -> Iterator[Record]:
    """Yield the records of a CSV file; lines that are none are counted in ``tally``.

    The delimiter is a comma, a semicolon, a tab or a bar, whichever the header has most of. Zeek's
    logs name their columns in a line ``#fields``.
    """
    with open_text(path, "utf-8-sig", "") as file:
        lines = bounded_lines(file, _MOST_LINE, RECORDS, tally)
        header = next((line for line in lines if line.strip("#\r\n\t ") and _names(line)), "")
        if not header:
            raise ConfigError(f"{path}: holds no line; expected a header and rows")
        header = header.removeprefix("#fields").lstrip("# \t")
        mark = "{" if header.startswith(("{", "[")) else max(",;\t|", key=header.count)
        if mark == "{":  # tables of JSON, in a line each or a list: the first one's keys count
            lines = iter(_json_tables(chain([header], lines)))
            header = next(lines, "{}")
            lines = chain([header], lines)
        elif mark not in header:
            mark = " "
        keys = list(_table(header)) if mark == "{" else _cells(header, mark)
        columns = columns_of(keys, given, str(path))
        names = [name.lower() for name in keys]
        reader = _Rows(columns, tally, sampling or Sampling())
        if all(name in names for name in _PACKET_WISE):
            tally.note("columns of this file are those of packets: each row becomes a flow of its "
                       "own; the capture itself gives messages", names[columns.bytes])  # fmt: skip
        for line in lines:
            if line.startswith("#") or not (text := line.strip()):
                continue
            row = _cells(text, mark) if mark != "{" else _values(_table(text), keys)
            if row and row[0].lower() == "summary":  # nfdump's last lines
                break
            tally.came(RECORDS)
            if len(row) <= columns.most:
                tally.leave_out(RECORDS, "lines have too few columns", text)
            elif record := reader.record(row):
                yield record


def _names(line: str) -> bool:
    """Return whether a line can name columns: of Zeek's comments only that of the fields does."""
    return not line.startswith("#") or not line.startswith(
        ("#separator", "#set_separator", "#empty_field", "#unset_field", "#path", "#open", "#types")
    )


def _json_tables(lines: Iterable[str]) -> Iterator[str]:
    """Yield each table as a line: as they are, or those of a list, also one over many lines."""
    parts: list[str] = []
    depth = size = 0
    for line in lines:
        text = line.strip() if parts else line.strip().lstrip("[, ")
        for piece in re.split(r"(?<=\})\s*,\s*(?=\{)", text) if depth <= 1 else [text]:
            if not parts and not piece.strip("], "):
                continue
            parts.append(piece)
            depth += piece.count("{") - piece.count("}")
            size += len(piece)
            if depth <= 0 or size > _MOST_LINE:
                yield " ".join(parts).rstrip(", ]")
                parts, depth, size = [], 0, 0
    if parts:
        yield " ".join(parts)


def _table(line: str) -> dict[str, Any]:
    """Return a line of JSON; what is none has no columns."""
    try:
        found = parse_json(line.encode())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _values(table: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Return the values of a table of JSON by the columns' order, none for what is no table."""
    return [str(table.get(key, "")) for key in keys] if table else []


def _cells(line: str, mark: str) -> list[str]:
    """Return the cells of one line; a quotation that does not end ends with it."""
    if mark == " ":
        return line.split()
    if '"' not in line:
        return [cell.strip() for cell in line.split(mark)]
    try:
        return [cell.strip() for cell in next(iter(csv.reader([line], delimiter=mark)), [""])]
    except csv.Error:  # a zero byte, before Python 3.11
        return [""]


@dataclass
class _Rows:
    """Turns the rows of one table into records."""

    columns: Columns
    tally: Tally
    sampling: Sampling

    def record(self, row: Sequence[str]) -> Record | None:
        """Return the record of a row; None, counted, if it is none that can be used."""
        columns, tally = self.columns, self.tally
        size = row[columns.bytes]
        amount = _number(size)
        if amount is None or amount != amount.to_integral_value():
            tally.leave_out(RECORDS, "lines have no whole number of bytes", size)
            return None
        when = row[columns.start]
        start = _time_ns(when, UNITS[columns.unit])
        if start is None:
            hint = _finer_unit(when, columns.unit)
            tally.leave_out(RECORDS, f"lines have no start time{hint}", when)
            return None
        source, source_port = _host_port(row[columns.src])
        target, target_port = _host_port(row[columns.dst])
        if source_port or target_port:
            tally.note("names end with a port, which was taken off", row[columns.src])
        source_port = self._whole(row, "src_port") or source_port
        target_port = self._whole(row, "dst_port") or target_port
        protocol = self._protocol(row)
        if protocol is not None and target_port and not is_roce(protocol, target_port):
            tally.leave_out(RECORDS, "records are of other protocols than RoCE")
            return None
        rate = self._whole(row, "rate") or self.sampling.given or 1
        packets = self._whole(row, "packets")
        payload = int(amount) * rate
        if protocol is not None and target_port and packets:
            payload = payload_bytes(int(amount), packets, rate)
        exporter = self._cell(row, "exporter")
        flow = None
        if protocol is not None and source_port and target_port:
            flow = (source, target, source_port, False)
        return Record(
            source, target, payload, start, self._end(row, start),
            _resolution_ns(when, UNITS[columns.unit]), flow, exporter, rate,
        )  # fmt: skip

    def _cell(self, row: Sequence[str], what: str) -> str:
        place = self.columns.other.get(what)
        return "" if place is None else row[place]

    def _whole(self, row: Sequence[str], what: str) -> int:
        value = _number(self._cell(row, what))
        return int(value) if value is not None and value > 0 else 0

    def _protocol(self, row: Sequence[str]) -> int | None:
        text = self._cell(row, "protocol").lower()
        if not text:
            return None
        number = _number(text)
        return int(number) if number is not None else _PROTOCOLS.get(text, -1)

    def _end(self, row: Sequence[str], start: int) -> int | None:
        end = self._cell(row, "end")
        if end:
            return _time_ns(end, UNITS[self.columns.unit])
        span = _number(self._cell(row, "duration"))
        return None if span is None else start + int(span * 1_000_000_000)


def _host_port(text: str) -> tuple[str, int]:
    """Return a host and the port that ``10.0.0.1:4791`` or ``[fe80::1]:4791`` ends with, else 0."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or len(port) > 5:
        return text, 0
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    return (host, int(port)) if host and ":" not in host else (text, 0)


def _resolution_ns(text: str, unit_ns: int) -> int:
    """Return the unit of a time's last digit in ns, as it is written."""
    _, _, rest = text.partition(".")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    unit = unit_ns if _number(text) is not None else 1_000_000_000
    return max(unit // int(10 ** min(digits, 9)), 1)


def _finer_unit(text: str, unit: str) -> str:
    """Return a hint for a number that is a time since 1970 in a smaller unit."""
    value = _number(text)
    if value is None:
        return ""
    finer = [u for u in UNITS if UNITS[u] < UNITS[unit] and abs(value) * UNITS[u] < _LAST_NS]
    return f" (--columns start=NAME:{finer[0]} if they are in {finer[0]})" if finer else ""


def _number(text: str) -> Decimal | None:
    if len(text) > _MOST_NUMBER:
        return None
    try:
        value = Decimal(text)
    except DecimalException:
        return None
    return value if value.is_finite() and abs(value) < _LAST_NS else None


def _time_ns(text: str, unit_ns: int) -> int | None:
    """Return a time as nanoseconds: a number in its unit, or a date (UTC if it names no zone)."""
    number = _number(text)
    if number is None:
        return _date_ns(text)
    found = int((number * unit_ns).to_integral_value())
    return found if abs(found) < _LAST_NS else None


def _date_ns(text: str) -> int | None:
    """Return a date as nanoseconds since 1970: ``2026-01-31 12:00:00.123456`` or with T and Z."""
    whole, _, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    try:
        found = datetime.fromisoformat((whole + rest[len(digits) :]).replace("Z", "+00:00"))
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    since = found - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + int(
        digits[:9].ljust(9, "0") or 0
    )
