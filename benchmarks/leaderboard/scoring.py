"""From the logs of a leaderboard to scores: every run against the default's on the same traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.cached_readings import Readings
from dcqcn_gym.benchmarks.leaderboard.harm import Harm, changes, harms_of
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE, Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS, Reading
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Summary, flags, scores
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.tuners import TUNERS

FloatArray = npt.NDArray[np.float64]
Stage: TypeAlias = Literal["online", "final"]
STAGES: tuple[Stage, ...] = ("online", "final")
"""While it tunes, and what it recommends on fresh traffic."""


@dataclass(frozen=True, eq=False)
class Part:
    """One stage of an entry: arrays of shape (scenarios, repetitions), and the limits it crosses.

    ``score`` is S against the default on the same traffic, ``utility`` PARALEON's. ``raised`` holds
    by scenario the names of the flags that are up: in protocol 1 those whose 95 % bound over the
    repetitions crosses its limit, in protocol 2 those with an exceedance in ``harm``. ``changes``
    are those of :func:`~.harm.changes`, of shape (scenarios, figures, repetitions), ``beside`` the
    figures beside the score by name.
    """

    score: FloatArray
    utility: FloatArray
    raised: Mapping[str, Sequence[str]]
    changes: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    beside: Mapping[str, FloatArray] = field(default_factory=dict)
    harm: Harm | None = None

    @property
    def flag_names(self) -> dict[str, int]:
        """On how many scenarios each flag is up, by the flag's name."""
        names = [name for found in self.raised.values() for name in found]
        return {name: names.count(name) for name in dict.fromkeys(names)}


@dataclass(frozen=True, eq=False)
class LearningCurve:
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
    parts: Mapping[Stage, Part]
    missing: int
    repetitions: int
    curve: LearningCurve | None = None

    @property
    def complete(self) -> bool:
        """True if every run of the entry is there, and of the default."""
        return bool(self.parts)


Runs: TypeAlias = Mapping[str, Sequence[Reading | None]]
"""What was read, by scenario, one entry a repetition; None for a run that is not there."""


def score_entries(board: Leaderboard, readings: Readings | None = None) -> list[EntryScores]:
    """Return every entry of a leaderboard in its order; the default scores 0 everywhere.

    ``readings`` are where its logs are read; by default here, and nothing is kept.
    """
    given = Readings(board) if readings is None else readings
    first = next(entry for entry in board.entries if entry.name == BASELINE)
    baseline = _runs(board, first, given)
    found = []
    for entry in board.entries:
        runs = baseline if entry is first else _runs(board, entry, given)
        missing = _missing(runs)
        whole = not missing and not _missing(baseline)
        parts = {s: _part(_pairs(runs[s], baseline[s])) for s in STAGES} if whole else {}
        curve = _curve(_pairs(runs["online"], baseline["online"])) if whole else None
        found.append(EntryScores(entry.name, parts, missing, board.repeated(entry.name), curve))
    return found if board.suite.file.protocol == 1 else _with_harm(board, found)


def references_of(board: Leaderboard) -> list[str]:
    """Return the entries that tell what chance does: built in, and as often run as any."""
    return [
        entry.name
        for entry in board.entries
        if entry.tuner in TUNERS.builtin and board.repeated(entry.name) == board.repetitions
    ]


def _with_harm(board: Leaderboard, entries: Sequence[EntryScores]) -> list[EntryScores]:
    """Return the entries with their harm as an amount, and no flags but what is beyond a limit."""
    names, known = list(board.suite.scenarios), references_of(board)
    whole = [entry for entry in entries if entry.complete]
    harms = {
        stage: harms_of({one.name: one.parts[stage].changes for one in whole}, known)
        for stage in STAGES
    }
    return [
        replace(entry, parts={
            stage: replace(part, harm=(harm := harms[stage][entry.name]),
                           raised={k: list(v) for k, v in harm.names(names).items()})
            for stage, part in entry.parts.items()
        })
        for entry in entries
    ]  # fmt: skip


def _missing(runs: Mapping[Stage, Runs]) -> int:
    return count(one is None for stage in STAGES for ones in runs[stage].values() for one in ones)


def _runs(board: Leaderboard, entry: Entry, readings: Readings) -> Mapping[Stage, Runs]:
    read = readings.of(entry)
    found: dict[Stage, dict[str, list[Reading | None]]] = {stage: {} for stage in STAGES}
    for attempt in board.attempts(entry):
        for stage, path in zip(STAGES, attempt.logs, strict=True):
            reading, _ = read.get(path, (None, None))
            found[stage].setdefault(attempt.scenario.name, []).append(reading)
    return found


Pairs: TypeAlias = Mapping[str, Sequence[tuple[Reading, Reading]]]
"""By scenario, each run of an entry beside the default's on the same traffic."""


def _pairs(runs: Runs, baseline: Runs) -> Pairs:
    return {
        name: [(a, b) for a, b in zip(ours, baseline[name], strict=False) if a and b]
        for name, ours in runs.items()
    }


def _part(pairs: Pairs) -> Part:
    score, utility, raised, changed = [], [], {}, []
    for name, both in pairs.items():
        score.append([_score(a.whole, b.whole) for a, b in both])
        utility.append([a.whole.utility for a, _ in both])
        found = flags([a.whole for a, _ in both], [b.whole for _, b in both])
        up = [flag.name for flag in found if flag.state == "up"]
        if up:
            raised[name] = up
        changed.append(changes([(a.whole, b.whole) for a, b in both]))
    return Part(np.array(score), np.array(utility), raised, np.array(changed), _beside(pairs))


def _beside(pairs: Pairs) -> dict[str, FloatArray]:
    first = next(iter(pairs.values()))[0][0]
    return {
        name: np.array([[a.beside[name] for a, _ in both] for both in pairs.values()])
        for name in first.beside
    }


def _curve(pairs: Pairs) -> LearningCurve:
    so_far = [
        [[_score(a.so_far[k], b.so_far[k]) for a, b in both] for both in pairs.values()]
        for k in range(len(CHECKPOINTS))
    ]
    return LearningCurve(
        np.array(so_far),
        {name: np.array([a.utility for a, _ in both]) for name, both in pairs.items()},
        np.array([[a.wire_bytes for a, _ in both] for both in pairs.values()]),
        {name: [a.recommended for a, _ in both] for name, both in pairs.items()},
    )


def _score(ours: Summary, default: Summary) -> float:
    """Return S of one run; 0 where nothing can be compared: neither gained nor lost."""
    found = scores([ours], [default])
    return found.mean if found.n and math.isfinite(found.mean) else 0.0
