"""DCQCN+ (ICNP 2018), Fig. 9: 1900 senders to 10 receivers in a fabric of 2410 nodes."""

from __future__ import annotations

import random
from functools import cache

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import AtLeast, AtMost, Claim, Level
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Over, Size
from dcqcn_gym.benchmarks.papers.incast import ROWS, UNLIMITED
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.envs.scenario.scenario import Scenario

PLACE = "section V-C, Fig. 9"
PODS, SIDE, CORES = 20, 10, 10
HOSTS = PODS * SIDE * SIDE
EDGES = PODS * SIDE
LINE = 40e9
TOTAL = 10 * LINE
"""What the ten receivers can take: also what the cores can pass to their pod."""


@cache
def links() -> tuple[dict[str, object], ...]:
    """Return the links: edge switches, aggregation switches, then the cores.

    A fat tree of k = 20 with one core for each aggregation switch of a pod instead of ten.
    """
    found = [(f"h{host}", f"s{host // SIDE}") for host in range(HOSTS)]
    for pod in range(PODS):
        aggregation = [EDGES + pod * SIDE + i for i in range(SIDE)]
        found += [(f"s{pod * SIDE + i}", f"s{a}") for i in range(SIDE) for a in aggregation]
        found += [(f"s{a}", f"s{2 * EDGES + i}") for i, a in enumerate(aggregation)]
    return tuple({"ends": ends, "gbps": 40, "delay_us": 1} for ends in found)


def scenario(row: str, seed: int) -> Scenario:
    """Return the fabric with one flow from each host of 19 pods to hosts 0, 10, ..., 90."""
    draw = random.Random(seed)
    flows = [
        {"src": src, "dst": SIDE * (src % 10), "bytes": UNLIMITED,
         "start_ns": draw.randrange(100_000_000)}
        for src in range(HOSTS // PODS, HOSTS)
    ]  # fmt: skip
    return Scenario.model_validate(
        {
            "name": "clos-2410",
            "warmup_us": 0,
            "topology": {
                "kind": "graph",
                "hosts": HOSTS,
                "switches": 2 * EDGES + CORES,
                "links": links(),
            },
            "monitor": {"kind": "none"},
            "workloads": [{"kind": "flows", "flows": flows}],
            **ROWS[row],
        }
    )


def measure(cell: Cell, size: Size) -> Measured:
    """Run the incast; total sending rate, and the queues of the cores towards the receivers."""
    fabric = scenario(cell.row, cell.seed)
    ports = [(HOSTS + 2 * EDGES + i, HOSTS + EDGES + i) for i in range(CORES)]
    seen = probe(fabric, cell.seed, size.length_ms, every_us=500, ports=ports)
    late = seen.after(min(0.2, size.length_ms / 2000))
    worst = int(seen.queue[late].mean(axis=0).argmax())
    values = {
        "rate": float(seen.rate[late].mean() / TOTAL),
        "queue": float(np.median(seen.queue[late][:, worst])),
        "worst": float(np.percentile(seen.queue[late], 99)),
    }
    series = {
        "rate": thinned(seen.time, seen.rate / TOTAL),
        "queue": thinned(seen.time, seen.queue[:, worst]),
    }
    return Measured(values, series, seen.hops)


BOTH = {"dcqcn-plus": (1900,), "dcqcn": (1900,)}
FIGURE = Figure(
    name="D-fig9",
    paper="dcqcn-plus",
    title="1900 to 10 in a fabric of 2410 nodes",
    x="senders",
    sizes={
        "smoke": Size({"dcqcn-plus": (1900,)}, 1, length_ms=1),
        "quick": Size({"dcqcn-plus": (1900,)}, 3, length_ms=400),
        "full": Size(BOTH, 5, length_ms=500),
    },
    measure=measure,
    measures=(
        Measure("rate", "total sending rate from 200 ms on, % of 400 Gb/s", 1e2, ".1f"),
        Measure("queue", "median queue of the fullest core port, KB", 1e-3, ".0f"),
        Measure("worst", "99th percentile of all core ports, KB", 1e-3, ".0f"),
    ),
    claims=(
        Claim("the total rate converges to 400 Gb/s, on average about 95 % (90 % counts)", PLACE,
              Level("rate", "dcqcn-plus", 1900), AtLeast(0.9, 0.7), 100, " %", ".1f"),
        Claim("the queue of a core switch is cut to less than 200 KB (250 KB counts)", PLACE,
              Level("queue", "dcqcn-plus", 1900), AtMost(250e3, 500e3), 1e-3, " KB", ".0f"),
    ),
    plots=(
        Over("rate", "Total sending rate, % of 400 Gb/s", "ms", (("dcqcn-plus", 1900),), 1e2, 1e3,
             lines=((95, "claim: 95 %"),)),
        Over("queue", "Queue of the fullest core port, KB", "ms", (("dcqcn-plus", 1900),), 1e-3,
             1e3, lines=((200, "claim: 200 KB"),)),
    ),
    ours=(
        "the fabric: a fat tree of k = 20 (2000 hosts, 200 edge and 200 aggregation switches) with "
        "10 of its 100 cores, 40 Gb/s and 1 us everywhere",
        "the ten receivers are in ten racks of the 20th pod; sender i sends to receiver i modulo "
        "10; paths are hashed",
    ),
)  # fmt: skip
