"""What the leaderboard takes from the log of one run: figures for the score, and its course."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Measured, Summary, summary
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.log_line import WIRE_FIELDS
from dcqcn_gym.runs.pool import worker_pool

CHECKPOINTS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Shares of the budget at which an online run is scored as if it ended there."""
AT_ONCE = 16
"""Logs that a worker process reads in one go."""
FEW = 100
"""Logs that this process reads by itself, before worker processes are worth their start."""


@dataclass(frozen=True, eq=False)
class RunReading:
    """One finished run. ``so_far`` is what was measured up to each of :data:`CHECKPOINTS`.

    Their ``rounds_ps`` are the mean and the 99th percentile of rounds; those of collectives that
    were under way count at their age at the end only. ``utility`` has a
    value per interval, 1 where idle. ``wire_bytes`` are those of an interval, for measuring and
    tuning. ``recommended`` is the setting in NVIDIA's units, or one per group of devices.
    ``beside`` holds the figures of :func:`_beside`.
    """

    whole: Summary
    so_far: tuple[Summary, ...]
    utility: FloatArray
    wire_bytes: float
    recommended: Mapping[str, Any]
    beside: Mapping[str, float]


def read_stage(path: Path, *, curve: bool) -> RunReading | None:
    """Return a finished run; None if it is not there or not finished.

    Without ``curve`` only the whole is measured, ``so_far`` stays empty.
    """
    try:
        series = Series.of(read_run(path))
    except DcqcnGymError:
        return None
    if series.end is None:
        return None
    seen = measured(series)
    whole = _summarized(seen)
    size = len(series)
    stops = [round(share * size) for share in CHECKPOINTS] if curve else []
    sent = [r.get("wire", {}).get(name, 0) for r in series.records for name in WIRE_FIELDS]
    return RunReading(
        whole=whole,
        so_far=tuple(whole if n == size else _summarized(measured(series.first(n))) for n in stops),
        utility=series.utility,
        wire_bytes=count(sent) / size if size else 0.0,
        recommended=series.end.get("recommended") or {},
        beside=_beside(seen, series),
    )


def read_runs(paths: Sequence[Path], workers: int | None = 1) -> list[RunReading | None]:
    """Return what logs hold; ``workers`` processes, None: one per CPU, read many of them."""
    if workers == 1 or len(paths) <= FEW:
        return [_read(path) for path in paths]
    with worker_pool(workers) as pool:
        return list(pool.map(_read, paths, chunksize=AT_ONCE))


def _read(path: Path) -> RunReading | None:
    return read_stage(path, curve=path.name.startswith("online"))


def _summarized(seen: Measured) -> Summary:
    times = seen.rounds_ps
    rounds = [float(np.mean(times)), float(np.percentile(times, 99))] if times else []
    return replace(summary(seen), rounds_ps=rounds)


def _beside(seen: Measured, series: Series) -> dict[str, float]:
    """Return figures that decide nothing: p99.9, fairness, and how often the setting changed.

    ``p999`` is that of all slowdowns. ``fairness`` is Jain's index of 1 / slowdown over flows of
    1 MB and more: 1 if all are slowed down alike. ``setting_changes`` are those per 100 intervals.
    """
    slowdown = seen.flows.slowdown
    rates = 1 / slowdown[seen.flows.bytes >= CLASSES[-1].low]
    settings = [record["setting"] for record in series.records]
    moved = count(a != b for a, b in pairwise(settings))
    return {
        "p999": float(np.percentile(slowdown, 99.9)) if slowdown.size else math.nan,
        "fairness": float(rates.sum() ** 2 / (rates.size * (rates**2).sum()))
        if rates.size
        else math.nan,
        "setting_changes": 100 * moved / max(1, len(settings) - 1),
    }
