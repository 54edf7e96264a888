"""The network of the DCQCN+ paper, Fig. 2: eight senders, one receiver, one switch.

What it leaves open is ours: links of 1 us; a buffer of which PFC lets the one congested port fill
4.9 MB (section V-A), shared by eight equally loaded ports: with alpha = 1/8 half of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.figure import Measured
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.benchmarks.papers.results import Results
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.sums import total
from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = [
    "HELD_BYTES",
    "ROWS",
    "SINK",
    "UNLIMITED",
    "fails_from",
    "flows_at_random",
    "incast",
    "large_incast",
]

SINK = (9, 0)
"""(node, peer) of the congested port: the switch, towards the receiver."""
UNLIMITED = 2**40
"""Bytes of a flow that never ends here."""
HELD_BYTES = 4_900_000
"""The queue at which PFC holds an incast (section III-C and V-A)."""

LONG = HELD_BYTES / 10
"""A queue is very long, which means that congestion is not alleviated, from here on: ours."""

ROWS: Mapping[str, Mapping[str, Any]] = {
    "dcqcn": {"scheme": {"name": "dcqcn", "rp": "paper"}, "initial": "dcqcn-paper-scaled"},
    "cx4": {"scheme": {"name": "dcqcn", "rp": "paper"}, "initial": "cx4"},
    "dcqcn-plus": {"scheme": "dcqcn-plus", "initial": "dcqcn-plus"},
    "timely": {"scheme": "timely", "initial": "default"},
}
"""Schemes with the setting that the paper gives them."""


def incast(row: Mapping[str, Any], gbps: int, flows: list[dict[str, int]]) -> Scenario:
    """Return the network with a scheme and its setting, and these flows from hosts 1 to 8 to 0."""
    return Scenario.model_validate(
        {
            "name": "incast-of-8",
            "warmup_us": 0,
            "topology": {"kind": "single-switch", "hosts": 9, "gbps": gbps, "delay_us": 1},
            "switch": {"buffer_bytes": 2 * HELD_BYTES, "alpha": 0.125},
            "monitor": {"kind": "none"},
            "workloads": [{"kind": "flows", "flows": flows}],
            **row,
        }
    )


def flows_at_random(count: int, within_ms: float, seed: int, size: int) -> list[dict[str, int]]:
    """Return ``count`` flows of ``size`` bytes, as many from each sender, with random starts."""
    draw = random.Random(seed)
    starts = sorted(draw.randrange(round(within_ms * 1e6)) for _ in range(count))
    return [
        {"src": 1 + i % 8, "dst": 0, "bytes": size, "start_ns": start}
        for i, start in enumerate(starts)
    ]


def large_incast(
    scenario: Scenario,
    seed: int,
    length_ms: float,
    setting: DeviceSetting | None = None,
    late_s: float = 0.2,
) -> Measured:
    """Run an incast whose flows start within 100 ms; what the paper draws of it.

    From ``late_s`` on, when the paper says that all has converged (a run that is no longer: in its
    second half): ``queue``, the median of the congested queue, ``mean queue``, ``worst``,
    its 99th percentile,
    ``rate`` and ``paused``, the senders' share of the link and of the time, ``unsteady``, the
    standard deviation of that rate over 5 ms, ``latency``, the mean round trip in seconds.
    ``drained``: when the queue first holds less than 250 KB after the last start; the length of
    the run if never.
    """
    seen = probe(scenario, seed, length_ms, every_us=500, ports=[SINK], setting=setting)
    begin = late_s if length_ms > late_s * 1e3 else length_ms / 2000
    queue, late = seen.queue[:, 0], seen.after(begin)
    line = scenario.line_rate_bps
    below = np.flatnonzero((queue < 250e3) & seen.after(0.1))
    smooth = np.convolve(seen.rate[late], np.full(10, 0.1), "valid")
    trips = [r for r in seen.reports if r.start_ps >= begin * 1e12]
    values = {
        "queue": float(np.median(queue[late])),
        "mean queue": float(queue[late].mean()),
        "worst": float(np.percentile(queue[late], 99)),
        "rate": float(seen.rate[late].mean() / line),
        "paused": float(seen.paused[late, 1:].mean()),
        "unsteady": float(smooth.std() / line),
        "latency": total(r.rtt_sum_ps.sum() for r in trips)
        / max(1, total(r.rtt_count.sum() for r in trips))
        * 1e-12,
        "drained": float(seen.time[below[0]]) if below.size else length_ms * 1e-3,
    }
    series = {
        "queue": thinned(seen.time, queue),
        "rate": thinned(seen.time, seen.rate / line),
    }
    return Measured(values, series, seen.hops)


def fails_from(row: str, results: Results, seed: int) -> float:
    """Return from how many flows on a seed's median queue is very long; NaN if it never is.

    Between the largest number that drains and the next one: their geometric mean.
    """
    counts = [float(x) for found, x in results.places if found == row]
    stuck = [results.value("queue", row, x, seed) > LONG for x in counts]
    drained = [i for i, one in enumerate(stuck) if not one]
    last = drained[-1] if drained else -1
    if last == len(counts) - 1:
        return float("nan")
    return counts[0] if last < 0 else float(np.sqrt(counts[last] * counts[last + 1]))
