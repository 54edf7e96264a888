"""What every reader of traffic yields: a record with its span, its witness and its protocol."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import IO, NamedTuple

from dcqcn_gym.core.flow_export.netflow import RECORDS
from dcqcn_gym.core.tally import Tally

__all__ = ["RECORDS", "Record", "Tally", "address", "bounded_lines"]


class Record(NamedTuple):
    """One transfer, or a part of one, as a file has it."""

    source: str
    target: str
    bytes: int
    """Payload; of sampled packets what the samples stand for."""
    start_ns: int
    """By the file's own clock."""
    end_ns: int | None = None
    resolution_ns: int = 1
    """The unit of the start: it lies somewhere from there to one unit later."""
    flow: Hashable = None
    """What tells this flow from others, whoever reports it; None: a transfer of its own."""
    exporter: str = ""
    rate: int = 1
    """Packets of which one was counted."""


def bounded_lines(file: IO[str], most: int, unit: str, tally: Tally) -> Iterator[str]:
    """Yield the lines of a file; one of ``most`` characters or more is left out, and counted."""
    while line := file.readline(most):
        whole = line.endswith("\n") or len(line) < most
        rest = line
        while not whole and rest and not rest.endswith("\n"):
            rest = file.readline(most)
        if whole:
            yield line
        else:
            tally.came(unit)
            tally.leave_out(unit, f"lines are longer than {most} characters")


def address(raw: bytes) -> str:
    """Return an IPv4 or IPv6 address as text; of another length, its bytes in hexadecimal."""
    if len(raw) == 4:
        return ".".join(map(str, raw))
    if len(raw) != 16:
        return raw.hex()
    import ipaddress

    return str(ipaddress.IPv6Address(raw))
