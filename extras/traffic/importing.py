"""A file of traffic becomes the flows of a scenario: hosts as numbers, times from the first on.

The file is read twice, record by record, so that its length costs no memory: first for names, the
earliest start and the witnesses of each flow, then for the flows. Where a better witness of a flow
comes late in an export, the first reading is done again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.traffic_check import Census
from dcqcn_gym.envs.scenario.tables import FLOW_HEADER, LAST_START_NS, MOST_FLOW_BYTES
from dcqcn_gym.extras.traffic.captures import Sampling
from dcqcn_gym.extras.traffic.hosts import (
    FORMULA,
    HOSTS_HEADER,
    MOST_HOSTS,
    number_hosts,
    own_numbers,
    unknown_name,
)
from dcqcn_gym.extras.traffic.reading import NUMBERED, read_records
from dcqcn_gym.extras.traffic.records import RECORDS, Record, Tally
from dcqcn_gym.extras.traffic.selection import Learned, Selection
from dcqcn_gym.simulation.files import ResultFiles

FLOWS, HOSTS, BALANCE = "flows.csv", "hosts.csv", "balance.json"
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
    window_ms: tuple[float, float] | None = None
    """Flows that start from here on and before there, in seconds after the first."""
    sampling: Sampling = field(default_factory=Sampling)
    spread: bool = True
    """Whether records that share a coarse start are spread within its unit."""


@dataclass
class Span:
    """What the first reading found; ``tally`` is complete once :func:`flows_of` has ended."""

    hosts: Mapping[str, int]
    first_ns: int
    last_ns: int
    records: int
    learned: Learned
    tally: Tally = field(default_factory=Tally)
    sampled: int = 1
    """The most packets of which one was counted in a record that was taken."""


def span_of(source: Source, show: Show) -> Span:
    """Read the file: names, first and last start; ConfigError if nothing can be used."""
    learned = Learned()
    span = _first_reading(source, learned, show)
    if learned.replaced:  # records of a worse witness had been used
        span = _first_reading(source, Learned(learned.witnesses), show)
    return span


def _first_reading(source: Source, learned: Learned, show: Show) -> Span:
    tally = Tally()
    names: set[str] = set()
    first = last = None
    records = _selected(source, Selection(learned, spread=False, learns=True), tally, show, None)
    for record in records:
        learned.learn_start(record)
        names |= {record.source, record.target}
        if len(names) > MOST_HOSTS:
            raise ConfigError(
                f"{source.path}: more than {MOST_HOSTS} names; name the hosts that count by --hosts"
            )
        start = record.start_ns
        first = start if first is None or start < first else first
        last = start if last is None or start > last else last
    came = tally.of(RECORDS).came
    if first is None or last is None:
        raise ConfigError(
            f"{source.path}: no record that can be used among {came} ({source.form})"
            + "".join(f"; {line}" for line in tally.lines())
        )
    own = own_numbers(names) if source.form in NUMBERED else None
    return Span(source.hosts or own or number_hosts(names), first, last, came, learned)


def flows_of(source: Source, span: Span, show: Show) -> Iterator[tuple[int, int, int, int]]:
    """Yield (src, dst, bytes, start in ns after the first) of every record that can be used."""
    recent: OrderedDict[tuple[int, int, int, int], None] = OrderedDict()
    low, high = (ms * 1e6 for ms in source.window_ms or (0.0, LAST_START_NS * 1e-6))
    selection, tally = Selection(span.learned, source.spread), span.tally
    newest: int | None = None
    for record in _selected(source, selection, tally, show, span.records):
        if newest is not None and record.start_ns < newest - SKEW_NS:
            tally.note("records start over a second before one above: clocks may differ")
        newest = max(newest or record.start_ns, record.start_ns)
        placed = selection.placed(record, tally)
        at = placed.start_ns - span.first_ns
        if not low <= at < high:
            reason = "records start outside of --window" if source.window_ms else (
                "records start over 10 hours after the first"
            )  # fmt: skip
            tally.leave_out(RECORDS, reason)
            continue
        tally.take(RECORDS)
        span.sampled = max(span.sampled, placed.rate)
        src, dst = span.hosts[placed.source], span.hosts[placed.target]
        flow = (src, dst, placed.bytes, at - int(low))
        if flow in recent:
            tally.note("records appear twice (all were taken)")
        recent[flow] = None
        if len(recent) > _REMEMBERED:
            recent.popitem(last=False)
        yield flow
    tally.check()


def import_flows(source: Source, out: Path, show: Show) -> tuple[Span, Census]:
    """Write ``flows.csv``, ``hosts.csv`` and ``balance.json``; return what was read and is in it.

    The last has what came in, was taken and was left out by reason. All appear together or none.
    """
    span = span_of(source, show)
    tables = {FLOWS: FLOW_HEADER.split(","), HOSTS: HOSTS_HEADER.split(",")}
    with ResultFiles(out, tables, ()) as files:
        files.rows(HOSTS, ((_cell(name), f"h{host}") for name, host in span.hosts.items()))
        flows = flows_of(source, span, show)
        census = Census()
        while chunk := list(islice(flows, CHUNK)):
            files.rows(FLOWS, chunk)
            census.add(*np.array(chunk, dtype=np.int64).T)
        if not census.flows:
            raise ConfigError(f"{source.path}: no flow starts within --window; it has "
                              f"{(span.last_ns - span.first_ns) * 1e-9:g} s")  # fmt: skip
        files.write(BALANCE, (json.dumps(span.tally.as_dict(), indent=1) + "\n").encode())
        files.publish()
    return span, census


def _cell(name: str) -> str:
    """Return a name as a cell that no spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in FORMULA else name


def _selected(
    source: Source, selection: Selection, tally: Tally, show: Show, total: int | None
) -> Iterator[Record]:
    """Yield the records that are transfers between hosts; the others are counted."""
    for raw in _shown(source, tally, show, total):
        record = selection.select(raw, tally)
        if record is not None and _is_transfer(record, source.hosts, tally):
            yield record


def _is_transfer(record: Record, hosts: Mapping[str, int] | None, tally: Tally) -> bool:
    """Return whether a record can be a flow; count why not."""
    if not record.source or not record.target:
        tally.leave_out(RECORDS, "records lack a host")
        return False
    unknown = [n for n in record[:2] if hosts is not None and n not in hosts]
    if unknown:
        tally.leave_out(RECORDS, "records name a host that the hosts file has not",
                        unknown_name(unknown[0], hosts or {}))  # fmt: skip
    elif record.source == record.target or (hosts and hosts[record.source] == hosts[record.target]):
        tally.leave_out(RECORDS, "records are from a host to itself", record.source)
    elif record.bytes == 0:
        tally.leave_out(RECORDS, "records have no payload")
    elif not 0 < record.bytes <= MOST_FLOW_BYTES:
        tally.leave_out(RECORDS, "records have bytes that no flow has", record.bytes)
    else:
        return True
    return False


def _shown(source: Source, tally: Tally, show: Show, total: int | None) -> Iterator[Record]:
    account = tally.of(RECORDS)
    records = read_records(source.path, source.form, source.columns, tally, source.sampling)
    for number, record in enumerate(records):
        if number % CHUNK == 0:
            show(account.came, total)
        yield record
    show(account.came, account.came if total is None else total)
