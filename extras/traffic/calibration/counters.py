"""Counters of ports over time: what a packet takes on the wire, where a port was full of them.

Read are query results of Prometheus (a matrix of counters, not of rates) and snapshots of
``ethtool -S`` or node_exporter's text, each after a line with its time (``date +%s.%N``). A
counter of bytes and one of packets make a series. Where a port is busy for three intervals or
more, those between the first and the last are rows: a packet's length and its time. What they
are is decided with the scenario: full packets at a full port tell bytes on the wire; a smaller
rate tells nothing, as no counter says what held it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from dcqcn_gym.core.tally import Tally

INTERVALS = "intervals of counters"
SERIES = "series of counters"
READINGS = "readings of counters"
BUSY = 0.9
"""Of the busiest interval of a series: less is idle or of another load."""
SHORTEST_RUN = 3
_OF_PORT = re.compile(r"phy|rdma|infiniband|port_xmit|port_rcv|prio\d")
_KERNELS = re.compile(r"node_network_|[tr]x_(?:bytes|packets)$")
_OTHER = re.compile(r"discard|error|pause|cast_phy|wait|symbol|drop|\d_bytes|prio\d_buf")
_BYTES, _PACKETS = re.compile(r"bytes|data"), re.compile(r"packets")
_LINE = re.compile(
    r"([A-Za-z_][\w:]{0,120}?)(\{[^}]{0,500}\})?\s*[: ]\s*(\d[\d.eE+]{0,30})(?: \d+)?$"
)
_PLAIN_TIME = re.compile(r"(\d{9,10}(?:\.\d{1,9})?)$")


@dataclass
class Series:
    """A port's bytes and packets of one direction, by time in seconds."""

    bytes: dict[float, float] = field(default_factory=dict)
    packets: dict[float, float] = field(default_factory=dict)


@dataclass
class Counters:
    """The series of files, by where they are from."""

    series: dict[tuple[str, ...], Series] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    def see(self, where: str, name: str, seconds: float | None, value: float) -> None:
        """Take one reading, or leave it out for what it is not."""
        self.tally.came(READINGS)
        figure = self._figure(name)
        if isinstance(figure, str):
            self.tally.leave_out(READINGS, figure, name)
            return
        if seconds is None:
            reason = "readings stand below no time (`date +%s.%N` before each snapshot)"
            self.tally.leave_out(READINGS, reason, name)
            return
        self.tally.take(READINGS)
        stem, kind = figure
        series = self.series.setdefault((where, stem), Series())
        readings = series.bytes if kind == "bytes" else series.packets
        readings[seconds] = value * (4 if re.search(r"port_(?:xmit|rcv)_data", name) else 1)

    def _figure(self, name: str) -> tuple[str, str] | str:
        """Return a port's counter without its kind, and the kind; else why it is none."""
        low = name.lower()
        kind = "packets" if _PACKETS.search(low) else "bytes" if _BYTES.search(low) else ""
        if _KERNELS.match(low):
            return "readings are of the kernel's own traffic, in which RDMA is not"
        if kind and _OF_PORT.search(low) and not _OTHER.search(low):
            stem = re.sub(r"_+", "_", _BYTES.sub("", _PACKETS.sub("", low)))
            return stem, kind
        return "readings are of no port's bytes or packets"


def read_prometheus(source: str, result: Iterable[Any], counters: Counters) -> None:
    """Take the series of a matrix; what has no name was computed, as by ``rate()``."""
    for one in result:
        metric = one.get("metric") if isinstance(one, dict) else None
        values = one.get("values") if isinstance(one, dict) else None
        if not isinstance(metric, dict) or not isinstance(values, list):
            counters.tally.came(SERIES)
            counters.tally.leave_out(SERIES, "series are no matrix of counters")
            continue
        name = str(metric.get("__name__", ""))
        if not name:
            counters.tally.came(SERIES)
            reason = "series have no name, as rate() gives them: query the counters themselves"
            counters.tally.leave_out(SERIES, reason)
            continue
        labels = sorted(f"{k}={v}"[:80] for k, v in metric.items() if k != "__name__")
        for pair in values:
            reading = [_float(x) for x in pair] if isinstance(pair, list) else []
            match reading:
                case [float(when), float(value)]:
                    counters.see(f"{source} {' '.join(labels)}", name, when, value)
                case _:
                    counters.tally.came(READINGS)
                    counters.tally.leave_out(READINGS, "readings are no time and number")


