"""PARALEON (ICNP 2024), Fig. 7 as its text tells it: arrivals that stop, and flows that drain."""

from __future__ import annotations

from functools import partial

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Change,
    Claim,
    Derived,
    Effect,
    Reading,
    SecondHand,
)
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measured, Size
from dcqcn_gym.benchmarks.papers.figures.p_fig7ab import (
    BYTES,
    HOST,
    MEASURES,
    OTHERS,
    PLACE,
    RANGES,
    UNFINISHED,
    against_worst,
    large_flows,
    played,
)
from dcqcn_gym.benchmarks.papers.paraleon import ELEPHANTS, FIVE, MICE, PARALEON, by_name

ROWS = by_name((*FIVE, RANGES, BYTES))
WARMUP_MS = 5.0


def measure(cell: Cell, size: Size) -> Measured:
    """Run FB_Hadoop that stops until all flows are done; slowdowns of every flow."""
    stop_us = (WARMUP_MS + size.more["arrivals_ms"]) * 1e3
    return played(cell, size, "P-fig7-drained", stop_us=stop_us)


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
    measures=(*MEASURES, UNFINISHED),
    claims=(
        *map(_small, OTHERS),
        Claim("flows above 1 MB: up to 61.4 % lower mean slowdown than the others", PLACE,
              Derived(partial(against_worst, ELEPHANTS, HOST)), SecondHand(Effect(-0.614)), 100,
              " %", "+.1f", large_flows(HOST)),
    ),
    ours=(
        "flows begin for 30 ms and all are waited for, 200 ms at most; size quick: 16 hosts; the "
        "paper's 128 hosts (full) were not run, nor 30 % of the uplinks",
    ),
    judged_in="P-fig7ab",
)  # fmt: skip
