"""How quick the engine is under each scheme: the same jobs, one scheme after the other."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine_speed import JOBS, JobResult, run_once

from dcqcn_gym.core.knobs import schemes
from dcqcn_gym.runs.table import Table

__all__ = ["DEFAULT_JOBS", "Speed", "measure_schemes", "table"]

DEFAULT_JOBS = ("permutation", "uplink30", "all-to-all")
"""Without congestion, with some, and with much of it."""


@dataclass(frozen=True)
class Speed:
    """One scheme in one job: median packet-hops per CPU second, and against the first scheme."""

    job: str
    scheme: str
    hops: int
    hops_per_s: float
    ratio: float


def measure_schemes(
    jobs: Sequence[str], repeats: int, say: Callable[[str], object] = lambda _: None
) -> list[Speed]:
    """Run every job under every scheme, in turns, so that a drift of the machine meets them all.

    Ratios are medians over the turns: hops per CPU second against DCQCN's of the same turn.
    """
    every = schemes()
    speeds = []
    for job in jobs:
        runs: dict[str, list[JobResult]] = {scheme: [] for scheme in every}
        for turn in range(repeats):
            for scheme in every:
                say(f"{job} under {scheme}, turn {turn + 1} of {repeats}")
                runs[scheme].append(run_once(replace(JOBS[job], scheme=scheme)))
        base = [run.hops_per_s for run in runs[every[0]]]
        for scheme in every:
            rates = [run.hops_per_s for run in runs[scheme]]
            ratio = statistics.median(a / b for a, b in zip(rates, base, strict=True))
            hops = runs[scheme][0].hops
            speeds.append(Speed(job, scheme, hops, statistics.median(rates), ratio))
    return speeds


def table(speeds: Sequence[Speed]) -> Table:
    """Return a row a job and scheme."""
    columns = ("job", "scheme", "M packet-hops", "M packet-hops per CPU s", "against DCQCN")
    rows = [
        [s.job, s.scheme, f"{s.hops / 1e6:.1f}", f"{s.hops_per_s / 1e6:.1f}", f"{s.ratio:.2f}"]
        for s in speeds
    ]
    return Table(columns, rows, words=2)
