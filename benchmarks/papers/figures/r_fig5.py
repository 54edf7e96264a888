"""Dolce-RC, Fig. 5: latency of MPI_Alltoall by message size, Dolce-RC against DCQCN (a proxy)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Cause,
    Change,
    Claim,
    Effect,
    Level,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, Figure, Measure, Measured, Size
from dcqcn_gym.benchmarks.papers.probe import probe
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.rows import changed_scenario

PLACE = "section V-B, Fig. 5"
SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "dcqcn": {},
    "dolce-rc": {"scheme": "dolce-rc"},
}
OLD, NEW = SCHEMES
STUCK_MS = 5000


def measure(cell: Cell, size: Size) -> Measured:
    """Run some all-to-alls one after another; the mean time of one, the first left out."""
    name, _, processes = cell.row.rpartition(", PPN ")
    scenario = load_scenario(f"osu-alltoall-{processes}")
    exchange: dict[str, Any] = {
        "kind": "alltoall",
        "bytes": int(cell.x),
        "messages": int(size.more.get("messages", int(processes) ** 2)),
        "rounds": round(size.more["rounds"]),
    }
    changes = {"monitor": {"kind": "none"}, "workloads": [exchange], **SCHEMES[name]}
    scenario = changed_scenario(scenario, changes, cell.row)
    seen = probe(scenario, cell.seed, STUCK_MS, until_done=True)
    starts = np.concatenate([flows.start_ps for flows in seen.finished])
    ends = starts + np.concatenate([flows.fct_ps for flows in seen.finished])
    times = [float(ends[starts == start].max() - start) * 1e-12 for start in np.unique(starts)]
    ideal = 7 * exchange["messages"] * float(cell.x) * 8 / 100e9
    kept = times[1:] or times
    latency = float(np.mean(kept))
    packets = count(report.data_packets for report in seen.reports)
    values = {
        "latency": latency,
        "of ideal": latency / ideal,
        "marked": count(report.marks for report in seen.reports) / packets,
    }
    return Measured(values, {}, seen.hops)


def _points(small: tuple[int, ...], large: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {f"{name}, PPN {n}": places for n, places in ((16, small), (40, large))
            for name in SCHEMES}  # fmt: skip


def _change(processes: int, size: int) -> Change:
    return Change("latency", f"{NEW}, PPN {processes}", f"{OLD}, PPN {processes}", size)


CAUSE = Cause(
    "the proxy has hardly any congestion: a NIC sends to all servers in turn, so every receiver "
    "gets what its link carries, and hardly a packet is marked under DCQCN. No rate control "
    "can gain there; the gain of the testbed needs the order in which the MPI library sends",
    Level("marked", f"{OLD}, PPN 40", 65536), AtMost(0.02),
)  # fmt: skip


FIGURE = Figure(
    name="R-fig5",
    paper="dolce-rc",
    title="MPI_Alltoall latency by size, a proxy without MPI",
    x="message, B",
    sizes={
        "smoke": Size(
            _points((1024, 65536), (1024, 8192, 65536)), 1, more={"rounds": 1, "messages": 4}
        ),
        "quick": Size(
            _points((1024, 65536), (1024, 8192, 65536)), 2, more={"rounds": 2}
        ),
        "full": Size(
            _points(
                (64, 256, 1024, 8192, 65536, 262144), (64, 256, 1024, 8192, 65536, 262144)
            ),
            5,
            more={"rounds": 10},
        ),
    },
    measure=measure,
    measures=(
        Measure("latency", "mean time of an all-to-all, us", 1e6, ".4g"),
        Measure("of ideal", "of that of the link alone", 1, ".2f"),
        Measure("marked", "marked packets, %", 1e2, ".3f"),
    ),
    claims=(
        Claim("PPN 40, 64 KB: Dolce-RC's latency is 68 % lower", PLACE,
              _change(40, 65536), Effect(-0.68), 100, " %", "+.1f", CAUSE),
        Claim("PPN 40, 1 to 128 KB: much lower (at 8 KB; half of 68 % counts)", PLACE,
              _change(40, 8192), AtMost(-0.34, -0.05), 100, " %", "+.1f", CAUSE),
        Claim("PPN 16: lower, by less (at 64 KB; the sign counts)", PLACE,
              _change(16, 65536), Sign(-1), 100, " %", "+.1f", CAUSE),
    ),
    plots=(
        Against("of ideal", "Time of an all-to-all over that of the link alone", "message, B",
                log_x=True, log_y=True),
    ),
    ours=(
        "pairs of servers with all messages of their processes on one kept queue pair (scenarios "
        "osu-alltoall-16 and -40): neither the library's algorithm nor its own time is modelled",
    ),
)  # fmt: skip
