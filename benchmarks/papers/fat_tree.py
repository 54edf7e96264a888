"""The simulations of the Dolce-RC paper: a fat tree at 200 Gb/s, flow sizes of a workload.

1024 hosts, 128 edge and 128 aggregation switches, 64 cores are a fat tree of k = 16 (section V-A).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.acks import as_asked
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Size
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import Scenario


@dataclass(frozen=True)
class Row:
    """A scheme and the knobs that differ from the paper's preset."""

    scheme: Mapping[str, Any]
    knobs: Mapping[str, float] = field(default_factory=dict)


OLD, NEW, FAST = "dcqcn", "dolce-rc", "dolce-rc, CNP gap 1 us"
COUNTED, LATER = "dolce-rc, CNP gap 1 us, marks counted", "dolce-rc, CNP gap 10 us"
_COUNT = {"name": "dolce-rc", "ratio": "count"}
ROWS: Mapping[str, Row] = {
    OLD: Row({"name": "dcqcn", "rp": "paper"}),
    NEW: Row(_COUNT, {"dolce_cnp_gap": 50}),
    FAST: Row({"name": "dolce-rc", "ratio": "slots"}, {"dolce_cnp_gap": 1}),
    COUNTED: Row(_COUNT, {"dolce_cnp_gap": 1}),
    LATER: Row(_COUNT, {"dolce_cnp_gap": 10}),
}
"""Schemes. A CNP gap of 50 us is DCQCN's, of which five are "about one fast recovery phase", as the
paper says of its own (definition 2); a CNP reports the packets marked, its ideal case. 1 us
is what section IV-B sets in NICs so that CNPs count marked slots."""

HEADROOM = 330_000
"""Bytes (section V-A: 330 packets of 1000 B)."""


def completion(cell: Cell, size: Size, cdf: str, rows: Mapping[str, Row] = ROWS) -> CellResult:
    """Start flows for ``length_ms`` at load ``cell.x`` (in percent), and wait for all of them."""
    row = rows[cell.row]
    scenario = as_asked(fat_tree(row, size, cdf, float(cell.x) / 100), size)
    setting = scenario.initial_setting().replace(row.knobs)
    seen = probe(
        scenario, cell.seed, size.more["wait_ms"], every_us=20, setting=setting, until_done=True
    )
    fct = np.sort(seen.fct_s())
    values = {
        "flows": float(fct.size),
        "mean": statistic(fct),
        "p99": statistic(fct, 99),
        "median": float(np.median(fct)),
        "unfinished": float(seen.unfinished),
        "paused": float(seen.paused.mean()),
        "cuts": count(report.rate_cuts for report in seen.reports) / fct.size,
    }
    step = max(1, fct.size // 200)
    share = np.arange(1, fct.size + 1) / fct.size
    return CellResult(
        values,
        {
            "cdf": (fct[::step].tolist(), share[::step].tolist()),
            "rate": thinned(seen.time, seen.rate),
        },
        seen.hops,
    )


def fat_tree(row: Row, size: Size, cdf: str, load: float) -> Scenario:
    """Return a fat tree of ``k`` with a scheme, and the traffic."""
    return Scenario.model_validate(
        {
            "name": "dolce-fat-tree",
            "initial": "dolce-rc",
            "warmup_us": 0,
            "topology": {
                "kind": "fat-tree",
                "k": round(size.more["k"]),
                "host_gbps": 200,
                "edge_gbps": 200,
                "core_gbps": 200,
                "delay_us": 1,
            },
            "switch": {"headroom_factor": HEADROOM / (200e9 / 8 * 1e-6)},
            "monitor": {"kind": "none"},
            "workloads": [
                {"kind": "poisson", "cdf": cdf, "load": load, "stop_us": size.length_ms * 1000}
            ],
            "scheme": row.scheme,
        }
    )