def is_snapshot(begin: str) -> bool:
    """Return whether a text begins as snapshots of counters do."""
    lines = [line.strip() for line in begin.splitlines()]
    names = [match[1].lower() for match in map(_LINE.match, lines) if match]
    found = [name for name in names if _OF_PORT.search(name)]
    return len(found) > 1 or any(line == "NIC statistics:" for line in lines)


def read_snapshots(source: str, lines: Iterable[str], counters: Counters) -> None:
    """Take counters below lines with a time; a name that comes again is another device's."""
    now: float | None = None
    times: dict[tuple[str, str], int] = {}
    for raw in lines:
        line = raw.strip()
        if (when := _time(line)) is not None:
            now, times = when, {}
        elif match := _LINE.match(line):
            name, labels, value = match[1], match[2] or "", _float(match[3]) or 0.0
            device = times[name, labels] = times.get((name, labels), -1) + 1
            counters.see(f"{source} {labels}{device}", name, now, value)


def _time(line: str) -> float | None:
    if match := _PLAIN_TIME.match(line):
        return float(match[1])
    if len(line) > 60 or not re.search(r"\d:\d\d:\d\d", line):
        return None
    try:
        return datetime.fromisoformat(line.replace("Z", "+00:00").replace(",", ".")).timestamp()
    except ValueError:
        pass
    try:  # `date` as it is, in the language of computers
        parts = [word for word in line.split() if not re.fullmatch(r"[A-Z]{3,5}", word)]
        return datetime.strptime(" ".join(parts) + " +0000", "%a %b %d %H:%M:%S %Y %z").timestamp()
    except ValueError:
        return None


def _float(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if 0 <= found < 1e25 else None


def busy_packets(counters: Counters, tally: Tally) -> Iterator[tuple[float, float, str]]:
    """Yield bytes of a packet, microseconds of one, and the place, of busy intervals.

    Every interval is accounted for in ``tally``; who takes one says so.
    """
    for (where, stem), series in counters.series.items():
        place = f"{where} {stem}"
        tally.came(SERIES)
        times = sorted(series.bytes.keys() & series.packets.keys())
        if len(times) <= SHORTEST_RUN:
            words = "packets" if series.bytes else "bytes"
            few = "fewer than four readings" if series.bytes and series.packets else f"no {words}"
            tally.leave_out(SERIES, f"series of bytes and packets have {few}", place)
            continue
        tally.take(SERIES)
        yield from _of_series(series, times, place, tally)


def _of_series(
    series: Series, times: list[float], place: str, tally: Tally
) -> Iterator[tuple[float, float, str]]:
    rates: list[tuple[float, float] | None] = []
    for a, b in pairwise(times):
        tally.came(INTERVALS)
        size, count = series.bytes[b] - series.bytes[a], series.packets[b] - series.packets[a]
        if size < 0 or count < 0:
            tally.leave_out(INTERVALS, "intervals in which a counter went back", place)
            rates.append(None)
        else:
            rates.append((size / (b - a), count / (b - a)))
    most = max((rate[0] for rate in rates if rate), default=0.0)
    busy = [rate is not None and rate[0] >= BUSY * most and rate[1] > 0 for rate in rates]
    for i, rate in enumerate(rates):
        if rate is None:
            continue
        if not busy[i]:
            tally.leave_out(INTERVALS, "intervals below nine tenths of the busiest", place)
        elif not (0 < i < len(rates) - 1 and busy[i - 1] and busy[i + 1]):
            tally.leave_out(INTERVALS, "intervals at an edge of what is busy", place)
        else:
            yield rate[0] / rate[1], 1e6 / rate[1], place
