"""Flows in the files of other simulators: HPCC's ``flow.txt`` and htsim's connection matrices.

HPCC's has the number of flows, then ``from to priority port bytes start`` with the start in
seconds; its forks (SimAI's and astra-sim's ns-3) keep the form. htsim's has ``Nodes`` and
``Connections``, then ``from->to id N start T size B`` with the start in picoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import NamedTuple

from dcqcn_gym.core.gzip_files import open_text
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.records import RECORDS, Record

_MOST_LINE = 1 << 12
_MOST_DIGITS = 30
_LATEST = 18
"""Largest power of ten of a start in nanoseconds."""
_CONNECTION = re.compile(r"(\d{1,9})->(\d{1,9})\b((?: +[a-z_]+ +\S+)*)\s*$")


def form_of_simulator(path: Path) -> str | None:
    """Return ``"hpcc"`` or ``"htsim"`` for such a file of flows, None for any other."""
    with open_text(path, "utf-8-sig") as file:
        lines = [file.readline(_MOST_LINE).split() for _ in range(2)]
    if len(lines[0]) == 2 and lines[0][0] == "Nodes":
        return "htsim"
    first, second = lines
    if len(first) == 1 and first[0].isdecimal() and len(second) == 6:
        return "hpcc" if all(word.isdecimal() for word in second[:5]) else None
    return None


class Sent(NamedTuple):
    """A flow of such a file: numbers of nodes as there, and the start in exact nanoseconds."""

    source: int
    target: int
    bytes: int
    start_ns: Decimal
    priority: int = 3

    def record(self) -> Record:
        """Return it as a record of traffic, in whole nanoseconds."""
        start = int(self.start_ns.to_integral_value())
        return Record(f"n{self.source}", f"n{self.target}", self.bytes, start)


def _read_hpcc(path: Path, tally: Tally) -> Iterator[Sent]:
    with open_text(path, "utf-8-sig") as file:
        announced = file.readline(_MOST_LINE).strip()
        flows = 0
        for line in iter(lambda: file.readline(_MOST_LINE), ""):
            words = line.split()
            if not words:
                continue
            tally.came(RECORDS)
            flows += 1
            start = _ns(words[5], 9) if len(words) >= 6 else None
            if start is None or not all(w.isdecimal() and len(w) < 19 for w in words[:5]):
                tally.leave_out(RECORDS, "lines are no flow (from to priority port bytes start)",
                                line.strip())  # fmt: skip
                continue
            source, target, priority, _, size = map(int, words[:5])
            yield Sent(source, target, size, start, priority)
    if announced != str(flows):
        tally.note("lines of flows were announced differently", f"{announced}; there are {flows}")


def _read_htsim(path: Path, tally: Tally) -> Iterator[Sent]:
    with open_text(path, "utf-8-sig") as file:
        for line in iter(lambda: file.readline(_MOST_LINE), ""):
            text = line.strip()
            if not text or text.startswith(("#", "Nodes", "Connections")):
                continue
            tally.came(RECORDS)
            match = _CONNECTION.match(text)
            words = match[3].split() if match else []
            told = dict(zip(words[::2], words[1::2], strict=False))
            if "trigger" in told or "start" not in told:
                tally.leave_out(RECORDS, "connections start by a trigger, not at a time", text)
                continue
            start, size = _ns(told["start"], -3), told.get("size", "")
            if match is None or start is None or not size.isdecimal() or len(size) > 18:
                tally.leave_out(RECORDS, "lines are no connection (from->to start T size B)", text)
                continue
            if other := [word for word in told if word not in ("id", "start", "size")]:
                tally.note("connections have words that change nothing here", other[0])
            yield Sent(int(match[1]), int(match[2]), int(size), start)


def _ns(text: str, power: int) -> Decimal | None:
    """Return a number times ten to a power: nanoseconds, None for what is no time."""
    try:
        value = Decimal(text) if len(text) <= _MOST_DIGITS else None
    except DecimalException:
        return None
    if value is None or not value.is_finite() or value < 0 or value.adjusted() + power > _LATEST:
        return None
    return value.scaleb(power)


SIMULATORS: Mapping[str, Callable[[Path, Tally], Iterator[Sent]]] = {
    "hpcc": _read_hpcc,
    "htsim": _read_htsim,
}
"""Form of a simulator's flows -> its reader."""
