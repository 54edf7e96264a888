"""PARALEON (ICNP 2024), Fig. 7 as its text tells it: arrivals that stop, and flows that drain."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import AtMost, Change, Claim, Reading, SecondHand
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Size
from dcqcn_gym.benchmarks.papers.figures.p_fig7ab import (
    BYTES,
    HOST,
    LOADS,
    OTHERS,
    PLACE,
    RANGES,
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


def _lower(measure: str, other: str, x: str, bound: float) -> Claim:
    """Return the claim against another row, with the successor's ranges as another reading."""
    flows = "below 120 KB" if measure == MICE else "above 1 MB"
    rule = AtMost(bound, 0)
    there = Reading(
        "within the ranges of the authors' successor (series); the paper prints none",
        Change(measure, RANGES.name, other, x),
    )
    said = f"flows {flows}: at least {-100 * bound:g} % lower mean slowdown than {other}"
    return Claim(said, PLACE, Change(measure, PARALEON, other, x),
                 SecondHand(rule) if other == "ACC" else rule, 100, " %", "+.1f",
                 readings=(there,))  # fmt: skip


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
    claims=tuple(_lower(measure, other, HOST, -0.038)
                 for measure in (MICE, ELEPHANTS) for other in OTHERS),
    ours=(
        "flows begin for 30 ms and all are waited for, 200 ms at most; size quick: 16 hosts; the "
        "paper's 128 hosts (full) were not run",
    ),
    judged_in="P-fig7ab",
)  # fmt: skip
