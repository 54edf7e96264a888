"""From the logs of a board to scores: every run against the default's on the same traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.board.protocol import BASELINE, Board
from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Flag, Measured, flags, scores
from dcqcn_gym.report.judged import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.rows import Row

__all__ = ["STAGES", "Part", "RowScores", "Stage", "score_rows"]

FloatArray = npt.NDArray[np.float64]
Stage: TypeAlias = Literal["online", "final"]
STAGES: tuple[Stage, ...] = ("online", "final")
"""While it tunes, and what it recommends on fresh traffic."""


@dataclass(frozen=True, eq=False)
class Part:
    """One stage of a row: arrays of shape (scenarios, repetitions), and the flags that are up.

    ``score`` is S against the default on the same traffic, ``utility`` PARALEON's. ``raised`` holds
    by scenario the flags whose 95 % bound over the repetitions crosses its limit.
    """

    score: FloatArray
    utility: FloatArray
    raised: Mapping[str, Sequence[Flag]]

    @property
    def flag_names(self) -> dict[str, int]:
        """On how many scenarios each flag is up, by the flag's name."""
        names = [flag.name for found in self.raised.values() for flag in found]
        return {name: names.count(name) for name in dict.fromkeys(names)}


@dataclass(frozen=True, eq=False)
class RowScores:
    """A row's two stages; without them where runs of its own are ``missing``, or the default's."""

    name: str
    parts: Mapping[Stage, Part]
    missing: int

    @property
    def complete(self) -> bool:
        """True if every run of the row is there, and of the default."""
        return bool(self.parts)


Runs: TypeAlias = Mapping[str, Sequence[Measured | None]]
"""What was measured, by scenario, one entry a repetition; None for a run that is not there."""


def score_rows(board: Board) -> list[RowScores]:
    """Return every row of a board in its order; the default scores 0 everywhere."""
    first = next(row for row in board.rows if row.name == BASELINE)
    baseline = {stage: _runs(board, first, stage) for stage in STAGES}
    found = []
    for row in board.rows:
        runs = {
            stage: baseline[stage] if row is first else _runs(board, row, stage) for stage in STAGES
        }
        missing = _missing(runs)
        whole = not missing and not _missing(baseline)
        parts = {s: _part(runs[s], baseline[s]) for s in STAGES} if whole else {}
        found.append(RowScores(row.name, parts, missing))
    return found


def _missing(runs: Mapping[Stage, Runs]) -> int:
    return count(one is None for stage in STAGES for ones in runs[stage].values() for one in ones)


def _runs(board: Board, row: Row, stage: Stage) -> Runs:
    found: dict[str, list[Measured | None]] = {}
    for attempt in board.attempts(row):
        path = attempt.logs[STAGES.index(stage)]
        found.setdefault(attempt.entry.name, []).append(_read(path))
    return found


def _read(path: Path) -> Measured | None:
    """Return what was measured in a finished run; None if it is not there or not finished."""
    try:
        series = Series.of(read_run(path))
    except DcqcnGymError:
        return None
    return None if series.end is None else measured(series)


def _part(runs: Runs, baseline: Runs) -> Part:
    score, utility, raised = [], [], {}
    for name, ours in runs.items():
        # a slow row runs fewer times, the first of the default's
        pairs = [(a, b) for a, b in zip(ours, baseline[name], strict=False) if a and b]
        score.append([_score(a, b) for a, b in pairs])
        utility.append([a.utility for a, _ in pairs])
        up = [f for f in flags([a for a, _ in pairs], [b for _, b in pairs]) if f.state == "up"]
        if up:
            raised[name] = up
    return Part(np.array(score), np.array(utility), raised)


def _score(ours: Measured, default: Measured) -> float:
    """Return S of one run; 0 where nothing can be compared: neither gained nor lost."""
    found = scores([ours], [default])
    return found.mean if found.n and math.isfinite(found.mean) else 0.0
