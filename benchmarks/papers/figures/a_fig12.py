"""ACC (SIGCOMM 2021), Fig. 12: completion times of WebSearch by load, beside static marking."""

from __future__ import annotations

from collections.abc import Sequence

from dcqcn_gym.benchmarks.papers.acc import (
    BY_SIZE,
    OTHER_NICS,
    OURS,
    REWARD,
    SHORTEST,
    faster,
    points,
    websearch,
)
from dcqcn_gym.benchmarks.papers.claims import Claim
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, Figure, Measured, Place, Size
from dcqcn_gym.envs.scenario.acc_loads import LOADS

PLACE = "section 5.3, Fig. 12"
ROWS = ("ACC", "SECN1", "SECN2")
MORE = ("ACC on WebSearch", SHORTEST)
"""Further rows at the highest load: another agent, and the curve with the shortest queues."""


def measure(cell: Cell, size: Size) -> Measured:
    """Run WebSearch at a load; figures by size and the reward."""
    return websearch(cell, size, rewarded=True)


def _faster(text: str, measure: str, against: str) -> Claim:
    said = f"{text} than {against} at 90 % load"
    return faster(said, PLACE, measure, "ACC", against, 0.9, OTHER_NICS)


def _points(loads: Sequence[float]) -> dict[str, Sequence[Place]]:
    return {**points(ROWS, tuple(loads)), **points(MORE, (0.9,))}


FIGURE = Figure(
    name="A-fig12",
    paper="acc",
    title="completion times of WebSearch by load",
    x="load",
    data_acks=ROWS,
    sizes={
        "smoke": Size(_points((0.9,)), 2, length_ms=2, more={"hosts": 16}),
        "quick": Size(_points((0.6, 0.9)), 5, length_ms=25, more={"hosts": 16}),
        "full": Size(_points(LOADS), 5, length_ms=300, more={"hosts": 288}),
    },
    measure=measure,
    measures=(*BY_SIZE, REWARD),
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
        Against("mean", "Mean completion time, us", "load", scale=1e6),
        Against("mice p99", "p99 of flows to 100 KB, us", "load", scale=1e6),
    ),
    ours=OURS,
    revision=2,
)  # fmt: skip
