"""The fabrics and loads of ACC (SIGCOMM 2021, section 5), as tables of a scenario.

``changed_scenario(load_scenario("acc-96-websearch"), {"workloads": steady("DataMining_a", 0.9)},
"mine")`` is one cell of its figures. The paper gives the numbers of ``FABRICS["acc-288"]``; that of
96 hosts has 4 leaves and 2 spines, and its rates are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def _leaf_spine(tors: int, spines: int, links: int, hosts: int = 24) -> dict[str, Any]:
    return {
        "kind": "leaf-spine",
        "tors": tors,
        "hosts_per_tor": hosts,
        "spines": spines,
        "links_per_spine": links,
        "host_gbps": 25,
        "uplink_gbps": 100,
    }


FABRICS: Mapping[str, Mapping[str, Any]] = {
    "acc-288": _leaf_spine(12, 6, 1),
    "acc-96": _leaf_spine(4, 2, 3),  # 1:1 by parallel links
    "acc-96-3to1": _leaf_spine(4, 2, 1),
}
"""Leaf-spine fabrics of 24 hosts of 25 Gb/s per leaf and uplinks of 100 Gb/s."""

LOADS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Shares of the host links in the figures of steady load."""

VARYING = (0.6, 0.7, 0.8, 0.9)
"""What the load of a pair of hosts is drawn from in the heterogeneous runs."""

SWAPS_US = (4_500_000.0, 8_500_000.0, 9_500_000.0)
"""When the traffic changes to the other distribution."""


def steady(cdf: str, load: float, start_us: float = 0.0, stop_us: float | None = None) -> list[Any]:
    """Return the workloads of all hosts sending flows of ``cdf`` at a share of their links."""
    one = {"kind": "poisson", "cdf": cdf, "load": load, "start_us": start_us, "stop_us": stop_us}
    return [one]


def swapped(
    load: float, scale: float = 1.0, first: str = "WebSearch", second: str = "DataMining_a"
) -> list[Any]:
    """Return the workloads that change from ``first`` to ``second`` and back, at :data:`SWAPS_US`.

    ``scale`` shortens the times: 0.01 swaps after 45, 85 and 95 ms.
    """
    times = (0.0, *(at * scale for at in SWAPS_US), None)
    cdfs = (first, second, first, second)
    return [
        workload
        for cdf, start, stop in zip(cdfs, times, times[1:], strict=False)
        for workload in steady(cdf, load, float(start or 0.0), stop)
    ]


def varying(
    hosts: int,
    cdf: str,
    windows: int,
    window_us: float,
    draw: int,
    loads: Sequence[float] = VARYING,
) -> list[Any]:
    """Return workloads whose load varies in time and space: :data:`VARYING`, drawn for each host.

    In each of ``windows`` windows every host has a load of its own; each flow goes to a host drawn
    from all. ``draw`` is the number of the run: the same number gives the same loads. The paper
    says where loads and pairs are drawn from, and neither how often nor how far apart.
    """
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([draw, 0xACC13])))
    return [
        {
            "kind": "poisson",
            "cdf": cdf,
            "load": loads[int(random.integers(len(loads)))],
            "hosts": [host],
            "dsts": "all",
            "start_us": window * window_us,
            "stop_us": (window + 1) * window_us,
        }
        for window in range(windows)
        for host in range(hosts)
    ]
