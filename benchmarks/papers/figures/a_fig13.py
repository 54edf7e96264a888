"""ACC (SIGCOMM 2021), Fig. 13: loads that differ from host to host and change with time."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.acc import (
    BY_SIZE,
    CONNECTX,
    DRAINED,
    OURS_DRAINED,
    SHORTEST,
    WEAK,
    drained,
    faster,
    points,
)
from dcqcn_gym.benchmarks.papers.acc_loads import varying
from dcqcn_gym.benchmarks.papers.claims import Claim, Direction, Growth
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Size

PLACE = "section 5.3, Fig. 13"
ROWS = ("ACC", "SECN1", "SECN2")
MORE = ("ACC, adapting", "ACC on WebSearch", SHORTEST, "40 / 160 KB",
        *(row + CONNECTX for row in ROWS))  # fmt: skip
"""Further rows with WebSearch: other agents, curves of ACC's list, and other NICs."""
CDFS = {"WebSearch": "WebSearch", "DataMining": "DataMining_a"}


def measure(cell: Cell, size: Size) -> CellResult:
    """Run a draw of loads: the seed draws loads and traffic."""
    windows = max(1, round(size.length_ms / size.more["window_ms"]))
    hosts = int(size.more["hosts"])
    loads = varying(hosts, CDFS[str(cell.x)], windows, size.more["window_ms"] * 1e3, cell.seed)
    return drained(cell, size, loads)


def _faster(text: str, measure: str, against: str) -> Claim:
    said = f"{text} than {against}, WebSearch"
    return faster(said, PLACE, measure, "ACC", against, "WebSearch")


POINTS = {**points(ROWS, tuple(CDFS)), **points(MORE, ("WebSearch",))}
FIGURE = Figure(
    name="A-fig13",
    paper="acc",
    title="completion times under load that differs by place and time",
    x="flow sizes",
    sizes={
        "smoke": Size(POINTS, 2, 4, {"hosts": 16, "window_ms": 2, "drain_ms": 2}),
        "quick": Size(POINTS, 5, 50, {"hosts": 16, "window_ms": 5, "drain_ms": 200}),
        "full": Size(POINTS, 3, 120, {"hosts": 288, "window_ms": 30, "drain_ms": 200}),
    },
    measure=measure,
    measures=DRAINED,
    claims=(
        _faster("8.7 % lower mean of mice", "mice", "SECN1"),
        _faster("24.3 % lower 99th percentile of mice", "mice p99", "SECN1"),
        _faster("8.6 % lower mean of elephants", "elephants", "SECN1"),
        _faster("28.6 % lower mean of mice", "mice", "SECN2"),
        _faster("58.3 % lower 99th percentile of mice", "mice p99", "SECN2"),
        _faster("21.1 % lower mean of all flows", "mean", "SECN2"),
        Claim("DataMining: always better than SECN1 and SECN2", PLACE,
              {f"{one.name}, {other}": Growth(one.name, "ACC", other, "DataMining")
               for one in BY_SIZE for other in ("SECN1", "SECN2")},
              Direction(-1), 100, " %", "+.1f", weak=WEAK),
    ),
    plots=(
        Against("mean", "Mean completion time, us", "flow sizes", ROWS, 1e6),
        Against("mice", "Mean of flows to 100 KB, us", "flow sizes", ROWS, 1e6),
        Against("elephants", "Mean of flows from 10 MB, ms", "flow sizes", ROWS, 1e3),
        Against("mice p99", "p99 of flows to 100 KB, us", "flow sizes", ROWS, 1e6),
    ),
    ours=(
        *OURS_DRAINED,
        "a load is drawn for every host and window; the paper gives neither the length of a window "
        "nor how the load is spread",
    ),
    revision=3,
)  # fmt: skip
