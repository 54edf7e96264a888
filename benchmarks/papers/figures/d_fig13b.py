"""DCQCN+ (ICNP 2018), Fig. 13(b): fairness, by the completion times of 800 like flows."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import AtMost, Claim, Growth, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.incast import like_flows

PLACE = "section VI-C, Fig. 13(b)"
OLD, NEW = "dcqcn", "dcqcn-plus"


def measure(cell: Cell, size: Size) -> CellResult:
    """Run flows that start within a microsecond at 40 Gb/s to their end."""
    return like_flows(cell, size, within_us=1)


POINTS = dict.fromkeys((OLD, NEW), (800,))
FIGURE = Figure(
    name="D-fig13b",
    paper="dcqcn-plus",
    title="fairness of 800 flows of 30,000 packets, 40 Gb/s",
    x="flows",
    sizes={
        "smoke": Size(POINTS, 2, more={"packets": 10}),
        "quick": Size(POINTS, 6, more={"packets": 10_000}),
        "full": Size(POINTS, 60, more={"packets": 30_000}),
    },
    measure=measure,
    measures=(
        Measure("mean", "mean completion time, ms", 1e3, ".4g"),
        Measure("max", "longest, ms", 1e3, ".4g"),
        Measure("spread", "spread, % of the mean", 1e2, ".2f"),
    ),
    claims=(
        Claim("DCQCN is fairer, as PFC lasts to the end (smaller spread)", PLACE,
              Growth("spread", NEW, OLD, 800), Sign(1), 100, " %", "+.0f"),
        Claim("with DCQCN+ the longest takes only 4 % longer than with DCQCN (10 % counts)", PLACE,
              Growth("max", NEW, OLD, 800), AtMost(0.1, 0.3), 100, " %", "+.1f"),
        Claim("DCQCN+ still has a smaller mean", PLACE,
              Growth("mean", NEW, OLD, 800), Sign(-1), 100, " %", "+.2f"),
    ),
    plots=(
        Over("cdf", "Share of 800 flows that are done", "ms", ((OLD, 800), (NEW, 800)), 1, 1e3),
    ),
    ours=("flows of 10,000 packets, a third, in size quick", "links of 1 us"),
)  # fmt: skip
