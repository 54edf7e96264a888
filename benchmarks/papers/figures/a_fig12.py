"""ACC (SIGCOMM 2021), Fig. 12: completion times of WebSearch by load, beside static marking."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.acc import (
    BY_SIZE,
    CONNECTX,
    LEARNING,
    SHORTEST,
    SMALL,
    UNFINISHED,
    arrivals,
    drained,
    faster,
    points,
)
from dcqcn_gym.benchmarks.papers.claims import Claim
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, Figure, Measured, Size
from dcqcn_gym.envs.scenario.acc_loads import LOADS

PLACE = "section 5.3, Fig. 12"
ROWS = ("ACC", "SECN1", "SECN2")
OTHERS = tuple(f"{row}{CONNECTX}" for row in ROWS)
MORE = (LEARNING, SHORTEST, *OTHERS)
"""Further rows at the highest load."""


def measure(cell: Cell, size: Size) -> Measured:
    """Run WebSearch at a load until all flows are done; figures by size."""
    return drained(cell, size, arrivals("WebSearch", float(cell.x), size))


def _faster(text: str, measure: str, against: str) -> Claim:
    return faster(f"{text} than {against} at 90 % load", PLACE, measure, "ACC", against, 0.9)


POINTS = {**points(ROWS, (0.6, 0.9)), **points(MORE, (0.9,))}
FIGURE = Figure(
    name="A-fig12",
    paper="acc",
    title="completion times of WebSearch by load",
    x="load",
    data_acks=ROWS,
    sizes={
        "smoke": Size(POINTS, 2, 2, {"hosts": 16, "drain_ms": 4}),
        "quick": Size(POINTS, 5, 60, {"hosts": 16, "drain_ms": 200}),
        "full": Size({**POINTS, **points(ROWS, LOADS)}, 5, 300, {"hosts": 288, "drain_ms": 200}),
    },
    measure=measure,
    measures=(*BY_SIZE, UNFINISHED),
    claims=(
        _faster("5.8 % lower mean of all flows", "mean", "SECN1"),
        _faster("16.6 % lower mean of all flows", "mean", "SECN2"),
        _faster("5.7 % lower mean of mice", "mice", "SECN1"),
        _faster("15.8 % lower 99th percentile of mice", "mice p99", "SECN1"),
        _faster("17.3 % lower mean of mice", "mice", "SECN2"),
        _faster("47.5 % lower 99th percentile of mice", "mice p99", "SECN2"),
        _faster("lower mean of elephants", "elephants", "SECN1"),
        _faster("4.4 % lower mean of elephants", "elephants", "SECN2"),
    ),
    plots=(
        Against("mean", "Mean completion time, us", "load", ROWS, 1e6),
        Against("mice p99", "p99 of flows to 100 KB, us", "load", ROWS, 1e6),
    ),
    ours=SMALL,
    revision=3,
)  # fmt: skip
