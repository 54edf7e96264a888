"""DCQCN+ (ICNP 2018), Fig. 13(a): fairness, by the completion times of 8 like flows."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import Claim, Growth, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.incast import like_flows

PLACE = "section VI-C, Fig. 13(a)"
OLD, NEW = "dcqcn", "dcqcn-plus"


def measure(cell: Cell, size: Size) -> CellResult:
    """Run flows that start together at 40 Gb/s to their end."""
    return like_flows(cell, size, within_us=0)


FIGURE = Figure(
    name="D-fig13a",
    paper="dcqcn-plus",
    title="fairness of 8 flows of 10,000 packets, 40 Gb/s",
    x="flows",
    sizes={
        "smoke": Size(dict.fromkeys((OLD, NEW), (8,)), 2, more={"packets": 300}),
        "quick": Size(dict.fromkeys((OLD, NEW), (8,)), 20, more={"packets": 10_000}),
        "full": Size(dict.fromkeys((OLD, NEW), (8,)), 100, more={"packets": 10_000}),
    },
    measure=measure,
    measures=(
        Measure("mean", "mean completion time, ms", 1e3, ".4g"),
        Measure("max", "longest, ms", 1e3, ".4g"),
        Measure("spread", "spread, % of the mean", 1e2, ".2f"),
    ),
    claims=(
        Claim("DCQCN+ is fairer (smaller spread of completion times)", PLACE,
              Growth("spread", NEW, OLD, 8), Sign(-1), 100, " %", "+.1f"),
        Claim("DCQCN+ has a smaller mean completion time", PLACE,
              Growth("mean", NEW, OLD, 8), Sign(-1), 100, " %", "+.2f"),
    ),
    plots=(
        Over("cdf", "Share of 8 flows that are done", "ms", ((OLD, 8), (NEW, 8)), 1, 1e3),
    ),
    ours=('packets of 1000 B, where the paper prints "1000KB"', "links of 1 us"),
)  # fmt: skip
