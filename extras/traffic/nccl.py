"""NCCL's log (``NCCL_DEBUG=INFO`` with ``NCCL_DEBUG_SUBSYS=COLL``): which collectives, how large.

A line is what one rank says of one operation and has no time. Bytes are elements times their size,
the buffer that the call names; opCount is hexadecimal. An all-to-all is written as Sends and Recvs.
Which ranks are together follows from their communicator; its address is a process's own, so where
it does not, ranks are taken together by device, else in their order.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.gzip_files import open_text
from dcqcn_gym.extras.traffic.records import Tally, bounded_lines

_WHO = re.compile(r"([\w.-]{1,256}):(\d{1,10}):\d{1,10} \[(\d{1,5})\]$")
"""Host, process and device, which stand before ``NCCL INFO``."""
_CALL = re.compile(r"NCCL INFO ([A-Za-z]{1,64}): opCount ([0-9a-fA-F]{1,16})\b")
_COUNT, _TYPE = re.compile(r" count (\d{1,19})\b"), re.compile(r" datatype (\d{1,2})\b")
_COMM, _RANKS = re.compile(r" comm (0x[0-9a-fA-F]{1,16})\b"), re.compile(r"\[nranks=(\d{1,7})\]")
_SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"""Bytes of NCCL's types by number: int8 ... float64, bfloat16, two of 8 bits."""
_MOST_LINE = 1 << 12
"""Characters of a line; NCCL's are a tenth of it."""
LINES = "lines on collectives"
"""The unit in which logs are accounted for."""
_MOST_KINDS = 100_000
_LINES_TO_GUESS = 10_000


Writer = tuple[str, int, int]
"""Host, process and device of a rank."""


@dataclass(frozen=True, order=True)
class Calls:
    """All operations of one kind, size and number of ranks."""

    name: str
    """As NCCL says it: AllReduce, AllGather, ReduceScatter, Broadcast, Send, Recv, ..."""
    bytes: int
    """Of the buffer that one rank's call names."""
    ranks: int
    lines: int
    """How often a rank said so."""


@dataclass
class NcclLog:
    """What a log holds."""

    calls: list[Calls]
    """Most bytes first."""
    writers: list[Writer]
    """The ranks that wrote it, in natural order: a rank's place here is its number."""
    together: dict[tuple[int, str], set[Writer]]
    """Number of ranks and communicator -> who named it."""
    most_sends: dict[int, int]
    """Number of ranks -> the most Sends of one rank under one opCount."""

    def groups(self, ranks: int) -> list[tuple[int, ...]]:
        """Return the communicators of so many ranks that are at work at once, as ranks' numbers."""
        number = {writer: i for i, writer in enumerate(self.writers)}
        named = {c: who for (n, c), who in self.together.items() if n == ranks}
        everyone = sorted({w for who in named.values() for w in who}, key=number.__getitem__)
        if len(everyone) <= ranks or ranks < 2:
            return [tuple(number[w] for w in everyone)]
        by_device: dict[int, set[Writer]] = defaultdict(set)
        for writer in everyone:
            by_device[writer[2]].add(writer)
        for sets in (list(named.values()), list(by_device.values())):
            if all(len(who) == ranks for who in sets) and len(sets) * ranks == len(everyone):
                return sorted(tuple(sorted(number[w] for w in who)) for who in sets)
        whole = len(everyone) // ranks
        return [
            tuple(number[w] for w in everyone[i * ranks : (i + 1) * ranks]) for i in range(whole)
        ]


def is_nccl(path: Path) -> bool:
    """Return whether one of the first lines is of NCCL."""
    with open_text(path) as file:
        lines = iter(lambda: file.readline(_MOST_LINE), "")
        return any("NCCL INFO" in line for line in islice(lines, _LINES_TO_GUESS))


def read_nccl(path: Path, tally: Tally) -> NcclLog:
    """Return the collectives of a log, and who wrote them.

    Raises :class:`ConfigError` for a log without any.
    """
    found: Counter[tuple[str, int, int]] = Counter()
    together: dict[tuple[int, str], set[Writer]] = defaultdict(set)
    sends: Counter[tuple[Writer, str, int]] = Counter()
    with open_text(path) as file:
        for line in bounded_lines(file, _MOST_LINE, LINES, tally):
            if "opCount" not in line or (call := _CALL.search(line)) is None:
                continue
            tally.came(LINES)
            parsed = _parsed(line, call)
            if parsed is None:
                tally.leave_out(LINES, "lines on collectives cannot be read", line.strip()[-80:])
                continue
            writer, key, communicator = parsed
            if key not in found and len(found) >= _MOST_KINDS:
                tally.leave_out(LINES, "calls are of kinds and sizes beyond those that are counted")
                continue
            tally.take(LINES)
            found[key] += 1
            if len(together) < _MOST_KINDS:
                together[key[2], communicator].add(writer)
            if key[0] == "Send" and len(sends) < _MOST_KINDS:
                sends[writer, call[2], key[2]] += 1
    tally.check()
    if not found:
        raise ConfigError(
            f"{path}: no line on a collective; NCCL writes them with NCCL_DEBUG=INFO and "
            "NCCL_DEBUG_SUBSYS=COLL"
        )
    calls = [Calls(*key, lines) for key, lines in found.items()]
    most: dict[int, int] = {}
    for (_, _, ranks), many in sends.items():
        most[ranks] = max(most.get(ranks, 0), many)
    writers = sorted({w for who in together.values() for w in who}, key=_natural)
    order = sorted(calls, key=lambda c: (-c.bytes * c.lines, c))
    return NcclLog(order, writers, together, most)


def _natural(writer: Writer) -> tuple[list[tuple[int, str]], int, int]:
    parts = re.findall(r"\d+|\D+", writer[0])
    spoken = [(int(p), "") if p.isdecimal() else (-1, p) for p in parts]
    return spoken, writer[2], writer[1]


def _parsed(line: str, call: re.Match[str]) -> tuple[Writer, tuple[str, int, int], str] | None:
    """Return who wrote a line, kind, bytes and ranks of its call, and the communicator."""
    who = _WHO.search(line[: call.start()].rstrip())
    count, kind, ranks = (p.search(line, call.end()) for p in (_COUNT, _TYPE, _RANKS))
    if who is None or count is None or kind is None or ranks is None:
        return None
    if int(kind[1]) >= len(_SIZES):
        return None
    size = int(count[1]) * _SIZES[int(kind[1])]
    communicator = _COMM.search(line, call.end())
    writer = who[1], int(who[2]), int(who[3])
    return writer, (call[1], size, int(ranks[1])), communicator[1] if communicator else ""
