"""PARALEON (ICNP 2024), Fig. 12: utility against iterations, with and without its optimisations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import Cause, Claim, Growth, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.paraleon import (
    EARLIER,
    PARALEON,
    PROTOTYPE,
    WITHIN,
    by_name,
    hops,
    ran,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import Entry

PLACE = "section IV-B, Fig. 12"
NAIVE, UNGUIDED, UNRELAXED = "naive_SA", "without guidance", "without relaxed temperature"
RESCALED = "temperatures of 0.1 to 0.011"
NAIVE_THERE = f"{NAIVE}, prototype's ranges"


def within(ranges: str) -> dict[str, Entry]:
    """Return PARALEON and its ablations within the ranges of the authors' later or first code."""
    args = {"ranges": ranges}
    return dict(by_name((
        Entry("paraleon", args, given_name=PARALEON),
        Entry("naive-sa", args, given_name=NAIVE),
        Entry("paraleon-unguided", args, given_name=UNGUIDED),
        Entry("paraleon-unrelaxed", args, given_name=UNRELAXED),
        Entry("paraleon-rescaled", args, given_name=RESCALED),
        Entry("default"),
    )))  # fmt: skip


ROWS = {
    **within("later"),
    PROTOTYPE: EARLIER,
    NAIVE_THERE: Entry("naive-sa", {"ranges": "prototype"}, given_name=NAIVE_THERE),
}
HADOOP, TRAINING = "FB_Hadoop", "training"
SCENARIOS = {
    HADOOP: ("mini-fb-hadoop", "fb-hadoop"),
    TRAINING: ("mini-llm-alltoall", "llm-alltoall"),
}
SMOOTH = 10
"""Intervals of the moving mean that is drawn."""


def measure(rows: Mapping[str, Entry], cell: Cell, size: Size) -> CellResult:
    """Run a variant; the mean utility over what it tried, and over the last half of it."""
    scenario = load_scenario(SCENARIOS[str(cell.x)][size.more["hosts"] == 128])
    run = ran(scenario, rows[cell.row], cell.seed, size.length_ms)
    seen = run.utility[run.busy]
    smooth = np.convolve(seen, np.ones(SMOOTH) / SMOOTH, "valid") if seen.size >= SMOOTH else seen
    number = np.flatnonzero(run.busy)[-smooth.size :] + 1.0
    return CellResult(
        {"mean": float(seen.mean()), "late": float(seen[seen.size // 2 :].mean()),
         "best": float(seen.max())},
        {"utility": (number.tolist(), smooth.tolist())},
        hops(run),
    )  # fmt: skip


GUIDED = Cause(
    "the guidance: most flows are mice, so up to four of five steps go towards delay, and the "
    "temperatures accept all. Without guidance the last half is better",
    Growth("late", UNGUIDED, PARALEON, HADOOP), Sign(1),
)  # fmt: skip


BEST = Reading(
    "by the best interval so far instead of the last half (columns); the paper does not say which "
    "its curve shows. Towards the end the guidance takes up to four of five steps towards delay",
    Growth("best", PARALEON, NAIVE, HADOOP),
)  # fmt: skip


THERE = Reading(WITHIN, Growth("late", PROTOTYPE, NAIVE_THERE, HADOOP))


def points(rows: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return rows, each on both kinds of traffic."""
    return dict.fromkeys(rows, (HADOOP, TRAINING))


def claims(*more: Reading) -> tuple[Claim, ...]:
    """Return the two claims; ``more``: other readings of the one on FB_Hadoop."""
    return tuple(
        Claim(f"{x}: PARALEON converges to a higher utility than naive_SA", PLACE,
              Growth("late", PARALEON, NAIVE, x), Sign(1), 100, " %", "+.1f",
              GUIDED if x == HADOOP else None, (BEST, *more) if x == HADOOP else ())
        for x in (HADOOP, TRAINING)
    )  # fmt: skip


FIGURE = Figure(
    name="P-fig12",
    paper="paraleon",
    title="utility against iterations of the annealing",
    x="traffic",
    sizes={
        "smoke": Size(points(ROWS), 2, 12, {"hosts": 16}),
        "quick": Size(points(ROWS), 8, 100, {"hosts": 16}),
        "full": Size(points(ROWS), 10, 280, {"hosts": 128}),
    },
    measure=partial(measure, ROWS),
    measures=(
        Measure("mean", "mean utility", 1, ".4f"),
        Measure("late", "of the last half", 1, ".4f"),
        Measure("best", "best interval", 1, ".4f"),
    ),
    claims=claims(THERE),
    plots=tuple(
        Over("utility", f"Utility, mean of {SMOOTH} intervals: {x}", "interval",
             tuple((row, x) for row in ROWS))
        for x in (HADOOP, TRAINING)
    ),
    ours=(
        "quick: 16 hosts at 25 Gb/s and 100 intervals, full: the paper's fabric and a whole "
        "search",
        "naive_SA, without numbers in the paper: a fair coin for the direction, any value on that"
        " side, temperatures of 90 to 1 by 0.95",
    ),
    before={PARALEON: PROTOTYPE, NAIVE: NAIVE_THERE},
    revision=2,
)  # fmt: skip
