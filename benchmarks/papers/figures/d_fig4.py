"""DCQCN+ (ICNP 2018), Fig. 4: from how many flows on DCQCN no longer drains an incast."""

from __future__ import annotations

from functools import partial

from dcqcn_gym.benchmarks.papers.claims import (
    AtLeast,
    Between,
    Cause,
    Claim,
    Derived,
    Growth,
    Level,
    Reading,
)
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Over, Size
from dcqcn_gym.benchmarks.papers.incast import (
    HELD_BYTES,
    PAUSED,
    QUEUE,
    RATE,
    ROWS,
    WORST,
    fails_from,
    incast,
    large_incast,
)

PLACE = "section III-C, Fig. 4"
TEN, QUARTER, FORTY, CARD = ("10G", "10G, quarter steps", "40G", "40G, cx4")
STEEP = "40G, R_AI 160 Mb/s"
CARD_ALPHA = "40G, cx4, alpha as published"
FULL = {
    TEN: {**ROWS["dcqcn"], "initial": "dcqcn-paper"},
    QUARTER: ROWS["dcqcn"],
    FORTY: ROWS["dcqcn"],
    CARD: ROWS["cx4"],
    STEEP: ROWS["dcqcn"],
    CARD_ALPHA: ROWS["cx4"],
}


def measure(cell: Cell, size: Size) -> CellResult:
    """Run so many flows; the congested queue from 200 ms on."""
    gbps = int(cell.row.partition("G")[0])
    scenario = incast(FULL[cell.row], gbps, int(cell.x))
    setting = scenario.initial_setting()
    if cell.row == STEEP:
        setting = setting.replace({"rp_ai_rate": 160})
    if cell.row == CARD_ALPHA:
        setting = setting.replace({"rp_dce_tcp_g": 1020, "rp_dce_tcp_rtt": 55})
    return large_incast(scenario, cell.seed, size.length_ms, setting)


SMALL = (40, 50, 60, 70, 80, 100, 120)
QUARTERED = (40, 60, 80, 100, 120)
LARGE = (80, 240, 320, 480)
CARDS = (320, 400, 480, 640)
POINTS = {
    TEN: SMALL,
    QUARTER: QUARTERED,
    FORTY: LARGE,
    CARD: CARDS,
    STEEP: (240,),
    CARD_ALPHA: (480, 640),
}


def _near(flows: int) -> Between:
    """Return the rule that a threshold is this, within a factor of 1.5; 3 is near."""
    return Between(flows / 1.5, flows * 1.5, (flows / 3, flows * 3))


CAUSE = Cause(
    "at 40 Gb/s the step decides: with R_AI of 160 Mb/s, the same share of the link as 40 Mb/s at"
    " 10 Gb/s, the queue of 240 flows is ten times as long, near what PFC allows. With the "
    "published 40 Mb/s the collapse comes later",
    Growth("queue", STEEP, FORTY, 240), AtLeast(9),
)  # fmt: skip

LATER = Reading(
    "at 480 flows, since the collapse comes later here; with R_AI of 160 Mb/s (series) at 240 too",
    Level("queue", FORTY, 480),
)

FIGURE = Figure(
    name="D-fig4",
    paper="dcqcn-plus",
    title="queue against number of flows under DCQCN",
    x="flows",
    sizes={
        "smoke": Size({TEN: (40, 120), QUARTER: (40, 120), FORTY: (40, 240), CARD: (80, 800),
                       STEEP: (240,), CARD_ALPHA: (480,)}, 1, length_ms=10),
        "quick": Size(POINTS, 3, length_ms=300),
        "full": Size(POINTS, 10, length_ms=1000),
    },
    measure=measure,
    measures=(
        QUEUE,
        WORST,
        RATE,
        PAUSED,
    ),
    claims=(
        Claim("10 Gb/s: congestion cannot be alleviated from about 80 flows on",
              PLACE, Derived(partial(fails_from, TEN)), _near(80), 1, " flows", ".0f"),
        Claim("10 Gb/s with a quarter of the rate steps: likewise",
              PLACE, Derived(partial(fails_from, QUARTER)), _near(80), 1, " flows", ".0f"),
        Claim("40 Gb/s: from about 160 flows on",
              PLACE, Derived(partial(fails_from, FORTY)), _near(160), 1, " flows", ".0f", CAUSE),
        Claim("with the parameters of ConnectX-4 only from 480 to 560 flows on",
              PLACE, Derived(partial(fails_from, CARD)), Between(320, 840, (160, 1680)), 1,
              " flows", ".0f"),
        Claim("10 Gb/s: beyond, the queue is what PFC holds, 4.9 MB",
              "section V-A", Level("queue", TEN, 120), AtLeast(0.9 * HELD_BYTES, 0.45 * HELD_BYTES),
              1e-3, " KB", ".0f"),
        Claim("40 Gb/s: likewise", "section V-A", Level("queue", FORTY, 240),
              AtLeast(0.9 * HELD_BYTES, 0.45 * HELD_BYTES), 1e-3, " KB", ".0f", CAUSE, (LATER,)),
    ),
    plots=(
        Against("queue", "Queue from 200 ms on, KB (median)", "flows", (TEN, QUARTER, FORTY, CARD),
                1e-3, log_x=True, log_y=True, lines=((4900, "PFC holds 4.9 MB"), (490, "a tenth"))),
        Over("queue", "Queue over time, KB", "ms", ((TEN, 60), (TEN, 120), (FORTY, 240),
             (FORTY, 480)), 1e-3, 1e3, lines=((4900, "PFC holds 4.9 MB"),)),
    ),
    ours=(
        "an incast counts as not alleviated if the median queue from 200 ms on is longer than a "
        "tenth of what PFC holds; the number is between the last that is alleviated and the first "
        "that is not (geometric mean)",
        "links of 1 us, and a buffer of which PFC lets this port fill 4.9 MB",
        "the paper's other half, a ConnectX-4 in a testbed, is not here: its parameters are. They "
        "do not say how alpha moves: here as in NICs today (every us, by 5/1024). As published (55 "
        "us, 1/256) 640 flows at 40 Gb/s are drained; at 10 Gb/s, see D-fig10, 480 are not",
    ),
    revision=2,
)  # fmt: skip
