"""DCQCN+ (ICNP 2018), Fig. 7: TIMELY holds the queue of 1200 flows, and fails beyond."""

from __future__ import annotations

from functools import partial

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Between,
    Cause,
    Claim,
    Derived,
    Effect,
    Growth,
    Level,
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
from dcqcn_gym.benchmarks.papers.incast import (
    PAUSED,
    QUEUE,
    RATE,
    ROWS,
    WORST,
    fails_from,
    incast,
    large_incast,
)

PLACE = "section V-A, Fig. 7"
TIMELY, LOW, BOTH = "timely", "least rate 1 Mb/s", "least rate and step 1 Mb/s"
OTHER = "dcqcn-plus"
KNOBS = {TIMELY: {}, OTHER: {}, LOW: {"timely_min_rate": 1.0},
         BOTH: {"timely_min_rate": 1.0, "timely_step": 1.0}}  # fmt: skip
COUNTS = (80, 200, 400, 600, 800, 1200, 1600, 2000)


def measure(cell: Cell, size: Size) -> CellResult:
    """Run so many flows at 10 Gb/s; queue and sending rate from 200 ms on."""
    scenario = incast(ROWS[OTHER if cell.row == OTHER else TIMELY], 10, int(cell.x))
    setting = scenario.initial_setting().replace(KNOBS[cell.row])
    return large_incast(scenario, cell.seed, size.length_ms, setting)


CAUSE = Cause(
    "the paper gives no constants. Ours keep every queue pair at 1/1000 of the link or above, "
    "10 Mb/s, and add 10 Mb/s at a step: both are more than a share of 1/1200. With 1 Mb/s for "
    "both the median queue of 1200 flows is held",
    Level("queue", BOTH, 1200), AtMost(1e6),
)  # fmt: skip
SIZE = {TIMELY: COUNTS, LOW: (800, 1200, 2000), BOTH: (800, 1200, 2000), OTHER: (1200, 2000)}

FIGURE = Figure(
    name="D-fig7",
    paper="dcqcn-plus",
    title="a large incast under TIMELY, 10 Gb/s",
    x="flows",
    sizes={
        "smoke": Size({TIMELY: (80, 600, 1200, 2000), LOW: (1200,), BOTH: (1200, 2000),
                       OTHER: (1200, 2000)}, 1, length_ms=10),
        "quick": Size(SIZE, 3, length_ms=500),
        "full": Size(SIZE, 10, length_ms=1000),
    },
    measure=measure,
    measures=(
        QUEUE,
        WORST,
        RATE,
        Measure("unsteady", "spread of the rate, % of the link", 1e2, ".1f"),
        PAUSED,
    ),
    claims=(
        Claim("TIMELY still limits the queue at 1200 flows and fails at a larger scale",
              PLACE, Derived(partial(fails_from, TIMELY)), Between(1200, 2000, (400, 4000)), 1,
              " flows", ".0f", CAUSE),
        Claim("2000 flows: the queue of TIMELY is longer than that of DCQCN+",
              PLACE, Growth("mean queue", TIMELY, OTHER, 2000), Effect(9), 1, " times more", ".0f"),
        Claim("the rate is very unsteady when there are many flows: its spread at 600 flows "
              "against that at 80", PLACE, Growth("unsteady", TIMELY, TIMELY, 600, 80), Sign(1),
              100, " %", "+.0f"),
    ),
    plots=(
        Against("queue", "Queue from 200 ms on, KB (median)", "flows", (TIMELY, LOW, BOTH, OTHER),
                1e-3, log_x=True, log_y=True, lines=((4900, "PFC holds 4.9 MB"), (490, "a tenth"))),
        Over("rate", "Total sending rate, % of the link", "ms", ((TIMELY, 80), (TIMELY, 600),
             (BOTH, 1200)), 1e2, 1e3),
    ),
    ours=(
        "TIMELY's constants: docs/reference/schemes.md; the least rate is 1/1000 of the link",
        "an incast counts as not limited if the median queue from 200 ms on is longer than 490 KB, "
        "a tenth of what PFC holds",
    ),
    revision=2,
)  # fmt: skip
