"""A job in memory: what its ranks compute and send, before any algorithm or fabric is chosen.

Every reader makes one of these; :mod:`lowering` makes a graph of transfers of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dcqcn_gym.core.errors import ConfigError

COMPUTE, MESSAGE, BARRIER = "compute", "message", "barrier"
COLLECTIVES = (
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "gather",
    "scatter",
)  # fmt: skip
"""Kinds of operations that move bytes between more than two ranks."""

MOST_RANKS = 65_536
MOST_OPS = 2_000_000
"""Of one job: about 600 MB of this form."""
MOST_BYTES = 2**50
MOST_PS = 2**55 - 1

ROOFLINE_FLOPS = 400e12
ROOFLINE_BYTES = 3.35e12
"""Operations, and bytes of memory, per second of a GPU whose computation has no duration."""


class Op(NamedTuple):
    """One operation of a job.

    It starts when every operation of ``after`` is done at the ranks that both have; a collective
    therefore waits for its last rank. ``amount`` is picoseconds of a computation; of a message its
    bytes; of a collective the buffer that nccl-tests call S: what a rank has of an all-reduce,
    what the whole group has of an all-gather or reduce-scatter, what a rank sends, its own share
    included, of an all-to-all. The first rank of broadcast, reduce, gather and scatter is the root;
    of a message the ranks are sender and receiver. A computation of several ranks is one that each
    of them does at the same time.
    """

    kind: str
    ranks: tuple[int, ...]
    amount: int
    after: tuple[int, ...] = ()
    name: str = ""


@dataclass
class Job:
    """Operations in an order in which each comes after those that it waits for."""

    ranks: int
    ops: list[Op] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    """What the file has that is simulated otherwise or not at all, with how often."""

    def add(
        self, kind: str, ranks: Sequence[int], amount: int, after: Iterable[int] = (),
        name: str = "",
    ) -> int:  # fmt: skip
        """Append an operation; return its number. Raises ConfigError for too many or too much."""
        number = len(self.ops)
        if number >= MOST_OPS:
            raise ConfigError(
                f"more than {MOST_OPS} operations; expected fewer layers or micro-batches"
            )
        most = MOST_PS if kind == COMPUTE else MOST_BYTES
        if not 0 <= amount <= most:
            raise ConfigError(f"{kind} {name!r} of {amount}; expected 0 to {most}")
        self.ops.append(Op(kind, tuple(ranks), amount, tuple(dict.fromkeys(after)), name))
        return number
