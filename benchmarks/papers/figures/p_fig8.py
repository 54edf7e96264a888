"""PARALEON (ICNP 2024), Fig. 8: a workload comes and goes, with ACC and DCQCN+ as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.acks import as_asked
from dcqcn_gym.benchmarks.papers.claims import (
    AtLeast,
    AtMost,
    Cause,
    Change,
    Claim,
    Direction,
    Rule,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measured, Over, Size
from dcqcn_gym.benchmarks.papers.paraleon import INFLUX, SIZES_OF_INFLUX, influx
from dcqcn_gym.benchmarks.papers.probe import thinned
from dcqcn_gym.benchmarks.papers.tuned import Tuned, tuned
from dcqcn_gym.core.utility import terms
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.rows import changed_scenario

PLACE = "section IV-B, Fig. 8"
ROWS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "PARALEON": ("paraleon", {"trigger": "kl"}),
    "default": ("default", {}),
    "expert": ("expert", {}),
    "ACC": ("acc", {}),
    "DCQCN+": ("do-nothing", {"scheme": "dcqcn-plus", "initial": "dcqcn-plus"}),
}
"""The tuner, and what is changed of the scenario."""
FOR_MICE = "held: the setting for FB_Hadoop"
HELD: Mapping[str, tuple[str, Mapping[str, Any]]] = {FOR_MICE: ("pretrained-fbhadoop", {})}
"""A row beside the paper's, for a cause."""

LATER = ", later"
"""End of the name of a row that goes on for ``later_ms``, until the search is over."""


def _scenario(size: Size, changes: Mapping[str, Any]) -> Scenario:
    base = influx(int(size.more["hosts"]), size.more["begin_ms"], size.more["influx_ms"])
    return changed_scenario(base, changes, "P-fig8")


def measure(cell: Cell, size: Size) -> Measured:
    """Run the all-to-all; throughput and round trips in the influx, and after it."""
    name = cell.row.removesuffix(LATER)
    tuner, changes = {**ROWS, **HELD}[name]
    begin, end = size.more["begin_ms"], size.more["begin_ms"] + size.more["influx_ms"]
    rest, length = size.more["influx_ms"] / 6, size.length_ms  # 5 ms of 30
    if name != cell.row:
        rest, length = size.more["rest_ms"], size.more["later_ms"]
    seen = tuned(as_asked(_scenario(size, changes), size), tuner, cell.seed, length)
    during, after = _means(seen, begin, end), _means(seen, end + rest, np.inf)
    time = np.array([r.start_ps * 1e-12 for r in seen.reports])
    trips = np.array([_trip_s(seen, i) for i in range(len(seen.reports))])
    return Measured(
        {"rtt": during[0], "tp": during[1], "rtt after": after[0], "tp after": after[1]},
        {"rtt": thinned(time, trips)},
        seen.hops,
    )


def _trip_s(seen: Tuned, i: int) -> float:
    report = seen.reports[i]
    count = int(report.rtt_count.sum())
    return float(report.rtt_sum_ps.sum()) / count * 1e-12 if count else 0.0


def _means(seen: Tuned, begin_ms: float, end_ms: float) -> tuple[float, float]:
    """Return the mean round trip in seconds and O_TP of the intervals in a span with data."""
    chosen = [
        i
        for i, r in enumerate(seen.reports)
        if begin_ms * 1e9 <= r.start_ps < end_ms * 1e9 and not r.idle
    ]
    if not chosen:
        return float("nan"), float("nan")
    tp = [terms(seen.reports[i]).tp for i in chosen]
    return float(np.mean([_trip_s(seen, i) for i in chosen])), float(np.mean(tp))


def _points(place: str = "influx") -> dict[str, tuple[str, ...]]:
    later = [f"{row}{LATER}" for row in ("PARALEON", "expert")]
    return dict.fromkeys((*ROWS, *later, *HELD), (place,))


STARTS_LATE = (
    "the search begins with what it found for training, and walks most of the influx's 30 "
    "intervals while queues are built already. The setting pretrained on FB_Hadoop has round "
    "trips shorter by more than 15 %"
)


def _rule(row: str, way: int) -> Rule:
    """Return the rule against a row: ACC is rebuilt, so that direction is the best."""
    return Direction(way) if row == "ACC" else Sign(way)


def _lowest_trip(row: str) -> Claim:
    return Claim(
        f"the lowest round trips in the influx: PARALEON against {row}",
        PLACE, Change("rtt", "PARALEON", row, "influx"), _rule(row, -1), 100, " %", "+.1f",
        Cause(STARTS_LATE, Change("rtt", FOR_MICE, row, "influx"), AtMost(-0.15)),
    )  # fmt: skip


def _highest_tp(row: str) -> Claim:
    return Claim(
        f"the highest throughput after it: PARALEON against {row}",
        PLACE, Change("tp after", "PARALEON", row, "influx"), _rule(row, 1), 100, " %", "+.1f",
        CAUSE if row == "expert" else None,
    )  # fmt: skip


CAUSE = Cause(
    "the search needs some hundred intervals and is still trying settings. From 50 ms after the "
    "influx on (series) PARALEON's throughput is the experts' (within 5 %)",
    Change("tp after", f"PARALEON{LATER}", f"expert{LATER}", "influx"), AtLeast(-0.05),
)  # fmt: skip
OTHERS = tuple(row for row in ROWS if row != "PARALEON")

FIGURE = Figure(
    name="P-fig8",
    judged_in="P-fig8-late",
    paper="paraleon",
    title="an influx of FB_Hadoop into an all-to-all",
    x="traffic",
    data_acks=tuple(ROWS),
    sizes={
        "smoke": Size(
            _points(),
            2,
            14,
            {"hosts": 16, "begin_ms": 6, "influx_ms": 4, "rest_ms": 2, "later_ms": 16},
        ),
        "quick": Size(
            _points(),
            5,
            120,
            {"hosts": 16, "begin_ms": 40, "influx_ms": 30, "rest_ms": 50, "later_ms": 250},
        ),
        "full": Size(
            _points(),
            5,
            400,
            {"hosts": 128, "begin_ms": 200, "influx_ms": 30, "rest_ms": 50, "later_ms": 700},
        ),
    },
    measure=measure,
    measures=INFLUX,
    claims=(*map(_lowest_trip, OTHERS), *map(_highest_tp, OTHERS)),
    plots=(
        Over("rtt", "Mean round trip, us", "ms", tuple((row, "influx") for row in ROWS), 1e6, 1e3),
    ),
    ours=(
        SIZES_OF_INFLUX,
        "the influx begins after 40 ms, at full size 200, not 2 s",
        "ACC (the network of the package) decides once per interval of 1 ms; DCQCN+ has its own "
        "values",
        "after: from 5 ms after the influx to 120 (400) ms; later: from 50 ms after it to 250 "
        "(700) ms",
    ),
)
