"""DCQCN+ (ICNP 2018), Fig. 6: DCQCN+ drains an incast of 2000 flows; queue and sending rate."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import AtLeast, AtMost, Cause, Claim, Effect, Growth, Level
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
    BUFFER,
    BUFFERS,
    PAUSED,
    RATE,
    ROWS,
    WORST,
    incast,
    large_incast,
)

PLACE = "section V-A, Fig. 6"
TEN, FORTY = "dcqcn-plus 10G", "dcqcn-plus 40G"
OLD_TEN, OLD_FORTY = "dcqcn 10G", "dcqcn 40G"
QUICK_TEN, QUICK_FORTY = "g = 1/16, 10G", "g = 1/16, 40G"
OTHER_BUFFERS = [f"{buffer}, {link}" for buffer in BUFFERS for link in ("10G", "40G")]


def measure(cell: Cell, size: Size) -> CellResult:
    """Run so many flows; queue and sending rate from 200 ms on."""
    gbps = 10 if cell.row.endswith("10G") else 40
    row = ROWS["dcqcn" if cell.row in (OLD_TEN, OLD_FORTY) else "dcqcn-plus"]
    buffer = BUFFERS.get(cell.row.partition(", ")[0], BUFFER)
    scenario = incast(row, gbps, int(cell.x), buffer=buffer)
    setting = scenario.initial_setting()
    if cell.row in (QUICK_TEN, QUICK_FORTY):
        setting = setting.replace({"plus_g": 64})
    return large_incast(scenario, cell.seed, size.length_ms, setting)


def _points(counts: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    more = (OLD_TEN, OLD_FORTY, QUICK_TEN, QUICK_FORTY, *OTHER_BUFFERS)
    return {TEN: counts, FORTY: counts, **dict.fromkeys(more, (2000,))}


def _rate(row: str, other: str, link: str) -> Claim:
    """Return the claim about the rate, with the cause that the weight g shows."""
    cause = Cause(
        "the paper does not give g. With DCQCN's 1/256, alpha is still near 1 after a second (it "
        "falls once per tau = 2 ms) and every cut halves a rate; with g = 1/16 the rate is higher",
        Growth("rate", other, row, 2000), Effect(0.04),
    )  # fmt: skip
    return Claim(
        f"{link}: converged, the total sending rate is always above 90 % of the link",
        PLACE, Level("rate", row, 2000), AtLeast(0.9, 0.7), 100, " %", ".1f", cause,
    )  # fmt: skip


FIGURE = Figure(
    name="D-fig6",
    paper="dcqcn-plus",
    title="queue and sending rate of a large incast under DCQCN+",
    x="flows",
    sizes={
        "smoke": Size(_points((200, 2000)), 1, length_ms=10),
        "quick": Size(_points((2000,)), 3, length_ms=600),
        "full": Size(_points((200, 400, 800, 1200, 1600, 2000)), 10, length_ms=1000),
    },
    measure=measure,
    measures=(
        Measure("queue", "median queue from 200 ms on, KB", 1e-3, ".1f"),
        Measure("mean queue", "mean, KB", 1e-3, ".1f"),
        WORST,
        Measure("drained", "below 250 KB after, ms", 1e3, ".0f"),
        RATE,
        PAUSED,
    ),
    claims=(
        Claim("10 Gb/s, 2000 flows: converged, the queue is at most about 200 KB (with the reading "
              "of a curve: 250 KB)", PLACE, Level("queue", TEN, 2000), AtMost(250e3), 1e-3, " KB",
              ".1f"),
        Claim("40 Gb/s: likewise", PLACE, Level("queue", FORTY, 2000), AtMost(250e3), 1e-3, " KB",
              ".1f"),
        Claim("10 Gb/s: drained about 0.1 s after the last start (at 200 ms)", PLACE,
              Level("drained", TEN, 2000), AtMost(0.2, 0.3), 1e3, " ms", ".0f"),
        Claim("40 Gb/s: likewise", PLACE, Level("drained", FORTY, 2000), AtMost(0.2, 0.3), 1e3,
              " ms", ".0f"),
        Claim("10 Gb/s: the queue of DCQCN is 20 times as long (means)", PLACE,
              Growth("mean queue", OLD_TEN, TEN, 2000), Effect(19), 1, " times more", ".0f"),
        Claim("40 Gb/s: likewise", PLACE,
              Growth("mean queue", OLD_FORTY, FORTY, 2000), Effect(19), 1, " times more", ".0f"),
        _rate(TEN, QUICK_TEN, "10 Gb/s"),
        _rate(FORTY, QUICK_FORTY, "40 Gb/s"),
    ),
    plots=(
        Over("queue", "Queue of 2000 flows, KB", "ms", ((TEN, 2000), (FORTY, 2000),
             (OLD_TEN, 2000)), 1e-3, 1e3, lines=((250, "claim: 250 KB"),)),
        Over("rate", "Total sending rate of 2000 flows, % of the link", "ms",
             ((TEN, 2000), (FORTY, 2000), (QUICK_TEN, 2000)), 1e2, 1e3,
             lines=((90, "claim: 90 %"),)),
        Against("rate", "Sending rate from 200 ms on, % of the link", "flows", (TEN, FORTY), 1e2,
                lines=((90, "claim: 90 %"),)),
    ),
    ours=(
        "g = 1/256 and alpha = 1 at first, as in DCQCN; marking 20 / 200 KB with Pmax 1 %; a "
        "record stays in the NIC's list for 100 ms",
        "links of 1 us, and a buffer of which PFC lets this port fill 4.9 MB",
        "converged is from 200 ms on; the queue is a median because it touches 0 and rises in "
        "turn: its 99th percentile stands beside it",
    ),
    revision=2,
)  # fmt: skip
