"""Measured times of operations: nccl-tests (text and JSON), perftest, counters, captures.

Everything becomes microseconds of one operation: of a collective its time, of ``ib_*_lat`` half a
round trip, of ``ib_*_bw`` the bytes of a message over the rate. Counters of ports give packets,
captures of RoCE the delays of CNPs. Rows are accounted for: taken, or left out for a reason.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.core.gzip_files import open_text
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.calibration.cnp_delay import read_cnp_delays
from dcqcn_gym.extras.traffic.calibration.counters import (
    Counters,
    busy_packets,
    is_snapshot,
    read_prometheus,
    read_snapshots,
)
from dcqcn_gym.extras.traffic.frames import is_capture
from dcqcn_gym.extras.traffic.records import bounded_lines

ROWS = "rows of measurements"
"""The unit in which files are accounted for."""
BANDWIDTH, LATENCY, ALONE = "bandwidth", "latency", "one at a time"
"""Kinds of perftest: many messages under way, a ping-pong, and one message under way."""
COLLECTIVES: Mapping[str, str] = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all", "broadcast": "broadcast", "reduce": "reduce",
    "sendrecv": "send-receive",
}  # fmt: skip
MOST_ROWS = 10_000
MOST_BYTES = 64 * 2**20
_MOST_LINE = 1 << 12
_BEGIN = 1 << 16
SNAPSHOT_LINES = "lines of counters"
_RANK = re.compile(r"#\s+Rank\s+(\d{1,7})\s.{0,200}? on\s+(\S{1,256})\s+device")
_NAME = re.compile(rf"\b({'|'.join(COLLECTIVES)}|[a-z_]{{1,40}})_perf\b")
_PREFIX = re.compile(r"\s*(?:\[[\d,]{1,20}\](?:<std\w{3}>)?:?)?\s*")
"""What mpirun puts before a line, as ``[1,0]<stdout>:``."""
_TITLE = re.compile(r"(RDMA_Write|RDMA_Read|Send|Atomic)\s+(.{0,40}?)(BW|Latency)\s+Test")
_FACT = re.compile(r"(Number of qps|TX depth|Mtu)\s*:\s*(\d{1,9})")
_COLUMN = re.compile(
    r"BW[ _]peak\[.+?\]|BW[ _]average\[.+?\]|t_\w+\[usec\]|99(?:\.9)?% percentile\[usec\]|\S+"
)
_RATES = {"Gb/sec": 1e9 / 8, "MB/sec": 2.0**20, "GB/sec": 2.0**30}
"""Bytes per second; perftest's MB are 2^20 bytes."""


@dataclass(frozen=True)
class Measurement:
    """One measured time."""

    kind: str
    """A collective of :data:`COLLECTIVES`, or a kind of perftest."""
    bytes: int
    """As the tool says it: nccl-tests' size, perftest's message."""
    us: float
    ranks: int = 2
    per_node: int = 1
    qps: int = 1
    mtu: int | None = None
    place: str = ""

    @property
    def what(self) -> tuple[str, int, int, int, int]:
        """The operation: repeats have the same."""
        return self.kind, self.ranks, self.per_node, self.qps, self.bytes

    @property
    def gigabytes(self) -> float:
        """Bandwidth in GB/s by nccl-tests' definition (busbw); of perftest the plain rate."""
        return self.bytes / self.us / 1e3 * bus_factor(self.kind, self.ranks)


def bus_factor(kind: str, ranks: int) -> float:
    """Return busbw over algbw (nccl-tests, doc/PERFORMANCE.md); 1 for what is no collective."""
    if kind == "all-reduce":
        return 2 * (ranks - 1) / ranks
    if kind in ("all-gather", "reduce-scatter", "all-to-all"):
        return (ranks - 1) / ranks
    return 1.0


@dataclass
class Measured:
    """What files hold."""

    rows: list[Measurement] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """Names of the files, each with the begin of its SHA-256."""
    tally: Tally = field(default_factory=Tally)
    packets: list[tuple[float, float, str]] = field(default_factory=list)
    """Of busy ports: bytes of a packet, microseconds of one, and the place."""
    cnp_delays: list[float] = field(default_factory=list)
    """Of captures, in microseconds."""

    def add(self, row: Measurement) -> None:
        """Take a time, or leave it out for what it cannot tell."""
        self.tally.came(ROWS)
        problem = _problem(row)
        if problem is None and len(self.rows) >= MOST_ROWS:
            problem = f"rows are beyond the {MOST_ROWS} that are taken"
        if problem is not None:
            self.tally.leave_out(ROWS, problem, row.place)
            return
        self.tally.take(ROWS)
        self.rows.append(row)

    def drop(self, reason: str, place: str) -> None:
        """Leave out a row."""
        self.tally.came(ROWS)
        self.tally.leave_out(ROWS, reason, place)


