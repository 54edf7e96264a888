"""PARALEON (ICNP 2024), Fig. 11 (a): accuracy of the flow-size distribution by monitor interval."""

from __future__ import annotations

from functools import partial

from dcqcn_gym.benchmarks.papers.claims import AtLeast, Cause, Claim, Derived, Level, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Size
from dcqcn_gym.benchmarks.papers.monitors import MEASURES, SKETCH, accuracy, excess, rise
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON

PLACE = "section IV-B, Fig. 11 (a)"
ROWS = (PARALEON, SKETCH)
INTERVALS = (1, 2, 5, 10)
LOAD = 30


def measure(cell: Cell, size: Size) -> CellResult:
    """Show a monitor the packets of FB_Hadoop, read out at an interval in ms."""
    return accuracy(cell.row, LOAD, int(cell.x), cell.seed, size)


def _points() -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(ROWS, INTERVALS)


CAUSE = Cause(
    "a flow is judged by the size that it ends with, which nobody knows while it is young: "
    "judged by what they have sent so far, the same labels are right for nearly all flows",
    Level("causal", PARALEON, 1), AtLeast(0.97),
)  # fmt: skip


FIGURE = Figure(
    name="P-fig11a",
    paper="paraleon",
    title="accuracy of monitors by monitor interval",
    x="interval, ms",
    sizes={
        "smoke": Size(_points(), 2, 10, {"hosts": 16, "warmup_ms": 10}),
        "quick": Size(_points(), 3, 40, {"hosts": 16, "warmup_ms": 10}),
        "full": Size(_points(), 3, 40, {"hosts": 128, "warmup_ms": 10}),
    },
    measure=measure,
    revision=2,
    measures=MEASURES,
    claims=(
        Claim(
            "PARALEON's accuracy is 100 % or very close to it at every interval", PLACE,
            {f"{ms} ms": Level("label", PARALEON, ms) for ms in INTERVALS}, AtLeast(0.97, 0.9), 100,
            " %", ".1f", CAUSE,
        ),
        Claim(
            "Elastic Sketch's stays below: PARALEON is better by", PLACE,
            {f"{ms} ms": Derived(partial(excess, SKETCH, ms)) for ms in INTERVALS}, Sign(1), 100,
            " points", "+.1f",
        ),
        Claim(
            "longer intervals help Elastic Sketch: from 1 to 10 ms it gains", PLACE,
            Derived(partial(rise, SKETCH, 1, 10)), Sign(1), 100, " points", "+.1f",
        ),
    ),
    plots=(Against("label", "Flows labelled right, %", "interval, ms", scale=100, log_x=True),),
    ours=(
        "measured by `dcqcn-gym paper monitors` (docs/measured/monitoring.md), FB_Hadoop at "
        "30 % of the host links; quick: 16 hosts at 25 Gb/s",
        "the intervals are ours; very close to 100 %: at least 97 %",
    ),
)  # fmt: skip
