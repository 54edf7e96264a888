"""DCQCN+ (ICNP 2018), Fig. 11: completion times of real workloads without incast."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.acks import as_asked
from dcqcn_gym.benchmarks.papers.claims import Between, Cause, Change, Claim, Derived, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Over, Size
from dcqcn_gym.benchmarks.papers.incast import ROWS, network
from dcqcn_gym.benchmarks.papers.probe import probe
from dcqcn_gym.benchmarks.papers.results import Results

PLACE = "section V-E, Fig. 11"
CDFS = {"DataMining": "DataMining_a", "WebSearch": "WebSearch"}
OLD, NEW = "dcqcn", "dcqcn-plus"
OLD_HALF, NEW_HALF = "dcqcn, load 0.5", "dcqcn-plus, load 0.5"


def measure(cell: Cell, size: Size) -> Measured:
    """Start flows for ``length_ms`` between all hosts, and wait for the last of them."""
    workload = {
        "kind": "poisson",
        "cdf": CDFS[str(cell.x)],
        "load": 0.5 if cell.row in (OLD_HALF, NEW_HALF) else 0.8,
        "stop_us": size.length_ms * 1000,
    }
    scenario = as_asked(network(ROWS[cell.row.split(",")[0]], 10, [workload]), size)
    seen = probe(scenario, cell.seed, 20 * size.length_ms + 2000, until_done=True)
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
    return Measured(values, {"histogram": share}, seen.hops)


POINTS = dict.fromkeys((OLD, NEW, OLD_HALF, NEW_HALF), tuple(CDFS))
SAME = Between(-0.15, 0.02, (-0.3, 0.1))


def by_load(results: Results, seed: int) -> float:
    """Return how much more DCQCN+ adds to DataMining's mean at load 0.8 than at load 0.5."""
    full, old, half, old_half = (
        results.value("mean", row, "DataMining", seed) for row in (NEW, OLD, NEW_HALF, OLD_HALF)
    )
    return full / old - half / old_half


FULL = (
    "at load 0.8 with frames' headers and ACKs the links are nearly full, and DCQCN+ uses about 5 "
    "% less of them at 10 Gb/s (figure 8, also the paper's finding): flows queue for what is left, "
    "and the longer the load lasts the more. At load 0.5 "
)
CAUSES = {
    "WebSearch": Cause(
        f"{FULL}they take as long as under DCQCN (series)",
        Change("mean", NEW_HALF, OLD_HALF, "WebSearch"), Between(-0.15, 0.05),
    ),
    "DataMining": Cause(
        f"{FULL}the mean grows by clearly less (series)",
        Derived(by_load), Sign(1),
    ),
}  # fmt: skip


def _no_harm(workload: str, what: str, name: str) -> Claim:
    return Claim(
        f"{workload}: DCQCN+ has only a slightly smaller {what} (-15 to +2 % counts)",
        PLACE, Change(name, NEW, OLD, workload), SAME, 100, " %", "+.1f",
        CAUSES[workload],
    )  # fmt: skip


FIGURE = Figure(
    name="D-fig11",
    paper="dcqcn-plus",
    title="completion times of real workloads, 10 Gb/s, load 0.8",
    x="workload",
    data_acks=(OLD, NEW),
    sizes={
        "smoke": Size(POINTS, 2, length_ms=20),
        "quick": Size(POINTS, 4, length_ms=1000),
        "full": Size(POINTS, 5, length_ms=20_000),
    },
    measure=measure,
    measures=(
        Measure("flows", "flows", 1, ".0f"),
        Measure("mean", "mean completion time, ms", 1e3, ".4g"),
        Measure("typical", "geometric mean, us", 1e6, ".4g"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=(
        _no_harm("DataMining", "mean completion time", "mean"),
        _no_harm("WebSearch", "mean completion time", "mean"),
        _no_harm("DataMining", "typical (geometric mean) one", "typical"),
        _no_harm("WebSearch", "typical (geometric mean) one", "typical"),
    ),
    plots=tuple(
        Over("histogram", f"{name}: share of flows by completion time, %",
             "decimal logarithm of microseconds", ((OLD, name), (NEW, name)), 1e2)
        for name in CDFS
    ),
    ours=(
        "the tables of both workloads (docs/scenarios.md); flows start for 1 s (quick) or 20 s "
        "(full), and all are waited for",
    ),
    revision=2,
)  # fmt: skip
