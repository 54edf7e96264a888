"""PARALEON (ICNP 2024), Fig. 12: utility against iterations, with and without its optimisations."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import Cause, Claim, Growth, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON, by_name, hops, ran
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import Entry

PLACE = "section IV-B, Fig. 12"
NAIVE, UNGUIDED, UNRELAXED = "naive_SA", "without guidance", "without relaxed temperature"
RESCALED = "temperatures of 0.1 to 0.011"
ROWS = by_name(
    (
        Entry("paraleon-prototype", given_name=PARALEON),
        Entry("naive-sa", {"ranges": "prototype"}, given_name=NAIVE),
        Entry("paraleon-unguided", {"ranges": "prototype"}, given_name=UNGUIDED),
        Entry("paraleon-unrelaxed", {"ranges": "prototype"}, given_name=UNRELAXED),
        Entry("paraleon-rescaled", {"ranges": "prototype"}, given_name=RESCALED),
        Entry("default"),
    )
)
HADOOP, TRAINING = "FB_Hadoop", "training"
SCENARIOS = {
    HADOOP: ("mini-fb-hadoop", "fb-hadoop"),
    TRAINING: ("mini-llm-alltoall", "llm-alltoall"),
}
SMOOTH = 10
"""Intervals of the moving mean that is drawn."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run a variant; the mean utility over what it tried, and over the last half of it."""
    scenario = load_scenario(SCENARIOS[str(cell.x)][size.more["hosts"] == 128])
    run = ran(scenario, ROWS[cell.row], cell.seed, size.length_ms)
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


def _points() -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(ROWS, (HADOOP, TRAINING))


FIGURE = Figure(
    name="P-fig12",
    paper="paraleon",
    title="utility against iterations of the annealing",
    x="traffic",
    sizes={
        "smoke": Size(_points(), 2, 12, {"hosts": 16}),
        "quick": Size(_points(), 8, 100, {"hosts": 16}),
        "full": Size(_points(), 10, 280, {"hosts": 128}),
    },
    measure=measure,
    measures=(
        Measure("mean", "mean utility", 1, ".4f"),
        Measure("late", "of the last half", 1, ".4f"),
        Measure("best", "best interval", 1, ".4f"),
    ),
    claims=tuple(
        Claim(f"{x}: PARALEON converges to a higher utility than naive_SA", PLACE,
              Growth("late", PARALEON, NAIVE, x), Sign(1), 100, " %", "+.1f",
              GUIDED if x == HADOOP else None, (BEST,) if x == HADOOP else ())
        for x in (HADOOP, TRAINING)
    ),
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
)  # fmt: skip
