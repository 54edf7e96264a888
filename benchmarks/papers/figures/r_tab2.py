"""Dolce-RC, Table II: DataMining on 1024 hosts, Dolce-RC against DCQCN."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import AtMost, Cause, Change, Claim, Effect
from dcqcn_gym.benchmarks.papers.fat_tree import ROWS, completion
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Over, Size

OLD, NEW, SLOW = ROWS
LOADS = (30, 50)


def measure(cell: Cell, size: Size) -> Measured:
    """Run DataMining."""
    return completion(cell, size, "DataMining_a")


def _claim(load: int, before: float, after: float) -> Claim:
    cause = Cause(
        "as in R-fig6: a CNP a microsecond cuts too often; with DCQCN's gap of 50 us Dolce-RC is "
        "not slower than DCQCN",
        Change("mean", SLOW, OLD, load), AtMost(0.05),
    )  # fmt: skip
    return Claim(
        f"{load} % load: the mean completion time falls from {before} to {after} us",
        "Table II", Change("mean", NEW, OLD, load), Effect(after / before - 1), 100, " %", "+.1f",
        cause,
    )  # fmt: skip


POINTS = dict.fromkeys(ROWS, LOADS)
FIGURE = Figure(
    name="R-tab2",
    paper="dolce-rc",
    title="DataMining on a fat tree of 1024 hosts",
    x="load, %",
    sizes={
        "smoke": Size(POINTS, 1, 0.3, {"k": 4, "wait_ms": 5}),
        "quick": Size(POINTS, 5, 8, {"k": 8, "wait_ms": 300}),
        "full": Size(POINTS, 3, 40, {"k": 16, "wait_ms": 400}),
    },
    measure=measure,
    measures=(
        Measure("flows", "flows", 1, ".0f"),
        Measure("mean", "mean completion time, us", 1e6, ".0f"),
        Measure("median", "median, us", 1e6, ".1f"),
        Measure("p99", "99th percentile, us", 1e6, ".0f"),
        Measure("paused", "hosts paused, % of the time", 1e2, ".2f"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=(_claim(30, 1509.33, 1288.00), _claim(50, 1465.95, 1250.19)),
    plots=tuple(
        Over("cdf", f"Share of flows that are done, load {load} %", "us",
             ((OLD, load), (NEW, load), (SLOW, load)), 1, 1e6, log_x=True)
        for load in LOADS
    ),
    ours=(
        "the number of flows, which the paper does not give (its 50 % is faster than its 30 %, so "
        "they are few): they start for 8 ms (quick) or 40 ms (full)",
        "size quick has a fat tree of k = 8, 128 hosts, for its cost; size full has 1024",
    ),
)  # fmt: skip
