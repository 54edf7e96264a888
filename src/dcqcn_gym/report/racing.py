"""The best of many settings at a quarter of what it costs to try all of them to the end.

All meet the same traffic. Everybody has a short run of the first seed, the better fifth a longer
one, the better tenth all of it (successive halving, Jamieson and Talwalkar 2016). These meet the
other seeds one by one, but for those that are shown to be worse than the leader (a race as Maron
and Moore's of 1994, by Student's t). docs/engine.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dcqcn_gym.core.confidence import student_quantile
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.verdict import Measured, scores_by_seed
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.evaluated import Candidate, evaluate

RUNGS = ((0.17, 1.0), (0.4, 0.2), (1.0, 0.1))
"""Shares of the first seed's run, and of the settings that have it."""


@dataclass(frozen=True)
class Race:
    """The place of the best setting, and the intervals that were simulated to find it."""

    best: int
    intervals: int


def race(
    settings: Sequence[Candidate],
    reference: Candidate,
    scenarios: Sequence[Scenario],
    seeds: Sequence[int],
    worth: Callable[[Measured, Measured], float] | None = None,
    threads: int | None = None,
) -> Race:
    """Return the setting that is worth most in the mean over scenarios and seeds.

    ``worth`` takes a setting's run and the reference's on the same traffic; without it that is S.
    What is not finite counts as 0. Raises ConfigError without settings, scenarios or seeds.
    """
    if not (settings and scenarios and seeds):
        raise ConfigError("a race needs a setting, a scenario and a seed at least")
    ran = _Ran(settings, reference, scenarios, worth or _score, threads)
    left, values = list(range(len(settings))), np.zeros((len(settings), 1))
    for length, share in RUNGS:
        order = np.argsort(-values.mean(axis=1), kind="stable")
        left = [left[i] for i in order[: max(1, math.ceil(share * len(settings)))]]
        values = ran.on(left, seeds[0], length)
    for seed in seeds[1:]:
        stay = _stay(values)
        left, values = [left[i] for i in stay], values[stay]
        values = np.concatenate([values, ran.on(left, seed, 1.0)], axis=1)
    return Race(left[int(np.argmax(values.mean(axis=1)))], ran.intervals)


@dataclass
class _Ran:
    settings: Sequence[Candidate]
    reference: Candidate
    scenarios: Sequence[Scenario]
    worth: Callable[[Measured, Measured], float]
    threads: int | None
    intervals: int = 0

    def on(self, left: Sequence[int], seed: int, share: float) -> FloatArray:
        """Return what settings are worth: a row a setting, a column a scenario."""
        tried = [self.reference, *(self.settings[i] for i in left)]
        columns = []
        for scenario in self.scenarios:
            length = max(1, round(share * scenario.intervals))
            self.intervals += length * len(tried)
            runs = evaluate(tried, [scenario], [seed], length, self.threads)
            theirs, *found = (of_one[0][0] for of_one in runs)
            columns.append([self.worth(ours, theirs) for ours in found])
        rows: FloatArray = np.nan_to_num(np.array(columns, dtype=float).T, posinf=0.0, neginf=0.0)
        return rows


def _score(ours: Measured, theirs: Measured) -> float:
    return scores_by_seed([ours], [theirs])[0]


def _stay(values: FloatArray) -> list[int]:
    """Return the rows that are not shown to be worse than the best one (one side, 5 %)."""
    behind = values[np.argmax(values.mean(axis=1))] - values
    n = values.shape[1]
    if n < 2:
        return list(range(len(values)))
    error = behind.std(axis=1, ddof=1) / math.sqrt(n)
    return [
        int(i) for i in np.flatnonzero(behind.mean(axis=1) <= student_quantile(0.95, n - 1) * error)
    ]
