"""From records to transfers: one witness a flow, each part of a flow once, starts spread.

Both readings of a file go through here. The first learns who saw a flow best and how many records
share a start; the second uses it. So the same records give the same transfers, whatever form they
come in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from dcqcn_gym.extras.traffic.records import RECORDS, Record, Tally

COARSE_NS = 1_000_000
"""From this unit on, several records of one start are spread over the unit."""
MOST_KNOWN = 1 << 20
"""Flows and starts that are remembered."""

OTHER_WITNESS = "records are of flows that another exporter saw better (the least sampled counts)"
SPREAD = "records share a start that is known to the {} only: they were spread within it"
CONTINUED = "records go on with a flow: each begins where the one before ended"
_UNITS = {1_000_000: "millisecond", 1_000_000_000: "second"}


@dataclass
class Learned:
    """What the first reading of a file found."""

    witnesses: dict[Hashable, tuple[int, str]] = field(default_factory=dict)
    """Flow -> sampling rate and name of the exporter that saw it best; the first of equals."""
    starts: Counter[int] = field(default_factory=Counter)
    """Coarse start -> records that have it."""
    replaced: bool = False
    """Whether a better witness of a flow came after records of a worse one."""

    def learn(self, record: Record) -> None:
        """Take one record of the first reading into account."""
        if record.flow is None or not record.exporter:
            return
        known = self.witnesses.get(record.flow)
        better = len(self.witnesses) < MOST_KNOWN if known is None else record.rate < known[0]
        if better:
            self.replaced |= known is not None
            self.witnesses[record.flow] = (record.rate, record.exporter)

    def learn_start(self, record: Record) -> None:
        """Count a coarse start, of a record that is used."""
        if record.resolution_ns >= COARSE_NS and (
            record.start_ns in self.starts or len(self.starts) < MOST_KNOWN
        ):
            self.starts[record.start_ns] += 1


@dataclass
class Selection:
    """Turns records into transfers in one reading; ``spread``: coarse starts within their unit.

    With ``learns`` it takes each record into account before it selects it.
    """

    learned: Learned
    spread: bool = True
    learns: bool = False
    _parts: dict[Hashable, tuple[int, int, int]] = field(default_factory=dict)
    """Flow -> start and end of its last part, and bytes so far."""
    _shared: Counter[int] = field(default_factory=Counter)

    def select(self, record: Record, tally: Tally) -> Record | None:
        """Return a record as a transfer; None, counted, if another tells the same."""
        if self.learns:
            self.learned.learn(record)
        witness = self.learned.witnesses.get(record.flow) if record.flow is not None else None
        if witness is not None and record.exporter and record.exporter != witness[1]:
            tally.leave_out(RECORDS, OTHER_WITNESS, f"{record.exporter} beside {witness[1]}")
            return None
        return self._part(record, tally)

    def placed(self, record: Record, tally: Tally) -> Record:
        """Return a record with its place among those that share its coarse start."""
        many = self.learned.starts.get(record.start_ns, 0)
        if not self.spread or record.resolution_ns < COARSE_NS or many < 2:
            return record
        number = self._shared[record.start_ns]
        self._shared[record.start_ns] += 1
        unit = _UNITS.get(record.resolution_ns, f"{record.resolution_ns * 1e-9:g} s")
        tally.note(SPREAD.format(unit))
        later = number * record.resolution_ns // many
        return record._replace(start_ns=record.start_ns + later)

    def _part(self, record: Record, tally: Tally) -> Record | None:
        """Return the part of a flow that its earlier records did not have.

        Interim records keep their flow's start and say when they end; totals count from it.
        """
        if record.flow is None or record.end_ns is None:
            return record
        key = (record.flow, record.exporter)
        start, end, sent = self._parts.get(key, (record.start_ns, record.start_ns, 0))
        if start != record.start_ns:
            end, sent = record.start_ns, 0
        total = isinstance(record.flow, tuple) and record.flow[-1] is True
        if key not in self._parts and len(self._parts) >= MOST_KNOWN:
            self._parts.pop(next(iter(self._parts)))
        self._parts[key] = (
            record.start_ns,
            max(end, record.end_ns),
            sent + (record.bytes - sent if total else record.bytes),
        )
        if record.end_ns <= end or end == record.start_ns:
            return record
        tally.note(CONTINUED)
        size = record.bytes - sent if total else record.bytes
        if size <= 0:
            tally.leave_out(RECORDS, "records repeat a total that has not grown")
            return None
        return record._replace(start_ns=end, bytes=size)
