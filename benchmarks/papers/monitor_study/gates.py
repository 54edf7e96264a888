"""What the accuracy of the monitors has to show, as one verdict per gate.

The numbers come from a fluid model of the paper's fabric and were fixed before the packet engine
was measured (docs/measured/monitoring.md). A gate that fails is reported, never loosened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dcqcn_gym.benchmarks.papers.monitor_study.study import REFERENCE_LOAD, MonitorResult

PARALEON, NAIVE, NETFLOW = "elastic", "elastic-naive", "netflow"


@dataclass(frozen=True)
class Margin:
    """One requirement, held over every seed; ``worst`` is the least favourable margin."""

    what: str
    worst: float

    @property
    def holds(self) -> bool:
        """True if every seed meets it."""
        return self.worst >= 0


def value(
    table: Sequence[MonitorResult],
    measure: str,
    *,
    group: str,
    monitor: str,
    interval_ms: int,
    load: int | None = None,
    seed: int | None = None,
) -> float | None:
    """Return the mean of a measure over the seeds (or of one seed); None if it was not run."""
    found = [
        getattr(row, measure)
        for row in table
        if (row.group, row.monitor, row.interval_ms, row.load)
        == (group, monitor, interval_ms, load)
        and seed in (None, row.seed)
    ]
    known = [v for v in found if v is not None]
    return float(np.mean(known)) if known else None


class _Table:
    """Label accuracies by place; a gate about something that was not run is left out."""

    def __init__(self, table: Sequence[MonitorResult]) -> None:
        self.rows = table
        self.seeds = sorted({row.seed for row in table})

    def margins(
        self, group: str, load: int | None, interval: int, left: str, right: str | None, need: float
    ) -> list[float]:
        """Return left - right - need per seed (right None: left - need)."""
        found = []
        for seed in self.seeds:
            a = self._at(group, load, interval, left, seed)
            b = 0.0 if right is None else self._at(group, load, interval, right, seed)
            if a is not None and b is not None:
                found.append(a - b - need)
        return found

    def _at(
        self, group: str, load: int | None, interval: int, monitor: str, seed: int
    ) -> float | None:
        return value(
            self.rows, "label", group=group, monitor=monitor,
            interval_ms=interval, load=load, seed=seed,
        )  # fmt: skip

    def rising(self, load: int, monitor: str, intervals: Sequence[int]) -> list[float]:
        """Return the growth of the accuracy from each interval length to the next, per seed."""
        found = []
        for seed in self.seeds:
            curve = [self._at("load", load, i, monitor, seed) for i in intervals]
            known = [v for v in curve if v is not None]
            found += [b - a for a, b in pairwise(known)]
        return found

    def places(self) -> list[tuple[int, int]]:
        """Return every (load, interval) of the main study."""
        return sorted({(r.load, r.interval_ms) for r in self.rows if r.load is not None})


def gates(table: Sequence[MonitorResult]) -> list[Margin]:
    """Return every gate whose traffic was run."""
    return [Margin(what, min(margins)) for what, margins in _margins(_Table(table)) if margins]


def _margins(table: _Table) -> Iterator[tuple[str, list[float]]]:
    places = table.places()
    for better, worse in ((PARALEON, NAIVE), (NAIVE, NETFLOW)):
        yield (
            f"{better} >= {worse} at every load and interval",
            [m for load, i in places for m in table.margins("load", load, i, better, worse, 0.0)],
        )
    yield (
        "elastic >= 0.98 up to 20 % load",
        [m for load, i in places if load <= 20
         for m in table.margins("load", load, i, PARALEON, None, 0.98)],
    )  # fmt: skip
    at = ("load", REFERENCE_LOAD, 1)
    yield "elastic >= 0.94 at 30 %, 1 ms", table.margins(*at, PARALEON, None, 0.94)
    yield (
        "elastic >= elastic-naive + 0.05 at 30 %, 1 ms",
        table.margins(*at, PARALEON, NAIVE, 0.05),
    )
    yield (
        "elastic-naive >= netflow + 0.3 at 30 %, 1 ms",
        table.margins(*at, NAIVE, NETFLOW, 0.3),
    )
    intervals = sorted({i for load, i in places if load == REFERENCE_LOAD})
    yield (
        "elastic-naive rises with the interval at 30 %",
        table.rising(REFERENCE_LOAD, NAIVE, intervals),
    )
    rounds = ("rounds", None, 1)
    naive = table.margins(*rounds, NAIVE, None, 0.1)
    yield "elastic-naive <= 0.1 on all-to-all, 1 ms", [-m for m in naive]
    yield "elastic >= 0.9 on all-to-all, 1 ms", table.margins(*rounds, PARALEON, None, 0.9)
    long = ("long", None, 1)
    for better, worse in ((PARALEON, NAIVE), (NAIVE, NETFLOW), (NAIVE, "netflow-1s")):
        yield f"{better} >= {worse} in the long run", table.margins(*long, better, worse, 0.0)
