"""ACC (SIGCOMM 2021), Fig. 12: completion times of WebSearch by load, beside static marking."""

from __future__ import annotations

from collections.abc import Sequence

from dcqcn_gym.benchmarks.papers.acc import (
    CONNECTX,
    DRAINED,
    OURS_DRAINED,
    SHORTEST,
    arrivals,
    drained,
    faster,
    points,
)
from dcqcn_gym.benchmarks.papers.acc_loads import LOADS
from dcqcn_gym.benchmarks.papers.claims import Between, Claim, Growth, SecondHand
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Size
from dcqcn_gym.benchmarks.papers.figure_results import Place

PLACE = "section 5.3, Fig. 12"
ROWS = ("ACC", "SECN1", "SECN2")
MORE = ("ACC, adapting", "ACC on WebSearch", SHORTEST, "40 / 160 KB", "640 / 2560 KB",
        *(row + CONNECTX for row in ROWS))  # fmt: skip
"""Further rows at the highest load: other agents, curves of ACC's list, and other NICs."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run WebSearch at a load; completion times by size."""
    return drained(cell, size, arrivals("WebSearch", float(cell.x), size))


def _faster(text: str, measure: str, against: str) -> Claim:
    said = f"{text} than {against} at 90 % load"
    return faster(said, PLACE, measure, "ACC", against, 0.9)


def _points(loads: Sequence[float]) -> dict[str, Sequence[Place]]:
    return {**points(ROWS, tuple(loads)), **points(MORE, (0.9,))}


FIGURE = Figure(
    name="A-fig12",
    paper="acc",
    title="completion times of WebSearch by load",
    x="load",
    data_acks=ROWS,
    sizes={
        "smoke": Size(_points((0.9,)), 2, 4, {"hosts": 16, "drain_ms": 2}),
        "quick": Size(_points((0.6, 0.9)), 5, 40, {"hosts": 16, "drain_ms": 200}),
        "full": Size(_points(LOADS), 3, 120, {"hosts": 288, "drain_ms": 200}),
    },
    measure=measure,
    measures=DRAINED,
    claims=(
        _faster("5.8 % lower mean of all flows", "mean", "SECN1"),
        _faster("16.6 % lower mean of all flows", "mean", "SECN2"),
        _faster("5.7 % lower mean of mice", "mice", "SECN1"),
        _faster("15.8 % lower 99th percentile of mice", "mice p99", "SECN1"),
        _faster("17.3 % lower mean of mice", "mice", "SECN2"),
        _faster("47.5 % lower 99th percentile of mice", "mice p99", "SECN2"),
        _faster("lower mean of elephants", "elephants", "SECN1"),
        _faster("4.4 % lower mean of elephants", "elephants", "SECN2"),
        Claim("SECN1 is comparable to SECN2 for elephants at 90 % load (10 % counts)", PLACE,
              Growth("elephants", "SECN1", "SECN2", 0.9), SecondHand(Between(-0.1, 0.1)), 100,
              " %", "+.1f"),
    ),
    plots=(
        Against("mean", "Mean completion time, us", "load", scale=1e6),
        Against("elephants", "Mean of flows from 10 MB, ms", "load", ROWS, 1e3),
        Against("mice p99", "p99 of flows to 100 KB, us", "load", scale=1e6),
    ),
    ours=OURS_DRAINED,
    revision=3,
)  # fmt: skip
