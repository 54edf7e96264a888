"""DCQCN+ (ICNP 2018), Fig. 9: 1900 senders to 10 receivers in a fabric of 2410 nodes."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import AtLeast, AtMost, Claim, Level, Reading
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.incast import ROWS
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario

PLACE = "section V-C, Fig. 9"
HOSTS, EDGES = 2000, 200
CORE = HOSTS + 2 * EDGES
"""The first core; each leads to one aggregation switch of the 20th pod, numbers 190 to 199."""
NEW, HARD, QUICK = "dcqcn-plus", "dcqcn-plus, alpha stays 1", "dcqcn-plus, g = 1/16"
WEIGHTS = {HARD: 0, QUICK: 64}
"""g of a row, of 1024."""
BUFFERS = {"dcqcn-plus, 2.5 MB of buffer": 2_500_000, "dcqcn-plus, 10 MB of buffer": 10_000_000}
TOTAL = 10 * 40e9
"""What the ten receivers can take: also what the cores can pass to their pod."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the incast; total sending rate, and the queues of the cores towards the receivers."""
    row = {**ROWS[cell.row.partition(",")[0]], "monitor": {"kind": "none"}}
    if cell.row in BUFFERS:
        row["switch"] = {"buffer_bytes": BUFFERS[cell.row]}
    fabric = changed_scenario(load_scenario("plus-clos-2410"), row, cell.row)
    weight = {"plus_g": WEIGHTS[cell.row]} if cell.row in WEIGHTS else {}
    setting = fabric.initial_setting().replace(weight)
    ports = [(core, HOSTS + EDGES + 190 + i) for i, core in enumerate(range(CORE, CORE + 10))]
    seen = probe(fabric, cell.seed, size.length_ms, every_us=500, ports=ports, setting=setting)
    late = seen.after(min(0.2, size.length_ms / 2000))
    worst = int(seen.queue[late].mean(axis=0).argmax())
    values = {
        "rate": float(seen.rate[late].mean() / TOTAL),
        "queue": float(np.median(seen.queue[late][:, worst])),
        "worst": statistic(seen.queue[late], 99),
    }
    series = {
        "rate": thinned(seen.time, seen.rate / TOTAL),
        "queue": thinned(seen.time, seen.queue[:, worst]),
    }
    return CellResult(values, series, seen.hops)


OWN_ALPHA = Reading(
    "where alpha stays 1 (series); the paper does not give g. With DCQCN's 1/256 and K_alpha = "
    "tau = 190 us alpha is down to a tenth when the last flow starts, since PFC delays packets and "
    "CNPs: cuts of 5 % do not win against the increases. Half the buffer keeps the queue short too",
    Level("queue", HARD, 1900),
)  # fmt: skip


def _others(measure: str) -> list[Reading]:
    """Return the readings of a claim that the series with another g or buffer are."""
    rows = [QUICK, *BUFFERS]
    return [Reading(f"with {row.partition(', ')[2]}", Level(measure, row, 1900)) for row in rows]


POINTS = dict.fromkeys((NEW, *WEIGHTS, *BUFFERS), (1900,))
FIGURE = Figure(
    name="D-fig9",
    paper="dcqcn-plus",
    title="1900 to 10 in a fabric of 2410 nodes",
    x="senders",
    sizes={
        "smoke": Size(POINTS, 1, length_ms=1),
        "quick": Size(POINTS, 5, length_ms=260),
        "full": Size({**POINTS, "dcqcn": (1900,)}, 5, length_ms=500),
    },
    measure=measure,
    measures=(
        Measure("rate", "total sending rate from half of the run on, % of 400 Gb/s", 1e2, ".1f"),
        Measure("queue", "median queue of the fullest core port, KB", 1e-3, ".0f"),
        Measure("worst", "99th percentile of all core ports, KB", 1e-3, ".0f"),
    ),
    claims=(
        Claim("the total rate converges to 400 Gb/s, on average about 95 % (90 % counts)", PLACE,
              Level("rate", NEW, 1900), AtLeast(0.9, 0.7), 100, " %", ".1f",
              readings=(Reading("where alpha stays 1", Level("rate", HARD, 1900)),
                        *_others("rate"))),
        Claim("the queue of a core switch is cut to less than 200 KB (250 KB counts)", PLACE,
              Level("queue", NEW, 1900), AtMost(250e3, 500e3), 1e-3, " KB", ".0f",
              readings=(OWN_ALPHA, *_others("queue"))),
    ),
    plots=(
        Over("rate", "Total sending rate, % of 400 Gb/s", "ms", ((NEW, 1900), (HARD, 1900)), 1e2,
             1e3, lines=((95, "claim: 95 %"),)),
        Over("queue", "Queue of the fullest core port, KB", "ms", ((NEW, 1900), (HARD, 1900)), 1e-3,
             1e3, lines=((200, "claim: 200 KB"),)),
    ),
    ours=(
        "the fabric (scenario plus-clos-2410): a fat tree of k = 20, 2000 hosts, 200 edge and 200 "
        "aggregation switches, with 10 of its 100 cores, 40 Gb/s and 1 us everywhere",
        "the ten receivers share a rack; paths are hashed",
        "switches with the default buffer of a 40 Gb/s fabric, 5 MB",
    ),
)  # fmt: skip
