"""What ``results.json`` holds besides the ranking, so that pages need nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.best_and_recovery import BestKnown, recovery
from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS
from dcqcn_gym.benchmarks.leaderboard.scoring import EntryScores, OnlineCurves
from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.files import read_text
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.tuners import TUNERS

POINTS = 26
"""Most points of a curve of utility: means over equal stretches of the budget."""


def suite_details(board: Leaderboard, best: Mapping[str, BestKnown]) -> dict[str, Any]:
    """Return the suite as the pages show it: its protocol, its scenarios' files, the best known."""
    suite = board.suite
    return {
        "suite": suite.file.name,
        "suite_digest": suite.digest,
        "protocol": suite.file.model_dump(mode="json"),
        "files": {name: read_text(suite.folder / f"{name}.toml") for name in suite.scenarios},
        "best_known": {name: asdict(one) for name, one in best.items()},
        "checkpoints": list(CHECKPOINTS),
    }


def entry_details(
    board: Leaderboard,
    entries: Sequence[EntryScores],
    curves: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Return what a page on an entry needs, by its name; incomplete entries have none.

    To the ``curves`` (:func:`curve_details`) comes recovery, which depends on the other entries.
    """
    phases = {
        scenario.name: scenario.phases for scenario in board.suite.file.scenarios if scenario.phases
    }
    waits = recovery(entries, phases)
    tuners = {entry.name: entry.tuner for entry in board.entries}
    return {
        entry.name: {
            "summary": _summary(tuners[entry.name]),
            **curves[entry.name],
            "recovery": waits[entry.name],
        }
        for entry in entries
        if entry.curve is not None
    }


def curve_details(curve: OnlineCurves) -> dict[str, Any]:
    """Return S up to each checkpoint, the utility's course and the settings, by scenario."""
    return {
        "anytime": {
            "score": [asdict(hierarchical(scores)) for scores in curve.so_far],
            "scores": {
                name: curve.so_far[:, i].mean(axis=-1).tolist()
                for i, name in enumerate(curve.utility)
            },
        },
        "utility": {name: _thinned(c) for name, c in curve.utility.items()},
        "settings": {name: _spread(s) for name, s in curve.recommended.items()},
    }


def _summary(tuner: str) -> str:
    if tuner not in TUNERS.builtin:
        return ""
    try:
        return TUNERS.load(tuner).summary
    except DcqcnGymError:
        return ""


def _thinned(curves: FloatArray) -> list[float]:
    """Return the mean over the repetitions, in at most :data:`POINTS` stretches."""
    mean = curves.mean(axis=0)
    return [round(float(np.mean(part)), 5) for part in np.array_split(mean, min(POINTS, mean.size))]


def _spread(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return least, median and largest value of each knob; groups of devices apart by a dot."""
    flat = [_flat(setting) for setting in settings]
    return {
        knob: [float(np.min(v)), float(np.median(v)), float(np.max(v))]
        for knob in flat[0]
        if (v := [one[knob] for one in flat if knob in one])
    }


def _flat(setting: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in setting.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{knob}": float(x) for knob, x in value.items()}
        else:
            found[key] = float(value)
    return found
