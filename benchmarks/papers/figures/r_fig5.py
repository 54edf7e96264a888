"""Dolce-RC, Fig. 5: latency of MPI_Alltoall by message size, Dolce-RC against DCQCN (a proxy)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import AtMost, Claim, Derived, Effect, Growth, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.probe import probe
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario

PLACE = "section V-B, Fig. 5"
SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "dcqcn": {},
    "dolce-rc": {"scheme": "dolce-rc"},
}
OLD, NEW = SCHEMES
STUCK_MS = 5000
BURSTS = (40, 160)
"""Messages that each of seven servers sends to the eighth: one, and four, of each process."""


def _burst(scheme: str, messages: int) -> str:
    return f"{scheme}, 7 to 1, {messages} each"


def measure(cell: Cell, size: Size) -> CellResult:
    """Run all-to-alls one after another (mean time of one, the first left out), or one burst."""
    name = cell.row.partition(",")[0]
    burst = ", 7 to 1, " in cell.row
    traffic = _one_receiver(cell) if burst else _exchange(cell, size)
    scenario = load_scenario(f"osu-alltoall-{16 if 'PPN 16' in cell.row else 40}")
    changes = {"monitor": {"kind": "none"}, **traffic, **SCHEMES[name]}
    scenario = changed_scenario(scenario, changes, cell.row)
    setting = scenario.initial_setting()
    if name == NEW:  # what section IV-B sets in NICs
        setting = setting.replace({"dolce_cnp_gap": 1})
    seen = probe(scenario, cell.seed, STUCK_MS, setting=setting, until_done=True)
    starts = np.concatenate([flows.start_ps for flows in seen.finished])
    ends = starts + np.concatenate([flows.fct_ps for flows in seen.finished])
    rounds = [starts] if burst else [starts[starts == start] for start in np.unique(starts)]
    times = [float(ends[np.isin(starts, one)].max() - one.min()) * 1e-12 for one in rounds]
    work = traffic["workloads"][0]
    messages = work["flows"] if burst else 7 * work["messages"]
    latency = float(np.mean(times[1:] or times))
    packets = count(report.data_packets for report in seen.reports)
    values = {
        "latency": latency,
        "of ideal": latency / (messages * float(cell.x) * 8 / 100e9),
        "marked": count(report.marks for report in seen.reports) / packets,
    }
    return CellResult(values, {}, seen.hops)


def _exchange(cell: Cell, size: Size) -> dict[str, Any]:
    """Return all-to-alls: as many messages for a pair of servers as it has pairs of processes."""
    processes = int(cell.row.rpartition(" ")[2])
    work = {
        "kind": "alltoall",
        "bytes": int(cell.x),
        "messages": int(size.more.get("messages", processes**2)),
        "rounds": round(size.more["rounds"]),
    }
    return {"workloads": [work]}


def _one_receiver(cell: Cell) -> dict[str, Any]:
    """Return messages of seven servers to one, within a microsecond, a queue pair each."""
    work = {
        "kind": "streams",
        "flows": 7 * int(cell.row.split()[-2]),
        "bytes": int(cell.x),
        "hosts": list(range(1, 8)),
        "dsts": [0],
        "within_us": 1,
    }
    return {"workloads": [work], "qp": "flow"}


def _points(small: tuple[int, ...], large: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    exchanges = {f"{name}, PPN {n}": places for n, places in ((16, small), (40, large))
                 for name in SCHEMES}  # fmt: skip
    return exchanges | {_burst(name, n): (65536,) for n in BURSTS for name in SCHEMES}


def _change(processes: int, size: int) -> Growth:
    return Growth("latency", f"{NEW}, PPN {processes}", f"{OLD}, PPN {processes}", size)


def growth(results: FigureResults, seed: int) -> float:
    """Return by how much more of the latency Dolce-RC takes off with 40 processes than with 16."""
    of = {
        (name, n): results.value("latency", f"{name}, PPN {n}", 65536, seed)
        for name in SCHEMES for n in (16, 40)
    }  # fmt: skip
    return of[NEW, 40] / of[OLD, 40] - of[NEW, 16] / of[OLD, 16]


NOTHING_MEETS = (
    "the proxy has no congestion: a NIC sends to all servers in turn, and hardly a packet is "
    "marked. The MPI library's order is not known. Where messages meet the gain is there: 160 "
    "messages of seven servers each to the eighth take twice the time of the link under DCQCN and "
    "half of that under Dolce-RC (series)"
)


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
            _points((1024, 65536), (1024, 8192, 65536)), 3, more={"rounds": 2}
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
        Measure("latency", "mean time of an all-to-all, or a burst, us", 1e6, ".4g"),
        Measure("of ideal", "of that of the link alone", 1, ".2f"),
        Measure("marked", "marks at all switches, % of the packets", 1e2, ".3f"),
    ),
    claims=(
        Claim("PPN 40, 64 KB: Dolce-RC's latency is 68 % lower", PLACE,
              _change(40, 65536), Effect(-0.68), 100, " %", "+.1f", no_test=NOTHING_MEETS),
        Claim("PPN 40, 1 to 128 KB: much lower (at 8 KB; half of 68 % counts)", PLACE,
              _change(40, 8192), AtMost(-0.34, -0.05), 100, " %", "+.1f", no_test=NOTHING_MEETS),
        Claim("the gain grows from PPN 16 to PPN 40 (at 64 KB)", PLACE,
              Derived(growth), Sign(-1), 100, " points", "+.1f", no_test=NOTHING_MEETS),
    ),
    plots=(
        Against("of ideal", "Time of an all-to-all, or a burst, over the link's", "message, B",
                log_x=True, log_y=True),
    ),
    ours=(
        "pairs of servers with all messages of their processes on one kept queue pair (scenarios "
        "osu-alltoall-16 and -40): neither the library's algorithm nor its own time is modelled",
        "Dolce-RC as in its NICs, with a CNP gap of 1 us: with fewer messages at once, 40 each, it "
        "is far slower than DCQCN (series), as in R-fig6",
    ),
)  # fmt: skip
