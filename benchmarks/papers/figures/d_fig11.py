"""DCQCN+ (ICNP 2018), Fig. 11: completion times of real workloads without incast."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.acks import as_asked
from dcqcn_gym.benchmarks.papers.claims import Between, Claim, Growth
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.incast import ROWS, network
from dcqcn_gym.benchmarks.papers.probe import probe

PLACE = "section V-E, Fig. 11"
CDFS = {"DataMining": "DataMining_a", "WebSearch": "WebSearch"}
OLD, NEW = "dcqcn", "dcqcn-plus"
OLD_HALF, NEW_HALF = "dcqcn, load 0.5", "dcqcn-plus, load 0.5"
LENGTH = {"DataMining": 5, "WebSearch": 1}
"""How long flows start, by workload: so that a host has the paper's "about 200" in all."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Start flows for a while between all hosts, and wait for the last of them."""
    length_ms = size.length_ms * LENGTH[str(cell.x)]
    workload = {
        "kind": "poisson",
        "cdf": CDFS[str(cell.x)],
        "load": 0.5 if cell.row in (OLD_HALF, NEW_HALF) else 0.8,
        "stop_us": length_ms * 1000,
    }
    scenario = as_asked(network(ROWS[cell.row.split(",")[0]], 10, [workload]), size)
    seen = probe(scenario, cell.seed, 20 * length_ms + 2000, until_done=True)
    fct = seen.fct_s()
    edges = np.arange(0, 6.01, 0.25)  # decades above 1 us
    count, _ = np.histogram(np.log10(fct * 1e6), edges)
    values = {
        "mean": float(fct.mean()),
        "typical": float(np.exp(np.log(fct).mean())),
        "flows": float(fct.size),
        "unfinished": float(seen.unfinished),
    }
    share = (edges[:-1] + 0.125).tolist(), (count / fct.size).tolist()
    return CellResult(values, {"histogram": share}, seen.hops)


POINTS = dict.fromkeys((OLD, NEW, OLD_HALF, NEW_HALF), tuple(CDFS))
SAME = Between(-0.15, 0.02, (-0.3, 0.1))


FIGURE = Figure(
    name="D-fig11",
    paper="dcqcn-plus",
    title="completion times of real workloads, 10 Gb/s, load 0.8",
    x="workload",
    data_acks=(OLD, NEW),
    sizes={
        "smoke": Size(POINTS, 2, length_ms=10),
        "quick": Size(POINTS, 4, length_ms=100),
        "full": Size(POINTS, 10, length_ms=300),
    },
    measure=measure,
    measures=(
        Measure("flows", "flows", 1, ".0f"),
        Measure("mean", "mean completion time, ms", 1e3, ".4g"),
        Measure("typical", "geometric mean, us", 1e6, ".4g"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=tuple(
        Claim(f"{workload}: DCQCN+ has only slightly smaller completion times (-15 to +2 % counts)",
              PLACE, {what: Growth(name, NEW, OLD, workload)
                      for what, name in (("mean", "mean"), ("geometric mean", "typical"))},
              SAME, 100, " %", "+.1f")
        for workload in CDFS
    ),
    plots=tuple(
        Over("histogram", f"{name}: share of flows by completion time, %",
             "decimal logarithm of microseconds", ((OLD, name), (NEW, name)), 1e2)
        for name in CDFS
    ),
    ours=(
        "the tables of both workloads (docs/scenarios.md); flows of WebSearch start for 0.3 s, of "
        "DataMining for 1.5 s (full; quick a third), and all are waited for: a host then has about "
        "200, the paper's number. With 20 s, sixty times as many, DCQCN+'s few percent less "
        "throughput (figure 8) add up to queues without a bound, and its mean is eight times as "
        "long",
    ),
    revision=3,
)  # fmt: skip