def _problem(row: Measurement) -> str | None:
    if row.bytes <= 0 or not 0 < row.us < 1e12:
        return "rows have no bytes or no time"
    if row.ranks < 2:
        return "rows are of collectives of fewer than two known ranks (lines `# Rank ... on HOST`)"
    if row.ranks <= row.per_node:
        return "rows are of ranks on one node, where nothing is on the network"
    if row.kind not in _KINDS:
        return f"rows are of {row.kind}, which is not simulated"
    return None


_KINDS = {*COLLECTIVES.values(), BANDWIDTH, LATENCY, ALONE}


def read_measured(paths: Sequence[Path]) -> Measured:
    """Read files, gzip too, each by how it begins.

    Raises :class:`ConfigError` for a file without a single row, and for files none of whose rows
    can be used.
    """
    found = Measured()
    counters = Counters(tally=found.tally)
    for path in paths:
        before = found.tally.came_in()
        if is_capture(path):
            found.cnp_delays += read_cnp_delays(path, found.tally)
        elif path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path}: has more than {MOST_BYTES} bytes; expected measurements")
        else:
            _read_any(path, found, counters)
        found.packets += busy_packets(counters, found.tally)
        counters.series.clear()
        if found.tally.came_in() == before:
            raise ConfigError(
                f"{path}: has no row of a measurement; expected nccl-tests (text, JSON), perftest "
                "(ib_write_bw, ib_write_lat, ib_send_bw, ib_send_lat), counters of ports (a matrix "
                "of Prometheus, snapshots of `ethtool -S` each below its time) or a capture of RoCE"
                + "".join(f"; {line}" for line in found.tally.lines())
                + other_use(path)
            )
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found.sources.append(f"{path.name} sha256:{digest[:16]}")
    if not (found.rows or found.packets or found.cnp_delays):
        found.tally.check()
        raise ConfigError("no measurement can be used: " + "; ".join(found.tally.lines()))
    return found


def _read_any(path: Path, found: Measured, counters: Counters) -> None:
    with open_text(path) as file:
        begin = file.read(_BEGIN).lstrip()
    if re.match(r"\{|\[\s*\{", begin):  # mpirun's prefix begins with a bracket too
        _read_json(path, found, counters)
    elif is_snapshot(begin):
        with open_text(path) as file:
            lines = bounded_lines(file, _MOST_LINE, SNAPSHOT_LINES, found.tally)
            read_snapshots(path.name, lines, counters)
    else:
        _Text(path, found).read()


