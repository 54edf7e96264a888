"""From the logs of a leaderboard to scores: every run against the default's on the same traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.cached_readings import Readings
from dcqcn_gym.benchmarks.leaderboard.harm import Harm, changes, harms_of
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE, Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS, RunReading
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Summary, scores
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.tuners import TUNERS

FloatArray = npt.NDArray[np.float64]
Stage: TypeAlias = Literal["online", "final"]
STAGES: tuple[Stage, ...] = ("online", "final")
"""While it tunes, and what it recommends on fresh traffic."""


@dataclass(frozen=True, eq=False)
class StageScores:
    """One stage of an entry: arrays of shape (scenarios, repetitions), and the limits it crosses.

    ``score`` is S against the default on the same traffic, ``utility`` PARALEON's. ``changes`` are
    those of :func:`~.harm.changes`, of shape (scenarios, figures, repetitions), ``beside`` figures
    that decide nothing, by name. ``raised`` holds by scenario the names of the limits that ``harm``
    is beyond.
    """

    score: FloatArray
    utility: FloatArray
    changes: FloatArray
    beside: Mapping[str, FloatArray]
    harm: Harm
    raised: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def flag_names(self) -> dict[str, int]:
        """On how many scenarios each flag is up, by the flag's name."""
        names = [name for found in self.raised.values() for name in found]
        return {name: names.count(name) for name in dict.fromkeys(names)}


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


def score_entries(board: Leaderboard, readings: Readings | None = None) -> list[EntryScores]:
    """Return every entry of a leaderboard in its order; the default scores 0 everywhere.

    ``readings`` are where its logs are read; by default here, and nothing is kept.
    """
    given = Readings(board) if readings is None else readings
    runs = {entry.name: _runs(board, entry, given) for entry in board.entries}
    baseline = runs[BASELINE]
    missing = {name: _missing(of) for name, of in runs.items()}
    pairs = {
        name: {stage: _pairs(of[stage], baseline[stage]) for stage in STAGES}
        for name, of in runs.items()
        if not missing[name] and not missing[BASELINE]
    }
    parts: dict[Stage, dict[str, StageScores]] = {
        stage: _parts(board, {name: of[stage] for name, of in pairs.items()}) for stage in STAGES
    }
    return [
        EntryScores(
            name,
            {stage: parts[stage][name] for stage in STAGES} if name in pairs else {},
            missing[name],
            board.repeated(name),
            _curve(pairs[name]["online"]) if name in pairs else None,
        )
        for name in runs
    ]


def references_of(board: Leaderboard) -> list[str]:
    """Return the entries that tell what chance does: built in, and as often run as any."""
    return [
        entry.name
        for entry in board.entries
        if entry.tuner in TUNERS.builtin and board.repeated(entry.name) == board.repetitions
    ]


def _missing(runs: Mapping[Stage, Runs]) -> int:
    return count(one is None for stage in STAGES for ones in runs[stage].values() for one in ones)


def _runs(board: Leaderboard, entry: Entry, readings: Readings) -> Mapping[Stage, Runs]:
    read = readings.of(entry)
    found: dict[Stage, dict[str, list[RunReading | None]]] = {stage: {} for stage in STAGES}
    for attempt in board.attempts(entry):
        for stage, path in zip(STAGES, attempt.logs, strict=True):
            reading, _ = read.get(path, (None, None))
            found[stage].setdefault(attempt.scenario.name, []).append(reading)
    return found


Pairs: TypeAlias = Mapping[str, Sequence[tuple[RunReading, RunReading]]]
"""By scenario, each run of an entry beside the default's on the same traffic."""


def _pairs(runs: Runs, baseline: Runs) -> Pairs:
    return {
        name: [(a, b) for a, b in zip(ours, baseline[name], strict=False) if a and b]
        for name, ours in runs.items()
    }


def _parts(board: Leaderboard, pairs: Mapping[str, Pairs]) -> dict[str, StageScores]:
    """Return one stage of every complete entry, whose harm needs what chance does to all."""
    scenarios = list(board.suite.scenarios)
    changed = {
        name: np.array([changes([(a.whole, b.whole) for a, b in both]) for both in of.values()])
        for name, of in pairs.items()
    }
    harms = harms_of(changed, references_of(board))
    return {
        name: StageScores(
            score=np.array([[_score(a.whole, b.whole) for a, b in both] for both in of.values()]),
            utility=np.array([[a.whole.utility for a, _ in both] for both in of.values()]),
            changes=changed[name],
            beside=_beside(of),
            harm=harms[name],
            raised={k: list(v) for k, v in harms[name].names(scenarios).items()},
        )
        for name, of in pairs.items()
    }


def _beside(pairs: Pairs) -> dict[str, FloatArray]:
    first = next(iter(pairs.values()))[0][0]
    return {
        name: np.array([[a.beside[name] for a, _ in both] for both in pairs.values()])
        for name in first.beside
    }


def _curve(pairs: Pairs) -> OnlineCurves:
    so_far = [
        [[_score(a.so_far[k], b.so_far[k]) for a, b in both] for both in pairs.values()]
        for k in range(len(CHECKPOINTS))
    ]
    return OnlineCurves(
        np.array(so_far),
        {name: np.array([a.utility for a, _ in both]) for name, both in pairs.items()},
        np.array([[a.wire_bytes for a, _ in both] for both in pairs.values()]),
        {name: [a.recommended for a, _ in both] for name, both in pairs.items()},
    )


def _score(ours: Summary, default: Summary) -> float:
    """Return S of one run; 0 where nothing can be compared: neither gained nor lost."""
    found = scores([ours], [default])
    return found.mean if found.n and math.isfinite(found.mean) else 0.0
