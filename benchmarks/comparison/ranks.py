"""Who is ahead of whom in a comparison, and on what evidence.

Tuners stand in the order of their final utility. Neighbours are compared seed by seed on the same
fresh traffic: the paired difference with its 95 % interval, and on how many seeds the upper one
was better (half a seed for a draw).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dcqcn_gym.benchmarks.comparison.results import Row
from dcqcn_gym.core.statistics import Estimate, paired_change
from dcqcn_gym.core.sums import total
from dcqcn_gym.core.verdict import scores
from dcqcn_gym.runs.table import MISSING, Table, count_of, with_interval

__all__ = ["Rank", "leader", "rank_table", "ranks"]


@dataclass(frozen=True)
class Rank:
    """One tuner's place. ``lead`` is its final utility minus the next one's, None for the last."""

    place: int
    tuner: str
    final: Estimate
    lead: Estimate | None
    wins: float
    """Seeds on which it was better than the next one; half a seed for a draw."""
    seeds: int
    """Seeds that both have."""
    score: Estimate | None
    """S over the next one (:mod:`dcqcn_gym.core.score`); None where logs tell too little."""

    @property
    def shown(self) -> bool:
        """True if the lead is above 0 beyond chance."""
        return self.lead is not None and self.lead.sign > 0


def ranks(rows: Sequence[Row]) -> list[Rank]:
    """Return the places of the tuners that finished; ``rows`` are in the order of the table."""
    done = [row for row in rows if row.seeds]
    found = []
    for place, row in enumerate(done, start=1):
        pairs = _pairs(row, done[place]) if place < len(done) else []
        lead = paired_change([a for a, _ in pairs], [b for _, b in pairs]) if pairs else None
        wins = total(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs)
        score = _score(row, done[place]) if pairs else None
        found.append(Rank(place, row.tuner, row.final, lead, wins, len(pairs), score))
    return found


def _pairs(row: Row, other: Row) -> list[tuple[float, float]]:
    theirs = {f.seed: f.final for f in other.figures}
    return [(f.final, theirs[f.seed]) for f in row.figures if f.seed in theirs]


def _score(row: Row, other: Row) -> Estimate | None:
    theirs = {f.seed: f.fresh for f in other.figures}
    pairs = [(f.fresh, theirs.get(f.seed)) for f in row.figures]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return scores([a for a, _ in known], [b for _, b in known]) if known else None


def rank_table(rows: Sequence[Row]) -> Table:
    """Return the places with the evidence that each is ahead of the next."""
    columns = ("place", "tuner", "final utility", "ahead of the next by", "better on", "evidence",
               "S over the next")  # fmt: skip
    cells = []
    for rank in ranks(rows):
        wins = f"{rank.wins:g} of {count_of(rank.seeds, 'seed')}" if rank.lead else MISSING
        lead = with_interval(rank.lead, "+.4f", style="brackets")
        cells.append([str(rank.place), rank.tuner, with_interval(rank.final), lead, wins,
                      _evidence(rank),
                      with_interval(rank.score, "+.3f", style="brackets")])  # fmt: skip
    return Table(columns, cells, words=2)


def _evidence(rank: Rank) -> str:
    if rank.lead is None:
        return MISSING
    if rank.lead.constant:
        return "the same" if rank.lead.mean == 0 else "one trace, no interval"
    if not rank.lead.known:
        return "one seed, no interval"
    return "shown" if rank.shown else "not told apart"


def leader(rows: Sequence[Row]) -> str:
    """Say in one sentence who leads in final utility, and how sure that is."""
    done = [row for row in rows if row.seeds]
    if not done:
        return "No run has finished."
    first, rest = done[0], done[1:]
    level = [row.tuner for row in rest if not _beaten(first, row)]
    beat = [row for row in done if row.against_default and row.against_default.sign > 0]
    if not rest:
        text = f"{first.tuner} ran alone"
    elif not level:
        text = f"{first.tuner} is ahead of every other tuner"
    else:
        shown = ", ".join(level[:3]) + (f" and {len(level) - 3} more" if len(level) > 3 else "")
        text = f"{first.tuner} is first, but not told apart from {shown}"
    if any(row.tuner == "default" for row in done):
        others = count_of(len(done) - 1, "tuner")
        text += f"; {len(beat)} of {others} have a higher utility than the default beyond chance"
    return f"{text} ({count_of(first.seeds, 'seed')})."


def _beaten(first: Row, other: Row) -> bool:
    pairs = _pairs(first, other)
    return bool(pairs) and paired_change([a for a, _ in pairs], [b for _, b in pairs]).sign > 0
