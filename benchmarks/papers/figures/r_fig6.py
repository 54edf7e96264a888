"""Dolce-RC, Fig. 6 and Table I: CacheFollower on 1024 hosts, Dolce-RC against DCQCN."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import Cause, Change, Claim, Effect, Sign
from dcqcn_gym.benchmarks.papers.fat_tree import ROWS, completion
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Over, Size

OLD, NEW, SLOW = ROWS
LOADS = (30, 50)


def measure(cell: Cell, size: Size) -> Measured:
    """Run CacheFollower."""
    return completion(cell, size, "CacheFollower")


def _claim(load: int, name: str, what: str, before: float, after: float, place: str) -> Claim:
    cause = Cause(
        "with a CNP a microsecond, as the paper sets its NICs, a flow is cut up to ten times "
        "before the first cut is felt, and falls to the lowest rate. With DCQCN's gap of 50 us "
        "Dolce-RC is faster than DCQCN",
        Change(name, SLOW, OLD, load), Sign(-1),
    )  # fmt: skip
    return Claim(
        f"{load} % load: {what} falls from {before} to {after} us",
        place, Change(name, NEW, OLD, load), Effect(after / before - 1), 100, " %", "+.1f", cause,
    )  # fmt: skip


TABLE, TEXT = "Table I", "section V-C"
FIGURE = Figure(
    name="R-fig6",
    paper="dolce-rc",
    title="CacheFollower on a fat tree of 1024 hosts, with Table I",
    x="load, %",
    sizes={
        "smoke": Size(dict.fromkeys(ROWS, LOADS), 1, 0.3, {"k": 4, "wait_ms": 30}),
        "quick": Size(dict.fromkeys(ROWS, LOADS), 3, 4, {"k": 8, "wait_ms": 100}),
        "full": Size(dict.fromkeys(ROWS, LOADS), 3, 10, {"k": 16, "wait_ms": 100}),
    },
    measure=measure,
    measures=(
        Measure("flows", "flows", 1, ".0f"),
        Measure("mean", "mean completion time, us", 1e6, ".1f"),
        Measure("median", "median, us", 1e6, ".1f"),
        Measure("p99", "99th percentile, us", 1e6, ".0f"),
        Measure("paused", "hosts paused, % of the time", 1e2, ".2f"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=(
        _claim(30, "mean", "the mean completion time", 481.43, 168.01, TABLE),
        _claim(50, "mean", "the mean completion time", 546.48, 234.97, TABLE),
        _claim(30, "p99", "the 99th percentile", 3088.51, 1829.14, TEXT),
        _claim(50, "p99", "the 99th percentile", 3074.44, 2024.28, TEXT),
    ),
    plots=tuple(
        Over("cdf", f"Share of flows that are done, load {load} %", "us",
             ((OLD, load), (NEW, load), (SLOW, load)), 1, 1e6, log_x=True)
        for load in LOADS
    ) + tuple(
        Over("rate", f"Total sending rate, Tb/s, load {load} %", "ms",
             ((OLD, load), (NEW, load), (SLOW, load)), 1e-12, 1e3)
        for load in LOADS
    ),
    ours=(
        "the number of flows, which the paper does not give: they start for 4 ms (quick) or 10 ms",
        "size quick has a fat tree of k = 8, 128 hosts, for its cost; size full has 1024",
        "DCQCN as published with the paper's marking; a connection of Dolce-RC is a pair of hosts",
    ),
)  # fmt: skip
