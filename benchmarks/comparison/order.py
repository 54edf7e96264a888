"""What decides the order of a comparison: the score S over the default, or else the utility."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dcqcn_gym.core.verdict import scores_by_seed

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.comparison.results import Figures, Row

__all__ = ["in_order", "leads", "scored"]


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, the best first and those without a finished run last."""
    by_score = scored(rows)
    return sorted(rows, key=lambda row: -_worth(row, by_score) if row.seeds else math.inf)


def _worth(row: Row, by_score: bool) -> float:
    if not by_score:
        return row.final.mean
    return row.verdict.score.mean if row.verdict else 0.0


def scored(rows: Sequence[Row]) -> bool:
    """True if the rows have scores over the default, which then decide their order."""
    done = [row for row in rows if row.seeds]
    others = [row.verdict for row in done if row.tuner != "default"]
    return 0 < len(others) < len(done) and all(v and v.score.n for v in others)


def leads(pairs: Sequence[tuple[Figures, Figures]]) -> list[float]:
    """Return S of the first over the second of each pair, as far as logs show it."""
    known = [(a.fresh, b.fresh) for a, b in pairs]
    told = [(a, b) for a, b in known if a is not None and b is not None]
    found = scores_by_seed([a for a, _ in told], [b for _, b in told])
    return [value for value in found if not math.isnan(value)]
