"""PARALEON (ICNP 2024), Fig. 7 as its text tells it: arrivals that stop, and flows that drain."""

from __future__ import annotations

from functools import partial

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Cause,
    Change,
    Claim,
    Derived,
    Effect,
    Reading,
    SecondHand,
)
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Size
from dcqcn_gym.benchmarks.papers.figures.p_fig7ab import (
    BYTES,
    HOST,
    LOADS,
    OTHERS,
    PLACE,
    RANGES,
    against_worst,
)
from dcqcn_gym.benchmarks.papers.paraleon import (
    ELEPHANTS,
    FIVE,
    MICE,
    PARALEON,
    by_name,
    by_size,
    hadoop,
    hops,
    ran,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.rows import changed_scenario

ROWS = by_name((*FIVE, RANGES, BYTES))
WARMUP_MS = 5.0


def measure(cell: Cell, size: Size) -> Measured:
    """Run FB_Hadoop that stops until all flows are done; slowdowns of every flow."""
    base = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    stop_us = (WARMUP_MS + size.more["arrivals_ms"]) * 1e3
    load = {**hadoop(LOADS[str(cell.x)]), "stop_us": stop_us}
    scenario = changed_scenario(base, {"workloads": [load]}, "P-fig7-drained")
    run = ran(scenario, ROWS[cell.row], cell.seed, size.length_ms)
    return Measured({**by_size(run), "unfinished": float(run.unfinished)}, {}, hops(run))


def _small(other: str) -> Claim:
    """Return the claim against another row, with the successor's ranges as another reading."""
    rule = AtMost(-0.038, 0)
    there = Reading(
        "within the ranges of the authors' successor (series); the paper prints none",
        Change(MICE, RANGES.name, other, HOST),
    )
    said = f"flows below 120 KB: at least 3.8 % lower mean slowdown than {other}"
    return Claim(said, PLACE, Change(MICE, PARALEON, other, HOST),
                 SecondHand(rule) if other == "ACC" else rule, 100, " %", "+.1f",
                 readings=(there,))  # fmt: skip


LARGE = Cause(
    "the ranges of the authors' first prototype: within its successor's the same search leaves "
    "large flows far less behind",
    Change(ELEPHANTS, RANGES.name, PARALEON, HOST), Effect(-0.5),
)  # fmt: skip
POINTS = dict.fromkeys(ROWS, (HOST,))
FIGURE = Figure(
    name="P-fig7-drained",
    paper="paraleon",
    title="slowdowns of FB_Hadoop that stops and drains",
    x="load",
    sizes={
        "smoke": Size(POINTS, 2, 4, {"hosts": 16, "arrivals_ms": 2}),
        "quick": Size(POINTS, 4, 230, {"hosts": 16, "arrivals_ms": 30}),
        "full": Size(POINTS, 5, 230, {"hosts": 128, "arrivals_ms": 30}),
    },
    measure=measure,
    measures=(
        Measure(MICE, "below 120 KB, mean", 1, ".2f"),
        Measure(f"{MICE} p99.9", "p99.9", 1, ".1f"),
        Measure(ELEPHANTS, "above 1 MB, mean", 1, ".1f"),
        Measure(f"{ELEPHANTS} p99.9", "p99.9", 1, ".0f"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=(
        *map(_small, OTHERS),
        Claim("flows above 1 MB: up to 61.4 % lower mean slowdown than the others", PLACE,
              Derived(partial(against_worst, ELEPHANTS, HOST)), SecondHand(Effect(-0.614)), 100,
              " %", "+.1f", LARGE),
    ),
    ours=(
        "flows begin for 30 ms and all are waited for, 200 ms at most; size quick: 16 hosts; the "
        "paper's 128 hosts (full) were not run, nor 30 % of the uplinks",
    ),
    judged_in="P-fig7ab",
)  # fmt: skip
