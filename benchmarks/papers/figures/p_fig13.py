"""PARALEON (ICNP 2024), Fig. 13: bandwidth of an all-to-all by its scale, on the testbed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import Claim, Derived, Effect, Sign
from dcqcn_gym.benchmarks.papers.collective import algbw, cluster
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, Figure, Measure, Measured, Size
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON, by_name, held, hops, ran
from dcqcn_gym.benchmarks.papers.results import Results
from dcqcn_gym.runs.rows import Row

PLACE = "section IV-C, Fig. 13"
ROWS = by_name((Row("paraleon", given_name=PARALEON), Row("default"), Row("expert")))
RANGES = Row("paraleon-plus-ranges", given_name="PARALEON, successor's ranges")
HELD = "PARALEON, what it found"
"""The setting that PARALEON recommends after its search, held."""
EVERY = {**ROWS, RANGES.name: RANGES}
BUFFER = 4_000_000_000
"""Bytes of a rank's message at the paper's 32 x 32 (section IV-C)."""


def measure(cell: Cell, size: Size) -> Measured:
    """Run an all-to-all of so many cards; its bandwidth during the search, and late in it."""
    cards = int(cell.x)
    pair = round(BUFFER / cards * size.more["share"])
    scenario = cluster(cards, int(size.more["per_tor"]), pair)
    row = PARALEON if cell.row == HELD else cell.row
    run = ran(scenario, EVERY[row], cell.seed, size.length_ms)
    cost = hops(run)
    if cell.row == HELD:
        run = ran(scenario, held(run), cell.seed, size.length_ms)
        cost += hops(run)
    rate = float(run.column("throughput_bps").mean())
    return Measured(
        {"algbw": algbw(run), "late": algbw(run, since=50), "rate": rate / cards}, {}, cost
    )


def over_better(x: int, results: Results, seed: int) -> float:
    """Return the rate under PARALEON over that of the better static setting, minus 1."""
    static = max(results.value("rate", row, x, seed) for row in ("default", "expert"))
    return results.value("rate", PARALEON, x, seed) / static - 1


SMALL, LARGE = (8, 16), (32, 64, 128)


def _points(cards: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {**dict.fromkeys(ROWS, cards), **dict.fromkeys((RANGES.name, HELD), cards[-1:])}


def at_scale(which: Callable[[Iterable[int]], int], results: Results, seed: int) -> float:
    """Return :func:`over_better` at the smallest (``min``) or the largest (``max``) scale."""
    return over_better(which(int(x) for _, x in results.places), results, seed)


def best(results: Results, seed: int) -> float:
    """Return the largest :func:`over_better` of all scales."""
    return max(over_better(x, results, seed) for x in {int(x) for _, x in results.places})


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
        Claim("at no scale worse than the better of default and expert: the smallest",
              PLACE, Derived(partial(at_scale, min)),
              Sign(1), 100, " %", "+.1f"),
        Claim("likewise the largest",
              PLACE, Derived(partial(at_scale, max)),
              Sign(1), 100, " %", "+.1f"),
        Claim("up to 19.5 % more than both at one of the scales",
              PLACE, Derived(best), Effect(0.195), 100, " %", "+.1f"),
    ),
    plots=(Against("rate", "Delivered per card, Gb/s", "cards", scale=1e-9, log_x=True),),
    ours=(
        "a proxy for the testbed: cards as hosts at 400 Gb/s, packets of 4096 B, two tiers 1:1, "
        "one persistent queue pair per pair; the GPUs are not here",
        "intervals of 1 ms instead of 30 ms; quick: 8 and 16 cards, four to a ToR, 60 intervals "
        "and messages of a twentieth of the paper's 4 GB; rates count the whole search, as an "
        "operator would see it",
    ),
)  # fmt: skip
