"""The score S: how much lower slowdowns are than under the default, in every class of sizes.

PARALEON's utility and the slowdown of *finished* flows can both be raised by starving elephants:
what never finishes is in neither. So the score counts every flow that started in the window, one
that is unfinished at its age, and gives each class of sizes the same weight. docs/verdict.md
explains it and shows what it is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.interval import FloatArray, IntArray
from dcqcn_gym.core.statistics import SizeRange, slowdowns, statistic

BoolArray = npt.NDArray[np.bool_]

GUARD = 0.2
"""Share of the window at its end whose starts are left out: they had no time to finish."""


@dataclass(frozen=True)
class FlowClass(SizeRange):
    """Flows of ``low <= bytes < high``; ``name`` for people, ``key`` in files (1 KB = 1000 B)."""

    key: str
    name: str
    low: int
    high: float


CLASSES = (
    FlowClass("0-100KB", "mice", 0, 1e5),
    FlowClass("100KB-1MB", "middle flows", 100_000, 1e6),
    FlowClass("1MB-", "elephants", 1_000_000, math.inf),
)
"""The classes of the score; each counts the same."""


@dataclass(frozen=True, eq=False)
class Flows:
    """Flows that started in a window: sizes, slowdowns (at least 1), and which were finished.

    The slowdown of an unfinished flow is its age at the end of the window over its ideal time: a
    lower bound of what it will be.
    """

    bytes: IntArray
    slowdown: FloatArray
    finished: BoolArray
    time_ps: FloatArray | None = None
    """Completion times, of unfinished flows their age; None where only slowdowns are known."""

    @property
    def unfinished_share(self) -> float:
        """Share of flows that were not finished, in 0..1; NaN without flows."""
        return float(np.mean(~self.finished)) if self.finished.size else math.nan

    @classmethod
    def none(cls) -> Flows:
        """Return a table without flows."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.bool_))


@dataclass(frozen=True)
class ClassFigures:
    """Slowdowns of one class over all flows, unfinished ones at their age; NaN without flows."""

    flow_class: FlowClass
    count: int
    mean: float
    p99: float


def window_flows(
    finished: tuple[IntArray, IntArray, IntArray, IntArray],
    unfinished: tuple[IntArray, IntArray, IntArray],
    *,
    begin_ps: int,
    end_ps: int,
    guard: float = GUARD,
) -> Flows:
    """Return the flows that started in the first ``1 - guard`` of the window [begin, end).

    ``finished`` are bytes, start, completion time and ideal time, ``unfinished`` bytes, start and
    ideal time; all times in ps. Raises ConfigError if an ideal time is not above 0.
    """
    size, start, fct, ideal = finished
    open_size, open_start, open_ideal = unfinished
    starts = np.concatenate([start, open_start])
    times = np.concatenate([fct, end_ps - open_start])
    slow = slowdowns(times, np.concatenate([ideal, open_ideal]))
    chosen = (starts >= begin_ps) & (starts < begin_ps + (1 - guard) * (end_ps - begin_ps))
    return Flows(
        bytes=np.concatenate([size, open_size])[chosen],
        slowdown=np.maximum(slow[chosen], 1.0),
        finished=(np.arange(starts.size) < start.size)[chosen],
        time_ps=times[chosen].astype(np.float64),
    )


def class_figures(flows: Flows) -> list[ClassFigures]:
    """Return mean and 99th percentile of every class."""
    rows = []
    for flow_class in CLASSES:
        chosen = flows.slowdown[flow_class.holds(flows.bytes)]
        found = ClassFigures(flow_class, int(chosen.size), statistic(chosen), statistic(chosen, 99))
        rows.append(found)
    return rows


def tail_times_ps(flows: Flows) -> list[float]:
    """Return the 99th percentile of completion time of every class in ps; NaN where not known."""
    if flows.time_ps is None:
        return [math.nan for _ in CLASSES]
    return [statistic(flows.time_ps[of.holds(flows.bytes)], 99) for of in CLASSES]


def class_score(
    ours: Sequence[ClassFigures],
    default: Sequence[ClassFigures],
    weights: Sequence[float] = (1.0,) * len(CLASSES),
) -> float | None:
    """Return G(default) - G(ours), with G = mean over classes of (ln mean + ln p99) / 2.

    Classes that are empty in either are left out; None if none is left. Above 0 is better.
    ``weights`` of the classes are all the same, except to see what others would change.
    """
    gains = [
        ((math.log(theirs.mean / own.mean) + math.log(theirs.p99 / own.p99)) / 2, weight)
        for own, theirs, weight in zip(ours, default, weights, strict=True)
        if own.count and theirs.count and weight > 0
    ]
    if not gains:
        return None
    values, shares = zip(*gains, strict=True)
    return float(np.average(values, weights=shares))


def round_score(ours_ps: Sequence[float], default_ps: Sequence[float]) -> float | None:
    """Return ln(mean round of the default / ours) of a closed loop; None without rounds.

    Times are those of the rounds in the window, the running one at its age.
    """
    if not ours_ps or not default_ps:
        return None
    return math.log(float(np.mean(default_ps)) / float(np.mean(ours_ps)))


def score(parts: Sequence[float | None]) -> float | None:
    """Return S of a seed: the mean of its open-loop and closed-loop scores, where there are any."""
    known = [part for part in parts if part is not None]
    return float(np.mean(known)) if known else None


def geometric_ratio(value: float) -> float:
    """Return exp(-S): the geometric ratio of slowdowns to the default's (0.48: 52 % lower)."""
    return math.exp(-value)
