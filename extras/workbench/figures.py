"""What the workbench knows of one setting: figures, classes of flow sizes, and series over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dcqcn_gym.core.answer import SIZES
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.score import CLASSES, Flows, class_figures, window_flows
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.core.sums import mean
from dcqcn_gym.report.metrics import METRICS
from dcqcn_gym.report.series import Series

SHOWN = ("utility", "throughput", "rtt", "paused", "marked", "drops", "unfinished", "round")
"""The metrics of a column each, beside those of the classes of flow sizes."""

MOST_POINTS = 200
"""A longer series is shown as means over neighbouring intervals."""

STATISTICS: Mapping[str, float | None] = {"mean": None, "p99": 99.0}


_NONE = Flows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.bool_), np.zeros(0))


@dataclass(frozen=True)
class SizeFigures:
    """Flows of one class: how many, their slowdowns and completion times (ms); NaN without any.

    Each is the mean over the samples of the sample's figure, as in the answer.
    """

    key: str
    count: int
    slowdown: Mapping[str, float]
    time_ms: Mapping[str, float]

    @property
    def name(self) -> str:
        """What the class is called."""
        return SIZES[self.key]


@dataclass(frozen=True)
class Figures:
    """Everything that is shown of one setting, in the units of people."""

    metrics: Mapping[str, float]
    """By the names of :data:`SHOWN`; NaN where a run lacks one."""
    sizes: tuple[SizeFigures, ...]
    over_time: Mapping[str, Sequence[float]]
    """``ms`` since the first interval, ``utility``, ``throughput`` (Gb/s), ``rtt`` (us) and
    ``paused`` (%), a mean over the seeds for each interval."""
    finished_only: bool = False
    """True if the flows are those alone that finished: no log says which did not."""


def figures_of(samples: Sequence[Sequence[Series]]) -> Figures:
    """Return the figures of a setting from its runs.

    The flows of one sample count together, those of several are a mean: a sample is a seed, in a
    comparison all held-out seeds of one search.
    """
    runs = [run for sample in samples for run in sample]
    flows = [_together([_flows(run) for run in sample]) for sample in samples]
    return Figures(
        metrics={
            name: METRICS[name].scale * _mean([METRICS[name].of(run) for run in runs])
            for name in SHOWN
        },
        sizes=tuple(_sizes(i, flows) for i in range(len(CLASSES))),
        over_time=_over_time(runs),
        finished_only=any(run.left is None for run in runs),
    )


def _flows(run: Series) -> Flows:
    if run.left is not None or not run.records:
        return run.all_flows or _NONE
    done, none = run.finished, np.zeros(0, np.int64)
    begin, end = run.window_ps
    return window_flows(
        (done.bytes, done.start_ps, run.fct_ps, done.ideal_fct_ps),
        (none, none, none),
        begin_ps=begin,
        end_ps=end,
    )


def _together(parts: Sequence[Flows]) -> Flows:
    times = [part.time_ps for part in parts if part.time_ps is not None]
    return Flows(
        np.concatenate([part.bytes for part in parts]),
        np.concatenate([part.slowdown for part in parts]),
        np.concatenate([part.finished for part in parts]),
        np.concatenate(times) if len(times) == len(parts) else None,
    )


def _sizes(i: int, flows: Sequence[Flows]) -> SizeFigures:
    of = CLASSES[i]
    rows = [class_figures(one)[i] for one in flows]
    times = [one.time_ps[of.holds(one.bytes)] * 1e-9 for one in flows if one.time_ps is not None]
    return SizeFigures(
        of.key,
        int(np.sum([row.count for row in rows], dtype=np.int64)),
        {"mean": _mean([row.mean for row in rows]), "p99": _mean([row.p99 for row in rows])},
        {s: _mean([statistic(t, percent) for t in times]) for s, percent in STATISTICS.items()},
    )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return mean(known) if known else math.nan


def _over_time(runs: Sequence[Series]) -> dict[str, list[float]]:
    n = min(len(run) for run in runs)
    width = max(1, math.ceil(n / MOST_POINTS))
    columns = {
        "utility": [np.where(run.busy, run.utility, np.nan) for run in runs],
        "throughput": [run.column("throughput_bps") * 1e-9 for run in runs],
        "rtt": [run.column("rtt_mean_ps") * 1e-6 for run in runs],
        "paused": [run.pause_share * 100 for run in runs],
    }
    found = {name: _thinned([one[:n] for one in of], width) for name, of in columns.items()}
    return {"ms": list(runs[0].time_ms[:n][width - 1 :: width][: n // width]), **found}


def _thinned(columns: Sequence[FloatArray], width: int) -> list[float]:
    """Return means over the seeds and over ``width`` intervals; NaN where nothing is known."""
    n = len(columns[0]) // width * width
    stacked = np.stack([one[:n].reshape(-1, width) for one in columns])
    return [_mean(list(stacked[:, i].ravel())) for i in range(stacked.shape[1])]
