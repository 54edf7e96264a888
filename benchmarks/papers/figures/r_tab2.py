"""Dolce-RC, Table II: DataMining on 1024 hosts, Dolce-RC against DCQCN."""

from __future__ import annotations

from dataclasses import replace

from dcqcn_gym.benchmarks.papers.claims import AtMost, Cause, Claim, Effect, Growth, Reading
from dcqcn_gym.benchmarks.papers.fat_tree import FAST, LATER, NEW, OLD, ROWS, Row, completion
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size

LOADS = (30, 50)
MAIN = (OLD, NEW, FAST)
GENTLE, HARD = "dolce-rc, first arm alone", "dolce-rc, last arm alone"


def _one_arm(alpha: float, beta: float) -> Row:
    """Return Dolce-RC whose four arms are the same: whatever it learns, nothing differs."""
    arms = {f"dolce_alpha_{i}": alpha for i in range(4)} | {
        f"dolce_beta_{i}": beta for i in range(4)
    }
    return Row(ROWS[NEW].scheme, {**ROWS[NEW].knobs, **arms})


ALL = {**ROWS, GENTLE: _one_arm(0.044, 0.99), HARD: _one_arm(0.864, 1.1)}
FINER, LONGER = ", finer table", ", eight times as many flows"
"""Ends of the names of rows: the other published table of DataMining, and arrivals for longer."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run DataMining."""
    name = cell.row.removesuffix(FINER).removesuffix(LONGER)
    if cell.row.endswith(LONGER):
        size = replace(size, length_ms=8 * size.length_ms)
    table = "DataMining_b" if cell.row.endswith(FINER) else "DataMining_a"
    return completion(replace(cell, row=name), size, table, ALL)


UNEQUAL = Cause(
    "learning itself costs it: with one arm for all, the gentlest or the hardest, the mean is"
    " that of DCQCN (series). Most likely long flows on different arms are unfair to each "
    "other. The arms are ours",
    Growth("mean", HARD, NEW, 30), AtMost(-0.15),
)  # fmt: skip


def _falls(load: int, before: float, after: float) -> Claim:
    said = f"{load} % load: the mean completion time falls from {before} to {after} us"
    change = Growth("mean", NEW, OLD, load)
    others = (
        Reading("with the finer table", Growth("mean", NEW + FINER, OLD + FINER, load)),
        Reading("with eight times as many flows", Growth("mean", NEW + LONGER, OLD + LONGER, load)),
        Reading("with a CNP gap of 10 us", Growth("mean", LATER, OLD, load)),
    )
    rule = Effect(after / before - 1)
    return Claim(said, "Table II", change, rule, 100, " %", "+.1f", UNEQUAL, others)


POINTS = dict.fromkeys(
    (*MAIN, GENTLE, HARD, LATER, *(row + end for end in (FINER, LONGER) for row in (OLD, NEW))),
    LOADS,
)
FIGURE = Figure(
    name="R-tab2",
    paper="dolce-rc",
    title="DataMining on a fat tree at 200 Gb/s",
    x="load, %",
    sizes={
        "smoke": Size(POINTS, 1, 0.3, {"k": 4, "wait_ms": 5}),
        "quick": Size(POINTS, 3, 5, {"k": 8, "wait_ms": 400}),
        "full": Size(POINTS, 3, 40, {"k": 16, "wait_ms": 400}),
    },
    measure=measure,
    measures=(
        Measure("flows", "flows", 1, ".0f"),
        Measure("mean", "mean completion time, us", 1e6, ".0f"),
        Measure("median", "median, us", 1e6, ".1f"),
        Measure("p99", "99th percentile, us", 1e6, ".0f"),
        Measure("cuts", "cuts of a rate per flow", 1, ".1f"),
        Measure("paused", "hosts paused, % of the time", 1e2, ".2f"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=(_falls(30, 1509.33, 1288.00), _falls(50, 1465.95, 1250.19)),
    plots=tuple(
        Over("cdf", f"Share of flows that are done, load {load} %", "us",
             tuple((row, load) for row in (*MAIN, HARD)), 1, 1e6, log_x=True)
        for load in LOADS
    ),
    ours=(
        "the CNP gap of the simulations, 50 us, as in R-fig6",
        "the number of flows, which the paper does not give: they start for 5 ms (quick) or 40 ms"
        " (full), and all are waited for",
        "size quick has a fat tree of k = 8, 128 hosts, and an eighth of the length; size full, "
        "with 1024 hosts, was not run (about three CPU hours)",
    ),
    revision=2,
)  # fmt: skip
