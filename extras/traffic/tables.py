"""Flow records as text: CSV with any columns, nfdump's among them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal, DecimalException
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, did_you_mean, printable, quote
from dcqcn_gym.extras.traffic.opening import open_text
from dcqcn_gym.extras.traffic.records import Record, Tally

UNITS: Mapping[str, int] = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Unit of a start time -> nanoseconds."""

_KNOWN: Mapping[str, Sequence[str]] = {
    "src": ("src", "source", "from", "sender", "sa", "srcaddr", "src_addr", "src_ip", "srcip"),
    "dst": ("dst", "destination", "dest", "to", "receiver", "da", "dstaddr", "dst_addr", "dst_ip",
            "dstip"),
    "bytes": ("bytes", "octets", "size", "length", "ibyt", "in_bytes", "byt", "sum_bytes"),
    "start": ("start", "time", "ts", "timestamp", "start_time", "first", "firstseen",
              "first_switched"),
}  # fmt: skip
"""What is read -> names of columns that mean it, those of nfdump's CSV included."""
_MOST_LINE = 1 << 16
_MOST_NUMBER = 40
_LAST_NS = 2**63


@dataclass(frozen=True)
class Columns:
    """Places of the four columns that count, and the unit of the start."""

    src: int
    dst: int
    bytes: int
    start: int
    unit: str
    """Of :data:`UNITS`; a date is read in any case."""


def columns_of(header: Sequence[str], given: str | None, where: str) -> Columns:
    """Return where the four columns are.

    ``given`` names them as ``src=from,dst=to,bytes=octets,start=when:ms``; what it leaves out is
    found by its usual names. Raises :class:`ConfigError`.
    """
    names = [printable(name.strip().strip('"')) for name in header]
    lower = [name.lower() for name in names]
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
                f"it by --columns {what}=NAME"
            )
        places[what] = matches[0]
    if unit and unit not in UNITS:
        raise ConfigError(f"--columns start={names[places['start']]}:{unit}; expected a unit of "
                          f"{', '.join(UNITS)}")  # fmt: skip
    ending = lower[places["start"]].rpartition("_")[2]
    return Columns(**places, unit=unit or (ending if ending in UNITS else "s"))


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


def read_table(path: Path, given: str | None, tally: Tally) -> Iterator[Record]:
    """Yield the records of a CSV file; lines that are none are counted in ``tally``.

    The delimiter is a comma, a semicolon, a tab or a bar, whichever the header has most of.
    """
    with open_text(path, "utf-8-sig", "") as file:
        lines = iter(lambda: file.readline(_MOST_LINE), "")
        header = next((line for line in lines if line.strip("#\r\n\t ")), "")
        if not header:
            raise ConfigError(f"{path}: holds no line; expected a header and rows")
        mark = max(",;\t|", key=header.count)
        columns = columns_of(_cells(header.lstrip("# "), mark), given, str(path))
        most = max(columns.src, columns.dst, columns.bytes, columns.start)
        for line in lines:
            if line.startswith("#") or not (text := line.strip()):
                continue
            row = _cells(text, mark)
            if row[0].lower() == "summary":  # nfdump's last lines
                return
            tally.read += 1
            if len(row) <= most:
                tally.note("lines have too few columns", text[:80])
            elif record := _record(row, columns, tally):
                yield record


def _cells(line: str, mark: str) -> list[str]:
    """Return the cells of one line; a quotation that does not end ends with it."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(mark)]
    try:
        return [cell.strip() for cell in next(iter(csv.reader([line], delimiter=mark)), [""])]
    except csv.Error:  # a zero byte, before Python 3.11
        return [""]


def _record(row: Sequence[str], columns: Columns, tally: Tally) -> Record | None:
    size = row[columns.bytes]
    amount = _number(size)
    if amount is None or amount != amount.to_integral_value():
        tally.note("lines have no whole number of bytes", size)
        return None
    when = row[columns.start]
    start = _time_ns(when, UNITS[columns.unit])
    if start is None:
        tally.note("lines have no start time", when)
        return None
    return Record(row[columns.src], row[columns.dst], int(amount), start)


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
