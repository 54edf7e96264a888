"""The simulations of the Dolce-RC paper: a fat tree at 200 Gb/s, flow sizes of a workload.

1024 hosts, 128 edge and 128 aggregation switches, 64 cores are a fat tree of k = 16 (section V-A).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.figure import Cell, Measured, Size
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = ["ROWS", "completion"]

ROWS: Mapping[str, Mapping[str, Any]] = {
    "dcqcn": {"scheme": {"name": "dcqcn", "rp": "paper"}},
    "dolce-rc": {"scheme": "dolce-rc"},
    "dolce-rc, CNP gap 50 us": {"scheme": {"name": "dolce-rc", "ratio": "count"}},
}
"""Schemes. The gap of 1 us is what section IV-B sets in NICs, so that CNPs count marked slots; with
DCQCN's 50 us they carry the number of marked packets, its ideal case."""

HEADROOM = 330_000
"""Bytes (section V-A: 330 packets of 1000 B)."""


def completion(cell: Cell, size: Size, cdf: str) -> Measured:
    """Start flows for ``length_ms`` at load ``cell.x`` (in percent), and wait for all of them."""
    scenario = Scenario.model_validate(
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
                {
                    "kind": "poisson",
                    "cdf": cdf,
                    "load": float(cell.x) / 100,
                    "stop_us": size.length_ms * 1000,
                }
            ],
            **ROWS[cell.row],
        }
    )
    setting = scenario.initial_setting()
    if cell.row.endswith("50 us"):
        setting = setting.replace_nvidia({"dolce_cnp_gap": 50})
    seen = probe(
        scenario, cell.seed, size.more["wait_ms"], every_us=20, setting=setting, until_done=True
    )
    fct = np.sort(seen.fct_s())
    values = {
        "flows": float(fct.size),
        "mean": float(fct.mean()),
        "p99": float(np.percentile(fct, 99)),
        "median": float(np.median(fct)),
        "unfinished": float(seen.unfinished),
        "paused": float(seen.paused.mean()),
    }
    step = max(1, fct.size // 200)
    share = np.arange(1, fct.size + 1) / fct.size
    return Measured(
        values,
        {
            "cdf": (fct[::step].tolist(), share[::step].tolist()),
            "rate": thinned(seen.time, seen.rate),
        },
        seen.hops,
    )
