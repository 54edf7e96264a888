"""What depends on all entries: the best known of a scenario, and recovery from shifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.scoring import EntryScores
from dcqcn_gym.core.interval import FloatArray

WITHIN = 0.95
"""Share of the phase's best utility from which on a run counts as recovered."""
SMOOTH = 3
"""Intervals over which utility is averaged before it is compared with the phase's best."""


@dataclass(frozen=True)
class BestKnown:
    """The best that any entry recommended on a scenario, and where it comes from.

    ``score`` is the mean final R of ``entry`` over its repetitions; ``setting``, in NVIDIA's units,
    is what ``repetition`` of it ended with, which alone had ``setting_score``.
    """

    entry: str
    score: float
    repetition: int
    setting: Mapping[str, Any]
    setting_score: float


def best_known(entries: Sequence[EntryScores], scenarios: Sequence[str]) -> dict[str, BestKnown]:
    """Return the best of each scenario; the default where no entry is above it."""
    found: dict[str, BestKnown] = {}
    for i, scenario in enumerate(scenarios):
        for entry in entries:
            if entry.curve is None:
                continue
            scores = entry.parts["final"].risk[i]
            best = int(np.argmax(scores))
            mine = float(np.mean(scores))
            if scenario not in found or mine > found[scenario].score:
                setting = entry.curve.recommended[scenario][best]
                found[scenario] = BestKnown(entry.name, mine, best, setting, float(scores[best]))
    return found


def recovery(
    entries: Sequence[EntryScores], phases: Mapping[str, Sequence[int]]
) -> dict[str, dict[str, float]]:
    """Return, by entry and scenario, the mean intervals until utility is near the phase's best.

    The phase's best is the largest mean utility that any entry holds over the phase's second half
    on the same traffic. A run has recovered at the first interval from which the mean of three
    intervals is within 5 % of it; one that never does counts the phase's length.
    """
    learned = {entry.name: entry.curve for entry in entries if entry.curve is not None}
    found: dict[str, dict[str, float]] = {name: {} for name in learned}
    for scenario, starts in phases.items():
        curves = {name: curve.utility[scenario] for name, curve in learned.items()}
        if not curves:
            continue
        size = next(iter(curves.values())).shape[1]
        waits: dict[str, list[float]] = {name: [] for name in curves}
        for start, stop in zip(starts, [*starts[1:], size], strict=True):
            for name, took in _phase(curves, start, stop).items():
                waits[name] += took
        for name, took in waits.items():
            found[name][scenario] = float(np.mean(took))
    return found


def _phase(curves: Mapping[str, FloatArray], start: int, stop: int) -> dict[str, list[float]]:
    """Return the intervals that each repetition of each entry took in one phase."""
    middle = (start + stop) // 2
    most = max(len(curve) for curve in curves.values())
    best = np.full(most, -np.inf)
    for curve in curves.values():
        held = curve[:, middle:stop].mean(axis=1)
        best[: len(held)] = np.maximum(best[: len(held)], held)
    return {
        name: [_wait(line[start:stop], level) for line, level in zip(curve, best, strict=False)]
        for name, curve in curves.items()
    }


def _wait(utility: FloatArray, best: float) -> float:
    width = min(SMOOTH, len(utility))
    smooth = np.convolve(utility, np.full(width, 1 / width), mode="valid")
    near = np.flatnonzero(smooth >= WITHIN * best)
    return float(near[0]) if near.size else float(len(utility))
