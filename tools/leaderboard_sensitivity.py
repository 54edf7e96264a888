"""How ranks move when the judgement in the score is another: class weights, guard, limits.

``python tools/leaderboard_sensitivity.py DIR`` prints the table of
docs/leaderboard.md from the logs of a finished leaderboard.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE, Leaderboard, open_leaderboard
from dcqcn_gym.benchmarks.leaderboard.ranking import iqm, rank_groups
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.score import CLASSES, GUARD, Flows
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import LIMITS, Measured, flags, scores
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.table import Table, count_of

__all__ = ["VARIANTS", "Judgement", "Standing", "sensitivity_table", "standings"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """One way to judge: weights of mice, middle flows and elephants, the guard, the limits."""

    name: str
    weights: Sequence[float] = (1.0,) * len(CLASSES)
    guard: float = GUARD
    limits: Mapping[str, float] = field(default_factory=lambda: dict(LIMITS))


def _scaled(factor: float) -> dict[str, float]:
    return {name: limit * factor for name, limit in LIMITS.items()}


VARIANTS = (
    Judgement("as published"),
    Judgement("mice weigh twice", weights=(2, 1, 1)),
    Judgement("elephants weigh twice", weights=(1, 1, 2)),
    Judgement("mice alone", weights=(1, 0, 0)),
    Judgement("guard 10 %", guard=0.1),
    Judgement("guard 30 %", guard=0.3),
    Judgement("limits halved", limits=_scaled(0.5)),
    Judgement("limits doubled", limits=_scaled(2.0)),
    Judgement("no limits", limits=_scaled(math.inf)),
)


@dataclass(frozen=True)
class Standing:
    """Where an entry stands: its S, its rank group (None with a flag) and how many flags are up."""

    score: float
    rank_group: int | None
    flags: int

    def __str__(self) -> str:
        place = (
            count_of(self.flags, "flag") if self.rank_group is None else f"rank {self.rank_group}"
        )
        return f"{self.score:+.2f}, {place}"


Finals = Mapping[str, Sequence[tuple[Series, Measured]]]
"""By scenario, the final runs of an entry."""


def standings(
    board: Leaderboard, judgements: Sequence[Judgement]
) -> dict[str, dict[str, Standing]]:
    """Return every entry's standing, by judgement and entry; RunError if a run is missing."""
    finals = {entry.name: _finals(board, entry.name) for entry in board.entries}
    return {one.name: _judge(finals, one) for one in judgements}


def _finals(board: Leaderboard, name: str) -> Finals:
    entry = next(entry for entry in board.entries if entry.name == name)
    found: dict[str, list[tuple[Series, Measured]]] = {}
    for attempt in board.attempts(entry):
        series = Series.of(read_run(attempt.logs[1]))
        if series.end is None:
            raise RunError(f"{attempt.logs[1]} ends before its run did; bench run --out goes on")
        found.setdefault(attempt.scenario.name, []).append((series, measured(series)))
    return found


def _judge(finals: Mapping[str, Finals], how: Judgement) -> dict[str, Standing]:
    seen = {name: _measured_by(runs, how) for name, runs in finals.items()}
    default = seen[BASELINE]
    values = {name: _scores(runs, default, how) for name, runs in seen.items()}
    raised = {
        name: count(
            flag.state == "up"
            for scenario, ours in runs.items()
            for flag in flags(ours, default[scenario][: len(ours)], how.limits)
        )
        for name, runs in seen.items()
    }
    most = values[BASELINE].shape[1]  # an entry that ran less often has no rank
    clean = (name for name, value in values.items() if not raised[name] and value.shape[1] == most)
    ranks = rank_groups({name: values[name] for name in clean})
    return {
        name: Standing(iqm(value), ranks.get(name), raised[name]) for name, value in values.items()
    }


def _measured_by(runs: Finals, how: Judgement) -> dict[str, list[Measured]]:
    return {
        scenario: [
            replace(whole, flows=series.flows_before(how.guard) or Flows.none())
            for series, whole in ones
        ]
        for scenario, ones in runs.items()
    }


def _scores(
    runs: Mapping[str, Sequence[Measured]],
    default: Mapping[str, Sequence[Measured]],
    how: Judgement,
) -> FloatArray:
    return np.array(
        [
            [_one(a, b, how) for a, b in zip(ours, default[scenario], strict=False)]
            for scenario, ours in runs.items()
        ]
    )


def _one(ours: Measured, default: Measured, how: Judgement) -> float:
    found = scores([ours], [default], how.weights)
    return found.mean if found.n and math.isfinite(found.mean) else 0.0


def sensitivity_table(found: Mapping[str, Mapping[str, Standing]]) -> Table:
    """Return entries as lines, judgements as columns."""
    names = list(next(iter(found.values())))
    lines = [(name, *(str(by_entry[name]) for by_entry in found.values())) for name in names]
    return Table(("entry", *found), lines, "final S and rank under other judgements")


def main(folder: str) -> None:
    """Print the table of a leaderboard as Markdown."""
    print(sensitivity_table(standings(open_leaderboard(Path(folder)), VARIANTS)).markdown())


if __name__ == "__main__":
    main(*sys.argv[1:])