class _Text:
    """Tables as the tools print them; a heading says what the numbers below it are."""

    def __init__(self, path: Path, found: Measured) -> None:
        self.path, self.found = path, found
        named = _NAME.search(path.name) or re.search(rf"({'|'.join(COLLECTIVES)})", path.name)
        self.kind = COLLECTIVES.get(named[1]) if named else None
        self.hosts: Counter[str] = Counter()
        self.facts: dict[str, int] = {}
        self.title: re.Match[str] | None = None
        self.columns: list[str] = []

    def read(self) -> None:
        """Read all lines."""
        with open_text(self.path) as file:
            lines = bounded_lines(file, _MOST_LINE, ROWS, self.found.tally)
            for number, raw in enumerate(lines, 1):
                line = _PREFIX.sub("", raw.rstrip(), count=1)
                if re.match(r"\d{1,19}\s+\d{1,19}\s+\S+\s+\S", line):
                    self._row(line.split(), f"{self.path.name}:{number}")
                else:
                    self._head(line)

    def _head(self, line: str) -> None:
        if "Using devices" in line:
            self.hosts.clear()
        elif rank := _RANK.match(line):
            self.hosts[rank[2]] += 1
        elif title := _TITLE.search(line):
            self.title, self.facts = title, {}
        elif re.match(r"#?\s*(size|bytes)\b|#bytes", line):
            self.columns = _COLUMN.findall(line.lstrip("# "))
        elif named := _NAME.search(line):
            self.kind = COLLECTIVES.get(named[1], named[1])
        for name, value in _FACT.findall(line):
            self.facts[name] = int(value)

    def _row(self, cells: list[str], place: str) -> None:
        if not self.columns:
            self.found.drop("rows stand below no heading of nccl-tests or perftest", place)
        elif self.columns[0] == "size":
            self._nccl(cells, place)
        else:
            self._perftest(cells, place)

    def _nccl(self, cells: list[str], place: str) -> None:
        """Take both halves of a row: out of place, and in place if it is there."""
        kind = self.kind or "an operation whose name is not in the file"
        times = [i for i, name in enumerate(self.columns) if name in ("time", "cputime")]
        for at in times:
            part = cells[at : at + 4]
            us = _number(part[0]) if part else None
            if us is None:
                self.found.drop("rows break off or have no numbers", place)
            elif len(part) == 4 and (_number(part[3]) or 0) > 0 and self._counts_wrong(at):
                self.found.drop("rows have wrong results (#wrong)", place)
            else:
                self.found.add(Measurement(kind, int(cells[0]), us, *self._nodes, place=place))

    def _counts_wrong(self, at: int) -> bool:
        return at + 3 < len(self.columns) and "wrong" in self.columns[at + 3]

    @property
    def _nodes(self) -> tuple[int, int]:
        return self.hosts.total(), max(self.hosts.values(), default=1)

    def _perftest(self, cells: list[str], place: str) -> None:
        title = self.title
        if title is None or title[1] not in ("RDMA_Write", "Send") or "Bidirectional" in title[2]:
            name = "an unknown test" if title is None else f"{title[1]} {title[2]}{title[3]}"
            self.found.drop(f"rows are of {name}, which is not simulated", place)
            return
        size, us, kind = int(cells[0]), None, LATENCY
        if title[3] == "Latency":
            us = self._cell(cells, "t_typical") or self._cell(cells, "t_avg")
        else:
            kind = ALONE if self.facts.get("TX depth") == 1 else BANDWIDTH
            unit = next((c.partition("[")[2][:-1] for c in self.columns if "average" in c), "")
            rate = self._cell(cells, "BW average") or self._cell(cells, "BW_average") or 0.0
            us = size / (rate * _RATES.get(unit, 0.0)) * 1e6 if rate and unit in _RATES else None
        if us is None:
            self.found.drop("rows break off or have no numbers", place)
            return
        qps, mtu = self.facts.get("Number of qps", 1), self.facts.get("Mtu")
        self.found.add(Measurement(kind, size, us, qps=qps, mtu=mtu, place=place))

    def _cell(self, cells: list[str], name: str) -> float | None:
        at = next((i for i, c in enumerate(self.columns) if c.startswith(name)), len(cells))
        return _number(cells[at]) if at < len(cells) else None


def _number(text: object) -> float | None:
    try:
        found = float(text) if isinstance(text, str | int | float) else None
    except ValueError:
        return None
    return found if found is not None and 0 <= found < 1e15 else None


def _read_json(path: Path, found: Measured, counters: Counters) -> None:
    """Read what nccl-tests writes with ``-J``, or a query result of Prometheus."""
    with open_text(path) as file:
        try:
            data = parse_json(file.read(MOST_BYTES).encode())
        except ValueError as error:
            raise ConfigError(f"{path}: not JSON: {error}") from None
    matrix = data if isinstance(data, list) else _list(data.get("data"), "result")
    if matrix:
        read_prometheus(path.name, matrix, counters)
        return
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, list):
        raise ConfigError(
            f"{path}: JSON without 'results' (nccl-tests -J) or 'data' with a 'result' (Prometheus)"
            + other_use(path)
        )
    words = [str(x)[:256] for x in [*_list(data, "args")[:1], path.name]]
    named = next((m for w in words if (m := _NAME.search(w))), None)
    kind = COLLECTIVES.get(named[1], named[1]) if named else "an operation that is not named"
    config = data.get("config")
    devices = [*_list(data, "devices"), *(_list(config, "devices") if config else [])]
    hosts = Counter(str(d.get("hostname")) for d in devices if isinstance(d, dict))
    nodes = hosts.total(), max(hosts.values(), default=1)
    for i, row in enumerate(results):
        place = f"{path.name}: results[{i}]"
        for size, us, wrong in _halves(row):
            if size is None or us is None:
                found.drop("rows break off or have no numbers", place)
            elif wrong:
                found.drop("rows have wrong results (#wrong)", place)
            else:
                found.add(Measurement(kind, int(size), us, *nodes, place=place))


def _list(data: Any, key: str) -> list[Any]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, list) else []


def _halves(row: Any) -> Iterator[tuple[float | None, float | None, bool]]:
    """Yield size, time and whether results are wrong, of both halves of a row of JSON."""
    if not isinstance(row, dict):
        yield None, None, False
        return
    size = _number(row.get("size"))
    for half in ("out_of_place", "in_place"):
        part = row.get(half)
        if isinstance(part, dict):
            us = _number(part.get("time", part.get("cpu_time")))
            yield size, us, bool(_number(part.get("nwrong")))
