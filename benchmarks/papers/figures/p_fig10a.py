"""PARALEON (ICNP 2024), Fig. 10 (a): accuracy of the flow-size distribution by load."""

from __future__ import annotations

from functools import partial

from dcqcn_gym.benchmarks.papers.claims import Claim, Derived, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, Figure, Measured, Size
from dcqcn_gym.benchmarks.papers.monitors import MEASURES, NETFLOW, SKETCH, accuracy, excess
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON

PLACE = "section IV-B, Fig. 10 (a)"
ROWS = (PARALEON, SKETCH, NETFLOW)
LOADS = (10, 20, 30, 40, 50)


def measure(cell: Cell, size: Size) -> Measured:
    """Show a monitor the packets of FB_Hadoop at a load of the host links, in percent."""
    return accuracy(cell.row, int(cell.x), 1, cell.seed, size)


def _points(loads: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(ROWS, loads)


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
    measures=MEASURES,
    claims=tuple(
        Claim(
            f"PARALEON's distribution is more accurate than that of {row} at {load} % load, by",
            PLACE, Derived(partial(excess, row, load)), Sign(1), 100, " points", "+.1f",
        )
        for load in LOADS
        for row in (SKETCH, NETFLOW)
    ),
    plots=(Against("label", "Flows labelled right, %", "load, %", scale=100),),
    ours=(
        "the measurement is that of `dcqcn-gym bench monitor` (docs/monitoring.md), which has the "
        "paper's fabric too; quick: 16 hosts at 25 Gb/s",
        "the paper does not define accuracy: the share of active flows with the label of their "
        "final size, an unseen flow being wrong",
        "NetFlow exports every interval here, which favours it: the paper's exports every second",
    ),
)  # fmt: skip
