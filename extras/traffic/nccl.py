"""NCCL's log (``NCCL_DEBUG=INFO`` with ``NCCL_DEBUG_SUBSYS=COLL``): which collectives, how large.

A line is what one rank says of one operation and has no time. Bytes are elements times their size,
the buffer that the call names; opCount is hexadecimal.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.extras.traffic.opening import open_text
from dcqcn_gym.extras.traffic.records import Tally

_LINE = re.compile(
    r"(?P<who>[\w.-]+:\d+):\d+ \[(?P<device>\d+)\] NCCL INFO (?P<name>[A-Za-z]+): "
    r"opCount (?P<number>[0-9a-fA-F]{1,16})\b.*? count (?P<count>\d{1,19}) "
    r"datatype (?P<type>\d{1,2})\b.*?\[nranks=(?P<ranks>\d{1,7})\]"
)
_ABOUT = re.compile(r"NCCL INFO [A-Za-z]+: opCount ")
_SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"""Bytes of NCCL's types by number: int8 ... float64, bfloat16, two of 8 bits."""
_MOST_LINE = 1 << 12
"""Characters of a line; NCCL's are a tenth of it."""
LINES = "lines on collectives"
"""The unit in which logs are accounted for."""
_MOST_KINDS = 100_000
_LINES_TO_GUESS = 10_000


@dataclass(frozen=True, order=True)
class Calls:
    """All operations of one kind, size and number of ranks."""

    name: str
    """As NCCL says it: AllReduce, AllGather, ReduceScatter, Broadcast, SendRecv, ..."""
    bytes: int
    """Of the buffer that one rank's call names."""
    ranks: int
    lines: int
    """How often a rank said so."""


def is_nccl(path: Path) -> bool:
    """Return whether one of the first lines is of NCCL."""
    with open_text(path) as file:
        lines = iter(lambda: file.readline(_MOST_LINE), "")
        return any("NCCL INFO" in line for line in islice(lines, _LINES_TO_GUESS))


def read_nccl(path: Path, tally: Tally) -> tuple[list[Calls], int]:
    """Return the collectives of a log, most bytes first, and the number of ranks that wrote it.

    Raises :class:`ConfigError` for a log without any.
    """
    found: Counter[tuple[str, int, int]] = Counter()
    writers = set()
    with open_text(path) as file:
        for line in iter(lambda: file.readline(_MOST_LINE), ""):
            if "opCount" not in line or not _ABOUT.search(line):
                continue
            tally.came(LINES)
            match = _LINE.search(line)
            if match is None or int(match["type"]) >= len(_SIZES):
                tally.leave_out(LINES, "lines on collectives cannot be read", line.strip()[-100:])
                continue
            tally.take(LINES)
            writers.add((match["who"], match["device"]))
            size = int(match["count"]) * _SIZES[int(match["type"])]
            key = match["name"], size, int(match["ranks"])
            if key in found or len(found) < _MOST_KINDS:
                found[key] += 1
            else:
                tally.note("calls are of kinds and sizes beyond those that are counted")
    if not found:
        raise ConfigError(
            f"{path}: no line on a collective; NCCL writes them with NCCL_DEBUG=INFO and "
            "NCCL_DEBUG_SUBSYS=COLL"
        )
    calls = [Calls(*key, lines) for key, lines in found.items()]
    return sorted(calls, key=lambda c: (-c.bytes * c.lines, c)), len(writers)
