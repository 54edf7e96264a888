"""From logs to the verdict: what was measured on each held-out seed, paired with the references."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcqcn_gym.core.score import GUARD, Flows
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Change, Measured, Verdict
from dcqcn_gym.report.metrics import mean_utility
from dcqcn_gym.report.series import Series

CONGESTION = ("marks", "cnps", "pauses", "drops")
"""Counts of an interval that are above 0 only where something queued."""

UNTOLD = (
    "the logs do not tell which flows were unfinished (their backend cannot know), so nothing can "
    "be said"
)


@dataclass(frozen=True)
class JudgedSetting:
    """A setting against the references: the verdict over the baseline, and every figure's change.

    ``against`` holds the table of each reference by its name; the first one is the baseline's.
    """

    verdict: Verdict
    against: Mapping[str, Sequence[Change]]
    seeds: int
    drawn: bool = True
    """False if the traffic is the same on every seed."""


def tells_unfinished(series: Series) -> bool:
    """Return whether the log has the flows that were not finished."""
    return series.left is not None


def measured(series: Series) -> Measured:
    """Return what counts for the verdict of a log; no flows where unfinished ones are unknown."""
    begin, end = series.window_ps
    seconds = (end - begin) * 1e-12
    delivered = series.column("delivered_bytes")
    rtt = series.column("rtt_mean_ps")
    rtt = rtt[np.isfinite(rtt)]
    return Measured(
        flows=series.all_flows or Flows.none(),
        goodput_bps=float(np.sum(delivered)) * 8 / seconds if seconds > 0 else 0.0,
        rtt_s=statistic(rtt) * 1e-12,
        pause_share=float(np.mean(series.pause_share)) if len(series) else float("nan"),
        worst_pause=_worst_pause(series),
        utility=mean_utility(series),
        rounds_ps=_rounds_ps(series),
        drawn=series.drawn,
        marks=count(r.get(key, 0) for r in series.records for key in CONGESTION),
        slack=_slack(series),
    )


def _worst_pause(series: Series) -> float:
    """Return the mean over intervals of the share that the worst device of each was paused.

    NaN where a log does not tell, since its backend cannot know.
    """
    shares = [
        r["worst_pause_ps"] / (r["end_ps"] - r["start_ps"])
        for r in series.records
        if r.get("worst_pause_ps") is not None
    ]
    return float(np.mean(shares)) if shares and len(shares) == len(series) else math.nan


def _slack(series: Series) -> float:
    """Return the share of iterations in which the busiest rank of each does not compute.

    NaN where other traffic than jobs ran: it may gain whatever they do.
    """
    scenario = series.header.get("scenario")
    workloads: Any = scenario.get("workloads") if isinstance(scenario, Mapping) else None
    parts = [part for r in series.records for part in r.get("jobs", ())]
    whole = count(part["time_ps"] for part in parts)
    if not whole or not workloads or any(w.get("kind") != "job" for w in workloads):
        return math.nan
    return 1 - count(max(part["computing_ps"]) for part in parts) / whole


def _rounds_ps(series: Series) -> list[int]:
    """Return the times of rounds that started before the guard; running ones count at their age."""
    begin, end = series.window_ps
    before = begin + (1 - GUARD) * (end - begin)
    done = [
        (int(r["start_ps"]), int(r["time_ps"]))
        for record in series.records
        for r in record.get("rounds", ())
        if "start_ps" in r
    ]
    running = [
        (int(r["start_ps"]), end - int(r["start_ps"]))
        for r in (series.end or {}).get("running_rounds") or ()
    ]
    return [time for start, time in (*done, *running) if begin <= start < before]
