"""PARALEON (ICNP 2024), Fig. 7 (c, d): completion times of training's all-to-all while tuning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import (
    Cause,
    Claim,
    Derived,
    Direction,
    Effect,
    Growth,
    SecondHand,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.paraleon import (
    BEFORE,
    EARLIER,
    FIVE,
    PARALEON,
    PROTOTYPE,
    by_name,
    held,
    hops,
    ran,
)
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import Entry, changed_scenario

PLACE = "section IV-B, Fig. 7"
BYTES = Entry("paraleon-bytes", {"ranges": "prototype"}, given_name=f"{PROTOTYPE}, by bytes")
ROWS = by_name((*FIVE, EARLIER, BYTES))
HELD = f"{PROTOTYPE}, what it found"
"""The setting that the search recommends in the end, held on the same traffic."""
OTHERS = tuple(row.name for row in FIVE[1:])
FEW, MANY, PACKED = "fewer workers", "more workers", "fewer workers, packed"
PLACES = (FEW, MANY, PACKED)
WORKERS = {FEW: (8, 20), MANY: (12, 32), PACKED: (8, 20)}
"""Workers on 16 and on 128 hosts."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the all-to-all under a row; completion times of its flows, unfinished ones' ages."""
    large = size.more["hosts"] == 128
    base = load_scenario("llm-alltoall" if large else "mini-llm-alltoall")
    (traffic,) = (one.model_dump(mode="json") for one in base.workloads)
    traffic["hosts"] = WORKERS[str(cell.x)][large]
    traffic["placement"] = "packed" if cell.x == PACKED else "round-robin"
    scenario = changed_scenario(base, {"workloads": [traffic]}, "P-fig7cd")
    row = PROTOTYPE if cell.row == HELD else cell.row
    run = ran(scenario, ROWS[row], cell.seed, size.length_ms)
    cost = hops(run)
    if cell.row == HELD:
        run = ran(scenario, held(run), cell.seed, size.length_ms)
        cost += hops(run)
    slow = np.sort(run.every_flow[1])
    step = max(1, slow.size // 150)
    share = np.arange(1, slow.size + 1) / max(1, slow.size)
    return CellResult(
        {
            "p99": statistic(slow, 99),
            "longest": float(slow[-1]) if slow.size else float("nan"),
            "mean": statistic(slow),
        },
        {"cdf": (slow[::step].tolist(), share[::step].tolist())},
        cost,
    )


def against_worst(x: str, results: FigureResults, seed: int) -> float:
    """Return PARALEON's 99th percentile over that of the worst other row, minus 1."""
    others = [results.value("p99", row, x, seed) for row in OTHERS]
    return results.value("p99", PARALEON, x, seed) / max(others) - 1


SEARCH = Cause(
    "the search itself passes settings that stretch a round; what it recommends in the end has a "
    "shorter tail on the same traffic",
    Growth("p99", HELD, PROTOTYPE, FEW), Sign(-1),
)  # fmt: skip


def _shorter(rivals: Sequence[str]) -> dict[str, Growth]:
    """Return the change of the tail against every rival, in both numbers of workers."""
    return {f"{row}, {x}": Growth("p99", PARALEON, row, x) for row in rivals for x in (FEW, MANY)}


def _points(*places: str) -> dict[str, tuple[str, ...]]:
    return {**dict.fromkeys(ROWS, places), HELD: (FEW,)}


FIGURE = Figure(
    name="P-fig7cd",
    paper="paraleon",
    title="completion times of an all-to-all while tuning",
    x="workers",
    sizes={
        "smoke": Size(_points(*PLACES), 2, 4, {"hosts": 16}),
        "quick": Size(_points(*PLACES), 5, 100, {"hosts": 16}),
        "full": Size(_points(*PLACES), 5, 450, {"hosts": 128}),
    },
    measure=measure,
    measures=(
        Measure("mean", "slowdown, mean", 1, ".2f"),
        Measure("p99", "p99", 1, ".2f"),
        Measure("longest", "longest", 1, ".2f"),
    ),
    claims=(
        Claim("up to 54.5 % lower tail of the completion times", PLACE,
              {x: Derived(partial(against_worst, x)) for x in PLACES}, SecondHand(Effect(-0.545)),
              100, " %", "+.1f"),
        Claim("a shorter tail (99th percentile) than the static settings", PLACE,
              _shorter(("default", "expert")), Sign(-1), 100, " %", "+.1f", SEARCH),
        Claim("and than DCQCN+", PLACE, _shorter(("DCQCN+",)), Sign(-1), 100, " %", "+.1f"),
        Claim("and than ACC", PLACE, _shorter(("ACC",)), Direction(-1), 100, " %", "+.1f"),
    ),
    plots=(
        Over("cdf", "Share of flows, fewer workers", "slowdown",
             tuple((row, FEW) for row in ROWS), log_x=True),
        Over("cdf", "Share of flows, more workers", "slowdown",
             tuple((row, MANY) for row in ROWS), log_x=True),
    ),
    ours=(
        "quick: 8 and 12 workers of 16 hosts at 25 Gb/s, 1 MB per pair, 100 intervals; full: 20 "
        "and 32 workers of 128 hosts, 12 MB per pair. Number and place of workers are ours: round"
        " robin over the racks, and packed into few",
        "slowdown: the completion time over that in an idle network; unfinished flows count with "
        "their age",
    ),
    before=BEFORE,
    revision=2,
)  # fmt: skip
