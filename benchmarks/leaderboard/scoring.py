"""From the logs of a leaderboard to scores: every run against the default's on the same traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE, Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS, RunReading, read_runs
from dcqcn_gym.benchmarks.leaderboard.risk import FLOOR, Harm, References, gain, references
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Summary
from dcqcn_gym.runs.entries import Entry

Stage: TypeAlias = Literal["online", "final"]
STAGES: tuple[Stage, ...] = ("online", "final")
"""While it tunes, and what it recommends on held-out traffic."""


@dataclass(frozen=True, eq=False)
class StageScores:
    """One stage of an entry: arrays of shape (scenarios, repetitions).

    ``risk`` is R against the default on the same traffic, ``score`` S, ``utility`` PARALEON's.
    ``classes`` has the gain of each class of sizes, of shape (scenarios, repetitions, classes).
    ``changes`` are those of the guardrails, of shape (scenarios, guardrails, repetitions).
    ``beside`` holds figures that decide nothing, by name.
    """

    risk: FloatArray
    score: FloatArray
    utility: FloatArray
    classes: FloatArray
    changes: FloatArray
    beside: Mapping[str, FloatArray]
    harm: Harm


@dataclass(frozen=True, eq=False)
class OnlineCurves:
    """How online runs went; ``utility`` has by scenario the shape (repetitions, intervals).

    ``so_far`` is S up to each checkpoint against the default up to there, of shape (checkpoints,
    scenarios, repetitions). ``wire_bytes`` are the bytes of an interval, of shape (scenarios,
    repetitions). ``recommended`` holds the setting that each repetition ended with.
    """

    so_far: FloatArray
    utility: Mapping[str, FloatArray]
    wire_bytes: FloatArray
    recommended: Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, eq=False)
class EntryScores:
    """An entry's two stages; without them where runs of its own are ``missing``, or the default's.

    ``repetitions`` are as many as it ran; its default's first ones are its pairs.
    """

    name: str
    parts: Mapping[Stage, StageScores]
    missing: int
    repetitions: int
    curve: OnlineCurves | None = None

    @property
    def complete(self) -> bool:
        """True if every run of the entry is there, and of the default."""
        return bool(self.parts)


Runs: TypeAlias = Mapping[str, Sequence[RunReading | None]]
"""What was read, by scenario, one entry a repetition; None for a run that is not there."""


def score_entries(board: Leaderboard, workers: int | None = 1) -> list[EntryScores]:
    """Return every entry of a leaderboard in its order; the default scores 0 everywhere.

    Its logs are read by ``workers`` processes, None: one per CPU.
    """
    logs = [path for attempt in board.attempts() for path in attempt.logs]
    read = dict(zip(logs, read_runs(logs, workers), strict=True))
    runs = {entry.name: _runs(board, entry, read) for entry in board.entries}
    baseline = runs[BASELINE]
    missing = {name: _missing(of) for name, of in runs.items()}
    whole = {name: of for name, of in runs.items() if not missing[name] and not missing[BASELINE]}
    parts = {stage: _parts(stage, whole) for stage in STAGES}
    return [
        EntryScores(
            name,
            {stage: parts[stage][name] for stage in STAGES} if name in whole else {},
            missing[name],
            board.repeated(name),
            _curve(of["online"], baseline["online"]) if name in whole else None,
        )
        for name, of in runs.items()
    ]


def _missing(runs: Mapping[Stage, Runs]) -> int:
    return count(one is None for stage in STAGES for ones in runs[stage].values() for one in ones)


def _runs(
    board: Leaderboard, entry: Entry, read: Mapping[Path, RunReading | None]
) -> Mapping[Stage, Runs]:
    found: dict[Stage, dict[str, list[RunReading | None]]] = {stage: {} for stage in STAGES}
    for attempt in board.attempts(entry):
        for stage, path in zip(STAGES, attempt.logs, strict=True):
            found[stage].setdefault(attempt.scenario.name, []).append(read[path])
    return found


def _parts(stage: Stage, runs: Mapping[str, Mapping[Stage, Runs]]) -> dict[str, StageScores]:
    """Return one stage of every complete entry."""
    seen = {
        name: [[one for one in ones if one is not None] for ones in of[stage].values()]
        for name, of in runs.items()
    }
    summaries = {name: [[one.whole for one in ones] for ones in of] for name, of in seen.items()}
    if not summaries:
        return {}
    against = references(summaries[BASELINE], summaries.get(FLOOR, ()))
    return {name: _part(seen[name], of, against) for name, of in summaries.items()}


def _part(
    readings: Sequence[Sequence[RunReading]],
    runs: Sequence[Sequence[Summary]],
    against: Sequence[References],
) -> StageScores:
    gains = [one.gains(of) for one, of in zip(against, runs, strict=True)]
    score = np.array([[run.score for run in of] for of in gains])
    changes = np.array([one.changes(of) for one, of in zip(against, runs, strict=True)])
    prices = np.array([one.prices(of) for one, of in zip(against, changes, strict=True)])
    return StageScores(
        risk=score - prices.sum(axis=1),
        score=score,
        utility=np.array([[run.utility for run in of] for of in runs]),
        classes=np.array([[run.classes for run in of] for of in gains]),
        changes=changes,
        beside=_beside(readings),
        harm=Harm(prices.mean(axis=2), changes.mean(axis=2)),
    )


def _beside(readings: Sequence[Sequence[RunReading]]) -> dict[str, FloatArray]:
    return {
        name: np.array([[one.beside[name] for one in of] for of in readings])
        for name in readings[0][0].beside
    }


def _curve(runs: Runs, baseline: Runs) -> OnlineCurves:
    pairs = {  # by scenario, each run beside the default's on the same traffic
        name: [(a, b) for a, b in zip(ours, baseline[name], strict=False) if a and b]
        for name, ours in runs.items()
    }
    so_far = [
        [[gain(a.so_far[k], b.so_far[k]).score for a, b in both] for both in pairs.values()]
        for k in range(len(CHECKPOINTS))
    ]
    return OnlineCurves(
        np.array(so_far),
        {name: np.array([a.utility for a, _ in both]) for name, both in pairs.items()},
        np.array([[a.wire_bytes for a, _ in both] for both in pairs.values()]),
        {name: [a.recommended for a, _ in both] for name, both in pairs.items()},
    )
