"""Dolce-RC, Fig. 6 and Table I: CacheFollower on 1024 hosts, Dolce-RC against DCQCN."""

from __future__ import annotations

from dataclasses import replace

from dcqcn_gym.benchmarks.papers.claims import Claim, Effect, Growth
from dcqcn_gym.benchmarks.papers.fat_tree import COUNTED, FAST, LATER, NEW, OLD, ROWS, completion
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size

LOADS = (30, 50)
MAIN = (OLD, NEW, FAST)
BIG = {f"{row}, 1024 hosts": ROWS[row] for row in (OLD, NEW)}
BIG_OLD, BIG_NEW = BIG
"""In size quick the other rows have fewer hosts."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run CacheFollower."""
    if cell.row in BIG:
        size = replace(size, more={**size.more, "k": min(16, 2 * size.more["k"])})
    return completion(cell, size, "CacheFollower", {**ROWS, **BIG})


def _falls(load: int, name: str, what: str, before: float, after: float, place: str) -> Claim:
    cells = {"128 hosts": Growth(name, NEW, OLD, load)}
    if load in POINTS[BIG_NEW]:
        cells["1024 hosts"] = Growth(name, BIG_NEW, BIG_OLD, load)
    said = f"{load} % load: {what} falls from {before} to {after} us"
    return Claim(said, place, cells, Effect(after / before - 1), 100, " %", "+.1f")


TABLE, TEXT = "Table I", "section V-C"
POINTS = {**dict.fromkeys(MAIN, LOADS), **dict.fromkeys((COUNTED, LATER, *BIG), (30,))}
FIGURE = Figure(
    name="R-fig6",
    paper="dolce-rc",
    title="CacheFollower on a fat tree at 200 Gb/s, with Table I",
    x="load, %",
    data_acks=MAIN,
    sizes={
        "smoke": Size(POINTS, 1, 0.3, {"k": 4, "wait_ms": 30}),
        "quick": Size(POINTS, 3, 1, {"k": 8, "wait_ms": 100}),
        "full": Size(POINTS, 3, 1, {"k": 16, "wait_ms": 100}),
    },
    measure=measure,
    measures=(
        Measure("flows", "flows", 1, ".0f"),
        Measure("mean", "mean completion time, us", 1e6, ".1f"),
        Measure("median", "median, us", 1e6, ".1f"),
        Measure("p99", "99th percentile, us", 1e6, ".0f"),
        Measure("cuts", "cuts of a rate per flow", 1, ".1f"),
        Measure("paused", "hosts paused, % of the time", 1e2, ".2f"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=(
        _falls(30, "mean", "the mean completion time", 481.43, 168.01, TABLE),
        _falls(50, "mean", "the mean completion time", 546.48, 234.97, TABLE),
        _falls(30, "p99", "the 99th percentile", 3088.51, 1829.14, TEXT),
        _falls(50, "p99", "the 99th percentile", 3074.44, 2024.28, TEXT),
    ),
    plots=tuple(
        Over("cdf", f"Share of flows that are done, load {load} %", "us",
             tuple((row, load) for row in MAIN), 1, 1e6, log_x=True)
        for load in LOADS
    ) + tuple(
        Over("rate", f"Total sending rate, Tb/s, load {load} %", "ms",
             tuple((row, load) for row in MAIN), 1e-12, 1e3)
        for load in LOADS
    ),
    ours=(
        "the CNP gap of the simulations: 50 us, since the paper calls five gaps about one fast "
        "recovery phase (definition 2), which is 5 x 55 us. The NICs of its testbed have 1 us "
        "(section IV-B), of which it claims nothing here: with so short a gap flows fall to the "
        "lowest rate (series)",
        "the number of flows, which the paper does not give: they start for 1 ms, and all are "
        "waited for",
        "size quick has a fat tree of k = 8, 128 hosts, but for two series with the paper's 1024 "
        "at one load; size full, with 1024 for all, was not run",
        "DCQCN as published with the paper's marking; a connection of Dolce-RC is a pair of hosts",
    ),
    revision=2,
)  # fmt: skip
