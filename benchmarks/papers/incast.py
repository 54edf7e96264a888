"""The network of the DCQCN+ paper, Fig. 2: eight senders, one receiver, one switch.

Scenario ``plus-incast``. What the paper leaves open is ours: links of 1 us; a buffer of which PFC
lets the one congested port fill 4.9 MB (section V-A): shared by eight equally loaded ports, with
alpha = 1/8, half of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.core.sums import total
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.entries import changed_scenario

SINK = (9, 0)
"""(node, peer) of the congested port: the switch, towards the receiver."""
HELD_BYTES = 4_900_000
"""The queue at which PFC holds an incast (section III-C and V-A)."""
BUFFER = 2 * HELD_BYTES
BUFFERS = {"half the buffer": BUFFER // 2, "twice the buffer": 2 * BUFFER}

STUCK_MS = 60_000
"""Flows that are to finish are waited for so long."""
HEADROOM = 15_000
"""Bytes of each port for what is under way when PFC pauses it: with three times the bytes of a link
of 1 us, 3750 at 10 Gb/s, an incast loses one or two packets of a hundred there."""
LONG = HELD_BYTES / 10
"""A queue is very long, which means that congestion is not alleviated, from here on: ours."""

QUEUE = Measure("queue", "median queue from 200 ms on, KB", 1e-3, ".0f")
WORST = Measure("worst", "99th percentile, KB", 1e-3, ".0f")
RATE = Measure("rate", "rate, % of the link", 1e2, ".1f")
PAUSED = Measure("paused", "senders paused, % of the time", 1e2, ".1f")
"""Columns that figures of incasts share."""

ROWS: Mapping[str, Mapping[str, Any]] = {
    "dcqcn": {"scheme": {"name": "dcqcn", "rp": "paper"}, "initial": "dcqcn-paper-scaled"},
    "cx4": {"scheme": {"name": "dcqcn", "rp": "paper"}, "initial": "cx4"},
    "dcqcn-plus": {"scheme": "dcqcn-plus", "initial": "dcqcn-plus"},
    "timely": {"scheme": "timely", "initial": "default"},
}
"""Schemes with the setting that the paper gives them."""


def incast(
    row: Mapping[str, Any],
    gbps: int,
    flows: int,
    size: int | None = None,
    within_us: float = 1e5,
    buffer: int = BUFFER,
) -> Scenario:
    """Return the network with a scheme and its setting, and flows from hosts 1 to 8 to host 0.

    ``size``: their bytes; None: they never end. They start at random within ``within_us``.
    """
    streams = {
        "kind": "streams",
        "flows": flows,
        "bytes": "unlimited" if size is None else size,
        "hosts": list(range(1, 9)),
        "dsts": [0],
        "within_us": within_us,
    }
    return network(row, gbps, [streams], buffer)


def network(
    row: Mapping[str, Any], gbps: int, workloads: Sequence[Mapping[str, Any]], buffer: int = BUFFER
) -> Scenario:
    """Return the scenario ``plus-incast`` with another scheme and setting, rate and traffic.

    Ports have the headroom that PFC needs at 10 Gb/s too (:data:`HEADROOM`).
    """
    headroom_factor = HEADROOM / (gbps * 1e9 / 8 * 1e-6)
    changes = {
        "topology": {"gbps": gbps},
        "switch": {"buffer_bytes": buffer, "headroom_factor": headroom_factor},
        "warmup_us": 0,
        "monitor": {"kind": "none"},
        "workloads": workloads,
    }
    return changed_scenario(load_scenario("plus-incast"), {**changes, **row}, "incast of 8")


def large_incast(
    scenario: Scenario,
    seed: int,
    length_ms: float,
    setting: DeviceSetting | None = None,
    late_s: float = 0.2,
) -> CellResult:
    """Run an incast whose flows start within 100 ms; what the paper draws of it.

    From ``late_s`` on, when the paper says that all has converged (a run that is no longer: in its
    second half): ``queue``, the median of the congested queue, ``mean queue``, ``worst``, its 99th
    percentile, ``rate`` and ``paused``, the senders' share of the link and of the time,
    ``unsteady``, the standard deviation of that rate over 5 ms, ``latency``, the mean round trip
    in seconds. ``drained``: when the queue first holds less than 250 KB after the last start; the
    length of the run if never.
    """
    seen = probe(scenario, seed, length_ms, every_us=500, ports=[SINK], setting=setting)
    begin = late_s if length_ms > late_s * 1e3 else length_ms / 2000
    queue, late = seen.queue[:, 0], seen.after(begin)
    line = scenario.line_rate_bps
    below = np.flatnonzero((queue < 250e3) & seen.after(0.1))
    smooth = np.convolve(seen.rate[late], np.full(10, 0.1), "valid")
    values = {
        "queue": float(np.median(queue[late])),
        "mean queue": float(queue[late].mean()),
        "worst": statistic(queue[late], 99),
        "rate": float(seen.rate[late].mean() / line),
        "paused": float(seen.paused[late, 1:].mean()),
        "unsteady": float(smooth.std() / line),
        "latency": _round_trip([r for r in seen.reports if r.start_ps >= begin * 1e12]),
        "drained": float(seen.time[below[0]]) if below.size else length_ms * 1e-3,
    }
    series = {
        "queue": thinned(seen.time, queue),
        "rate": thinned(seen.time, seen.rate / line),
    }
    return CellResult(values, series, seen.hops)


def _round_trip(reports: Sequence[IntervalReport]) -> float:
    """Return the mean over all acknowledged packets in seconds; 0 without one."""
    packets = max(1, total(r.rtt_count.sum() for r in reports))
    return total(r.rtt_sum_ps.sum() for r in reports) / packets * 1e-12


def like_flows(cell: Cell, size: Size, within_us: float) -> CellResult:
    """Run ``cell.x`` flows of ``packets`` packets at 40 Gb/s to their end: completion times."""
    count, packets = int(cell.x), round(size.more["packets"])
    scenario = incast(ROWS[cell.row], 40, count, packets * 1000, within_us)
    seen = probe(scenario, cell.seed, STUCK_MS, until_done=True)
    fct = np.sort(seen.fct_s())
    values = {
        "mean": float(fct.mean()),
        "max": float(fct.max()),
        "spread": float(fct.std() / fct.mean()),
    }
    step = max(1, fct.size // 200)
    share = np.arange(1, fct.size + 1) / count
    return CellResult(values, {"cdf": (fct[::step].tolist(), share[::step].tolist())}, seen.hops)


def fails_from(row: str, results: FigureResults, seed: int) -> float:
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
