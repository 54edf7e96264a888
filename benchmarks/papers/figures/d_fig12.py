"""DCQCN+ (ICNP 2018), Fig. 12: how much its hyper step and its largest cut matter."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Cause,
    Claim,
    Effect,
    Growth,
    Level,
    Reading,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import (
    Against,
    Cell,
    CellResult,
    Figure,
    Measure,
    Over,
    Size,
)
from dcqcn_gym.benchmarks.papers.incast import RATE, ROWS, WORST, incast, large_incast

PLACE = "section VI-B, Fig. 12"
STEP, CUT = "hyper step, 1200 flows", "largest cut, 720 flows"
FEW = "hyper step, 12 flows"
SHORT_MEMORY, DOUBLING = f"{STEP}, g = 1/16", f"{STEP}, 1 Gb/s or doubling"
"""The second is what the text says a factor of 5 means; equation 21 doubles at a factor of 1."""
POINTS = {STEP: (0.5, 1, 2, 5), CUT: (0.25, 0.5, 0.75, 1), FEW: (1, 5), SHORT_MEMORY: (1, 5),
          DOUBLING: (5,)}  # fmt: skip
RARE = Cause(
    "each of so many flows is cut again before its increases have become hyper steps. Twelve "
    "flows reach them: the queue's 99th percentile is up by far more than half, and the rate "
    "falls",
    Growth("worst", FEW, FEW, 5, 1), Effect(0.5),
)  # fmt: skip
OTHERS = (
    Reading("with g = 1/16", Growth("worst", SHORT_MEMORY, SHORT_MEMORY, 5, 1)),
    Reading("with steps of 1 Gb/s or the rate", Growth("worst", DOUBLING, STEP, 5, 1)),
    Reading("by a tenth less throughput", Growth("rate", STEP, STEP, 5, 1), AtMost(-0.1)),
)


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the flows of the row at 10 Gb/s with its parameter at x."""
    count, x = int(cell.row.split()[2]), float(cell.x)
    scenario = incast(ROWS["dcqcn-plus"], 10, count)
    changes = {"plus_hai_line": x, "plus_hai_share": 100 * x}
    if cell.row == CUT:
        changes = {"plus_cut": 100 * x}
    elif cell.row == DOUBLING:
        changes = {"plus_hai_line": 10}
    elif cell.row == SHORT_MEMORY:
        changes["plus_g"] = 64
    setting = scenario.initial_setting().replace(changes)
    return large_incast(scenario, cell.seed, size.length_ms, setting)


def _holds(factor: float) -> Claim:
    return Claim(
        f"hyper steps {factor:g} times as large: works as well, the queue stays short",
        PLACE, Level("queue", STEP, factor), AtMost(250e3), 1e-3, " KB", ".1f",
    )  # fmt: skip


FIGURE = Figure(
    name="D-fig12",
    paper="dcqcn-plus",
    title="sensitivity to the parameters of DCQCN+",
    x="factor, or share of alpha",
    sizes={
        "smoke": Size(POINTS, 1, length_ms=10),
        "quick": Size(POINTS, 8, length_ms=500),
        "full": Size(POINTS, 20, length_ms=1000),
    },
    measure=measure,
    measures=(
        Measure("queue", "median queue from 200 ms on, KB", 1e-3, ".1f"),
        WORST,
        Measure("drained", "below 250 KB after, ms", 1e3, ".0f"),
        RATE,
    ),
    claims=(
        _holds(0.5),
        _holds(2),
        Claim("hyper steps 5 times as large are too extreme: the queue's 99th percentile is up",
              PLACE, Growth("worst", STEP, STEP, 5, 1), Sign(1), 100, " %", "+.0f", RARE,
              OTHERS),
        Claim("a larger cut drains more quickly: 3/4 against 1/4 of alpha",
              PLACE, Growth("drained", CUT, CUT, 0.75, 0.25), Sign(-1), 100, " %", "+.0f"),
        Claim("and loses more throughput: 3/4 against 1/4 of alpha",
              PLACE, Growth("rate", CUT, CUT, 0.75, 0.25), Sign(-1), 100, " %", "+.1f"),
    ),
    plots=(
        Over("queue", "Queue, KB", "ms", ((CUT, 0.25), (CUT, 0.5), (CUT, 0.75)), 1e-3, 1e3,
             lines=((250, "claim: 250 KB"),)),
        Against("worst", "99th percentile of the queue from 200 ms on, KB",
                "factor, or share of alpha", (STEP, CUT, FEW), 1e-3),
        Against("rate", "Sending rate from 200 ms on, % of the link", "factor, or share of alpha",
                (STEP, CUT, FEW), 1e2),
    ),
    ours=(
        "a factor multiplies both bounds of equation 21, the rate and (S - 4F) % of the link",
        "the shares of alpha other than 1/2, which the text does not name",
    ),
    revision=2,
)  # fmt: skip
