"""A file of traffic becomes the flows of a scenario: hosts as numbers, times from the first on.

The file is read twice, record by record, so that its length costs no memory: first for names and
the earliest start, then for the flows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.tables import FLOW_HEADER, LAST_START_NS, MOST_FLOW_BYTES
from dcqcn_gym.extras.traffic.hosts import HOSTS_HEADER, MOST_HOSTS, number_hosts, unknown_name
from dcqcn_gym.extras.traffic.reading import read_records
from dcqcn_gym.extras.traffic.records import Record, Tally
from dcqcn_gym.simulation.files import ResultFiles

FLOWS, HOSTS = "flows.csv", "hosts.csv"
CHUNK = 10_000
_REMEMBERED = 100_000
"""Last records among which one that appears twice is found."""
SKEW_NS = 1_000_000_000
"""A record that starts so much before an earlier one was written by another clock."""

Show = Callable[[int, int | None], None]
"""What is called now and then with the records read and, if known, how many there are."""


@dataclass(frozen=True)
class Source:
    """A file of traffic and how it is read."""

    path: Path
    form: str
    columns: str | None = None
    hosts: Mapping[str, int] | None = None
    """Name -> host of the scenario; None: every name is one, numbered in natural order."""
    window_s: tuple[float, float] | None = None
    """Flows that start from here on and before there, in seconds after the first."""


@dataclass
class Span:
    """What the first reading found."""

    hosts: Mapping[str, int]
    first_ns: int
    last_ns: int
    records: int
    tally: Tally = field(default_factory=Tally)


def span_of(source: Source, show: Show) -> Span:
    """Read the file once: names, first and last start; ConfigError if nothing can be used."""
    tally = Tally()
    names: dict[str, None] = {}
    known = source.hosts
    first = last = high = None
    for record in _shown(source, tally, show, None):
        if not _sound(record, tally):
            continue
        unknown = [n for n in record[:2] if known is not None and n not in known]
        for name in unknown[:1]:
            tally.note("records name a host that the hosts file has not",
                       unknown_name(name, known or {}))  # fmt: skip
        if unknown or (known and known[record.source] == known[record.target]):
            if not unknown:
                tally.note("records are from a host to itself", record.source)
            continue
        names[record.source] = names[record.target] = None
        if len(names) > MOST_HOSTS:
            raise ConfigError(
                f"{source.path}: more than {MOST_HOSTS} names; name the hosts that count by --hosts"
            )
        start = record.start_ns
        if high is not None and start < high - SKEW_NS:
            tally.note("records start over a second before one above: clocks may differ")
        first = start if first is None or start < first else first
        last = start if last is None or start > last else last
        high = start if high is None or start > high else high
        tally.taken += 1
    if first is None or last is None:
        raise ConfigError(
            f"{source.path}: no record that can be used among {tally.read} ({source.form})"
            + "".join(f"; {line}" for line in tally.lines())
        )
    return Span(known or number_hosts(names), first, last, tally.read, tally)


def flows_of(source: Source, span: Span, show: Show) -> Iterator[tuple[int, int, int, int]]:
    """Yield (src, dst, bytes, start in ns after the first) of every record that can be used."""
    recent: OrderedDict[tuple[int, int, int, int], None] = OrderedDict()
    low, high = (s * 1e9 for s in source.window_s or (0.0, LAST_START_NS * 1e-9))
    for record in _shown(source, Tally(), show, span.records):
        src, dst = span.hosts.get(record.source), span.hosts.get(record.target)
        if src is None or dst is None or src == dst or not _sound(record, Tally()):
            continue
        at = record.start_ns - span.first_ns
        if not low <= at < high:
            if source.window_s is None:
                span.tally.note("records start over 10 hours after the first")
            continue
        flow = (src, dst, record.bytes, at - int(low))
        if flow in recent:
            span.tally.note("records appear twice (all were taken)")
        recent[flow] = None
        if len(recent) > _REMEMBERED:
            recent.popitem(last=False)
        yield flow


def import_flows(source: Source, out: Path, show: Show) -> tuple[Span, int]:
    """Write ``flows.csv`` and ``hosts.csv`` into ``out``; return what was read, and the flows.

    Both files appear together or not at all.
    """
    span = span_of(source, show)
    tables = {FLOWS: FLOW_HEADER.split(","), HOSTS: HOSTS_HEADER.split(",")}
    with ResultFiles(out, tables, ()) as files:
        files.rows(HOSTS, ((name, f"h{host}") for name, host in span.hosts.items()))
        flows = flows_of(source, span, show)
        written = 0
        while chunk := list(islice(flows, CHUNK)):
            files.rows(FLOWS, chunk)
            written += len(chunk)
        if not written:
            raise ConfigError(f"{source.path}: no flow starts within --window; it has "
                              f"{(span.last_ns - span.first_ns) * 1e-9:g} s")  # fmt: skip
        files.publish()
    return span, written


def _sound(record: Record, tally: Tally) -> bool:
    """Return whether a record can be a flow; count why not."""
    if not record.source or not record.target:
        tally.note("records lack a host")
    elif record.source == record.target:
        tally.note("records are from a host to itself", record.source)
    elif record.bytes == 0:
        tally.note("records have no payload")
    elif not 0 < record.bytes <= MOST_FLOW_BYTES:
        tally.note("records have bytes that no flow has", record.bytes)
    else:
        return True
    return False


def _shown(source: Source, tally: Tally, show: Show, total: int | None) -> Iterator[Record]:
    for number, record in enumerate(read_records(source.path, source.form, source.columns, tally)):
        if number % CHUNK == 0:
            show(tally.read, total)
        yield record
    show(tally.read, tally.read if total is None else total)
