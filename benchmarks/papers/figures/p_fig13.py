"""PARALEON (ICNP 2024), Fig. 13: bandwidth of an all-to-all by its scale, on the testbed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import AtLeast, Claim, Derived, Effect
from dcqcn_gym.benchmarks.papers.collective import algbw, cluster
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
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
from dcqcn_gym.benchmarks.papers.tuned import tuned
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.scenario.scenario import Scenario

PLACE = "section IV-C, Fig. 13"
ROWS = by_name((*FIVE[:3], EARLIER))
HELD = f"{PROTOTYPE}, what it found"
"""The setting that the search recommends in the end, held."""
LIMIT = "expert, if its fullest link were full"
"""What the paths of the queue pairs allow: the experts' rate over the use of its fullest link."""
BUFFER = 4_000_000_000
"""Bytes of a rank's message at the paper's 32 x 32 (section IV-C)."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run an all-to-all of so many cards; its bandwidth during the search, and late in it."""
    cards = int(cell.x)
    pair = round(BUFFER / cards * size.more["share"])
    scenario = cluster(cards, int(size.more["per_tor"]), pair)
    if cell.row == LIMIT:
        return limit(scenario, cell.seed, size.length_ms)
    row = PROTOTYPE if cell.row == HELD else cell.row
    run = ran(scenario, ROWS[row], cell.seed, size.length_ms)
    cost = hops(run)
    if cell.row == HELD:
        run = ran(scenario, held(run), cell.seed, size.length_ms)
        cost += hops(run)
    rate = float(run.column("throughput_bps").mean())
    return CellResult(
        {"algbw": algbw(run), "late": algbw(run, since=50), "rate": rate / cards}, {}, cost
    )


def limit(scenario: Scenario, seed: int, length_ms: float) -> CellResult:
    """Return the rate per card at which the fullest link of the experts' run would be full.

    Which link a queue pair takes depends on no knob, so each link has its fixed share of a round's
    bytes, and no setting delivers more.
    """
    seen = tuned(scenario, "expert", seed, length_ms)
    bits = 8 * np.sum([report.port_tx_bytes for report in seen.reports], axis=0, dtype=np.int64)
    time_s = (seen.reports[-1].end_ps - seen.reports[0].start_ps) * 1e-12
    fullest = float((bits / seen.reports[0].port_rate_bps).max()) / time_s
    delivered = 8 * float(np.sum([r.delivered_bytes for r in seen.reports], dtype=np.int64))
    rate = delivered / time_s / scenario.n_hosts
    nothing = float("nan")
    return CellResult({"algbw": nothing, "late": nothing, "rate": rate / fullest}, {}, seen.hops)


def over_better(x: int, results: FigureResults, seed: int) -> float:
    """Return the rate under PARALEON over that of the better static setting, minus 1."""
    static = max(results.value("rate", row, x, seed) for row in ("default", "expert"))
    return results.value("rate", PARALEON, x, seed) / static - 1


SMALL, LARGE = (8, 16), (32, 64, 128)


def _points(cards: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {
        **dict.fromkeys((*ROWS, LIMIT), cards),
        HELD: cards[-1:],
    }


def at_scale(which: Callable[[Iterable[int]], int], results: FigureResults, seed: int) -> float:
    """Return :func:`over_better` at the smallest (``min``) or the largest (``max``) scale."""
    return over_better(which(scales(results)), results, seed)


def scales(results: FigureResults) -> list[int]:
    """Return the numbers of cards, ascending."""
    return sorted({int(x) for _, x in results.places})


def best(results: FigureResults, seed: int) -> float:
    """Return :func:`over_better` at the scale where it is the largest over all seeds."""
    over = {
        x: mean([over_better(x, results, each) for each in results.seeds]) for x in scales(results)
    }
    return over_better(max(over, key=lambda x: over[x]), results, seed)


SHORT = (
    "the search sees intervals of 1 ms, of which a round lasts twenty; the paper's have 30 ms, and "
    "its rounds last about four. In so short a one utility depends on the place in the round, and "
    "the first is the best"
)


FIGURE = Figure(
    name="P-fig13",
    paper="paraleon",
    title="bandwidth of an all-to-all by scale",
    x="cards",
    sizes={
        "smoke": Size(_points(SMALL), 2, 3, {"share": 0.0002, "per_tor": 4}),
        "quick": Size(_points(SMALL), 3, 60, {"share": 0.05, "per_tor": 4}),
        "full": Size(_points(LARGE), 3, 280, {"share": 0.2, "per_tor": 8}),
    },
    measure=measure,
    measures=(
        Measure("rate", "delivered per card, Gb/s", 1e-9, ".1f"),
        Measure("algbw", "algbw, GB/s", 1e-9, ".2f"),
        Measure("late", "algbw in the last half, GB/s", 1e-9, ".2f"),
    ),
    claims=(
        Claim("at no scale worse than the better of default and expert", PLACE,
              {"the smallest": Derived(partial(at_scale, min)),
               "the largest": Derived(partial(at_scale, max))},
              AtLeast(0), 100, " %", "+.1f", no_test=SHORT),
        Claim("up to 19.5 % more than both at one of the scales",
              PLACE, Derived(best), Effect(0.195), 100, " %", "+.1f", no_test=SHORT),
    ),
    plots=(Against("rate", "Delivered per card, Gb/s", "cards", scale=1e-9, log_x=True),),
    ours=(
        "a proxy for the testbed: cards as hosts at 400 Gb/s, packets of 4096 B, two tiers 1:1, "
        "one persistent queue pair per pair",
        "intervals of 1 ms instead of 30 ms; quick: 8 and 16 cards, four to a ToR, 60 intervals, "
        "messages of a twentieth of 4 GB; rates count the whole search",
        "at quick size no setting could win: at 8 and 16 cards the experts' fullest uplink "
        "already carries over nine tenths of its rate",
        "one of the scales: where PARALEON is furthest ahead over all seeds",
    ),
    before=BEFORE,
    revision=2,
)  # fmt: skip
