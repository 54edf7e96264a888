"""DCQCN+ (ICNP 2018), Fig. 5: timers and steps that suit a large incast starve 8 flows."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import Claim, Growth, Sign
from dcqcn_gym.benchmarks.papers.figure import (
    Against,
    Cell,
    CellResult,
    Figure,
    Measure,
    Over,
    Size,
)
from dcqcn_gym.benchmarks.papers.incast import ROWS, SINK, incast
from dcqcn_gym.benchmarks.papers.probe import probe, thinned

PLACE = "section III-D, Fig. 5"
FAST, SLOW, SLOWEST = STEPS = ("R_AI 40 Mb/s", "R_AI 10 Mb/s", "R_AI 4 Mb/s")
LINE = 40e9


def measure(cell: Cell, size: Size) -> CellResult:
    """Run 8 flows that start within a microsecond; the total sending rate over time."""
    scenario = incast(ROWS["dcqcn"], 40, 8, within_us=1)
    values = {"rp_time_reset": float(cell.x), "rp_ai_rate": float(cell.row.split()[1])}
    setting = scenario.initial_setting().replace(values)
    seen = probe(scenario, cell.seed, size.length_ms, every_us=500, ports=[SINK], setting=setting)
    share = seen.rate / LINE
    smooth = np.convolve(share, np.full(10, 0.1), "valid")  # means over 5 ms
    reached = np.flatnonzero(smooth[1:] >= 0.95)  # the first mean holds the start at line rate
    back = seen.time[reached[0] + 10] if reached.size else size.length_ms * 1e-3
    return CellResult(
        {"back": float(back), "mean": float(share.mean())},
        {"rate": thinned(seen.time, share)},
        seen.hops,
    )


def _points(timers: tuple[int, ...], steps: tuple[str, ...] = STEPS) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(steps, timers)


FIGURE = Figure(
    name="D-fig5",
    paper="dcqcn-plus",
    title="parameters for large incast with 8 flows of DCQCN",
    x="K, us",
    sizes={
        "smoke": Size(_points((55, 2000), (FAST, SLOWEST)), 2, length_ms=12),
        "quick": Size(_points((55, 300, 1000, 2000)), 3, length_ms=500),
        "full": Size(_points((55, 150, 300, 600, 1000, 2000)), 20, length_ms=500),
    },
    measure=measure,
    measures=(
        Measure("back", "95 % of the link again after, ms", 1e3, ".3g"),
        Measure("mean", "mean rate, % of the link", 1e2, ".1f"),
    ),
    claims=(
        Claim(
            "a longer timer K slows recovery: time to 95 % of the link, 2000 us against 55 us",
            PLACE, Growth("back", FAST, FAST, 2000, 55), Sign(1), 100, " %", "+.0f",
        ),
        Claim(
            "a smaller step R_AI slows recovery: the same, 4 Mb/s against 40 Mb/s",
            PLACE, Growth("back", SLOWEST, FAST, 55), Sign(1), 100, " %", "+.0f",
        ),
        Claim(
            "values for large incast lose throughput at a small one: mean rate, K = 2000 us and "
            "R_AI = 4 Mb/s (those of 1000 flows) against 55 us and 40 Mb/s",
            PLACE, Growth("mean", SLOWEST, FAST, 2000, 55), Sign(-1), 100, " %", "+.1f",
        ),
    ),
    plots=(
        Over(
            "rate", "Total sending rate of 8 flows, % of the link", "ms",
            ((FAST, 55), (FAST, 2000), (SLOWEST, 55), (SLOWEST, 2000)), 1e2, 1e3,
            lines=((95, "95 %"),),
        ),
        Against("back", "Time to 95 % of the link, ms", "K, us", scale=1e3, log_x=True, log_y=True),
    ),
    ours=("the link (40 Gb/s) and the values of K and R_AI, of which the text gives none",),
)  # fmt: skip
