"""DCQCN+ (ICNP 2018), Fig. 13: fairness, by the completion times of like flows."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import AtMost, Change, Claim, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Over, Size
from dcqcn_gym.benchmarks.papers.incast import ROWS, flows_at_random, incast
from dcqcn_gym.benchmarks.papers.probe import probe

PLACE = "section VI-C, Fig. 13"
SMALL, LARGE = "8 flows", "800 flows"
OLD, NEW = "dcqcn", "dcqcn-plus"
STUCK_MS = 60_000


def measure(cell: Cell, size: Size) -> Measured:
    """Run all flows to their end, from starts within a microsecond (8 flows: together)."""
    count = int(str(cell.x).split()[0])
    packets = size.more["packets of 8" if count == 8 else "packets of 800"]
    flows = flows_at_random(count, 0.001, cell.seed, round(packets * 1000))
    if count == 8:
        flows = [{**flow, "start_ns": 0} for flow in flows]
    seen = probe(incast(ROWS[cell.row], 40, flows), cell.seed, STUCK_MS, until_done=True)
    fct = np.sort(seen.fct_s())
    values = {
        "mean": float(fct.mean()),
        "max": float(fct.max()),
        "spread": float(fct.std() / fct.mean()),
    }
    step = max(1, fct.size // 200)
    share = np.arange(1, fct.size + 1) / count
    cdf = fct[::step].tolist(), share[::step].tolist()
    return Measured(values, {"cdf": cdf}, seen.hops)


def _size(seeds: int, of_8: float, of_800: float) -> Size:
    more = {"packets of 8": of_8, "packets of 800": of_800}
    return Size({OLD: (SMALL, LARGE), NEW: (SMALL, LARGE)}, seeds, more=more)


FIGURE = Figure(
    name="D-fig13",
    paper="dcqcn-plus",
    title="fairness, 40 Gb/s",
    x="flows",
    sizes={
        "smoke": _size(2, 300, 10),
        "quick": _size(3, 10_000, 30_000),
        "full": _size(10, 10_000, 30_000),
    },
    measure=measure,
    measures=(
        Measure("mean", "mean completion time, ms", 1e3, ".4g"),
        Measure("max", "longest, ms", 1e3, ".4g"),
        Measure("spread", "spread, % of the mean", 1e2, ".2f"),
    ),
    claims=(
        Claim("8 flows of 10,000 packets: DCQCN+ is fairer (smaller spread of completion times)",
              PLACE, Change("spread", NEW, OLD, SMALL), Sign(-1), 100, " %", "+.0f"),
        Claim("8 flows: a smaller mean completion time",
              PLACE, Change("mean", NEW, OLD, SMALL), Sign(-1), 100, " %", "+.2f"),
        Claim("800 flows of 30,000 packets: DCQCN is fairer, as PFC lasts to the end",
              PLACE, Change("spread", NEW, OLD, LARGE), Sign(1), 100, " %", "+.0f"),
        Claim("800 flows: the longest is only 4 % longer than with DCQCN (10 % counts)",
              PLACE, Change("max", NEW, OLD, LARGE), AtMost(0.1, 0.2), 100, " %", "+.1f"),
        Claim("800 flows: still a smaller mean",
              PLACE, Change("mean", NEW, OLD, LARGE), Sign(-1), 100, " %", "+.2f"),
    ),
    plots=(
        Over("cdf", "Share of 8 flows that are done", "ms", ((OLD, SMALL), (NEW, SMALL)), 1, 1e3),
        Over("cdf", "Share of 800 flows that are done", "ms", ((OLD, LARGE), (NEW, LARGE)), 1, 1e3),
    ),
    ours=('packets of 1000 B, where the paper prints "1000KB"', "links of 1 us"),
)  # fmt: skip
