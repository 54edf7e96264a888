"""PARALEON (ICNP 2024), Fig. 10 (a): accuracy of the flow-size distribution by load."""

from __future__ import annotations

from functools import partial

from dcqcn_gym.benchmarks.papers.claims import Between, Claim, Derived, Growth, Level, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Size
from dcqcn_gym.benchmarks.papers.monitors import (
    MEASURES,
    NETFLOW,
    NO_MARKS,
    NO_WINDOWS,
    SKETCH,
    ablated,
    accuracy,
    excess,
)
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON

PLACE = "section IV-B, Fig. 10 (a)"
ROWS = (PARALEON, SKETCH, NETFLOW)
ABLATIONS = (NO_MARKS, NO_WINDOWS)
LOADS = (10, 20, 30, 40, 50)


def measure(cell: Cell, size: Size) -> CellResult:
    """Show a monitor the packets of FB_Hadoop at a load of the host links, in percent."""
    look = ablated if cell.row in ABLATIONS else partial(accuracy, interval_ms=1)
    return look(cell.row, int(cell.x), seed=cell.seed, size=size)


def _points(loads: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {**dict.fromkeys(ROWS, loads), **dict.fromkeys(ABLATIONS, (30,))}


FIGURE = Figure(
    name="P-fig10a",
    paper="paraleon",
    title="accuracy of monitors by load",
    x="load, %",
    sizes={
        "smoke": Size(_points(LOADS), 2, 4, {"hosts": 16, "warmup_ms": 2}),
        "quick": Size(_points(LOADS), 3, 40, {"hosts": 16, "warmup_ms": 10}),
        "full": Size(_points(LOADS), 3, 40, {"hosts": 128, "warmup_ms": 10}),
    },
    measure=measure,
    revision=2,
    measures=MEASURES,
    claims=(
      *(
        Claim(
            f"PARALEON's distribution is more accurate than that of {row} at every load, by",
            PLACE, {f"{load} %": Derived(partial(excess, row, load)) for load in LOADS}, Sign(1),
            100, " points", "+.1f",
        )
        for row in (SKETCH, NETFLOW)
      ),
      Claim(
          "without a mark the flows between racks are counted twice: flows counted per flow, with "
          "uniform destinations",
          "section III-B", Level("counted", NO_MARKS, 30), Between(1.4, 2.0), 1, "", ".2f",
      ),
      Claim(
          "the window finds elephants that single intervals miss: elephants found without it, "
          "against with it",
          "section III-B", Growth("recall", NO_WINDOWS, PARALEON, 30), Sign(-1), 100, " %", "+.1f",
      ),
    ),
    plots=(Against("label", "Flows labelled right, %", "load, %", ROWS, 100),),
    ours=(
        "measured by `dcqcn-gym paper monitors` (docs/measured/monitoring.md); quick: 16 "
        "hosts at 25 Gb/s",
        "accuracy, which the paper does not define: the share of active flows with the label of "
        "their final size, an unseen flow being wrong",
        "NetFlow exports every interval, which favours it; the paper's exports every second",
        "marking off: packets between racks count at both ends; on two racks half of the flows "
        "cross, on the paper's eight 88 %",
    ),
)  # fmt: skip
