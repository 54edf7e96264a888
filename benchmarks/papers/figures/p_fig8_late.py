"""PARALEON (ICNP 2024), Fig. 8 at the paper's time: the influx at 2.01 s, after a whole search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Cause,
    Claim,
    Direction,
    Growth,
    Reading,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.paraleon import (
    EARLIER,
    FIVE,
    INFLUX,
    PROTOTYPE,
    SIZES_OF_INFLUX,
    WITHIN,
    by_name,
    hops,
    through_influx,
)
from dcqcn_gym.benchmarks.papers.probe import thinned
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import Entry

PLACE = "section IV-B, Fig. 8"
X = "influx"
DONE = "PARALEON, search finished"
AGAIN, BY_TYPE = f"{PROTOTYPE}, KL trigger", f"{PROTOTYPE}, weights by type"
TRIED = {
    PROTOTYPE: WITHIN,
    AGAIN: "there with the KL trigger",
    BY_TYPE: "there with weights by type",
}
"""Rows of other readings, in words."""
LATER, LATER_TYPE = "PARALEON, later ranges", "PARALEON, weights by type"
QUICK = (BY_TYPE, LATER, LATER_TYPE)
"""Rows, here and in the figure of the prototype's ranges, that size full does not have."""
OTHER_TRAFFIC = "what PARALEON found on FB_Hadoop, held"
KNOWN = ("default", "expert", "DCQCN+")
"""Whom PARALEON is compared with but ACC, which we rebuilt."""
FULL = by_name((
    replace(FIVE[0], changes={"trigger": "always"}, given_name=DONE),
    *FIVE[1:],
    replace(EARLIER, changes={"trigger": "kl"}, given_name=AGAIN),
    Entry("pretrained-fbhadoop", given_name=OTHER_TRAFFIC),
    replace(EARLIER, changes={"trigger": "always"}),
))  # fmt: skip
ROWS = {
    **FULL,
    BY_TYPE: Entry("paraleon-prototype", {"weights": "dominant"}, {"trigger": "always"}, BY_TYPE),
}


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the all-to-all; figures in the influx and after it, and whether the search was over."""
    run, figures = through_influx(ROWS[cell.row], cell.seed, size)
    begin = size.more["begin_ms"]
    start = run.column("start_ps") * 1e-12
    near = run.busy & (start >= (begin - size.more["influx_ms"]) * 1e-3)
    return CellResult(
        {**{one.name: figures[one.name] for one in INFLUX}, "moves": moves(run, begin)},
        {"rtt": thinned(start[near], run.column("rtt_mean_ps")[near] * 1e-12)},
        hops(run),
    )


def moves(run: Series, begin_ms: float) -> float:
    """Return the share of the last tenth of the time before the influx that began with a move."""
    lines = [line for line in run.records if 0.9 * begin_ms <= line["start_ps"] * 1e-9 < begin_ms]
    moved = [a["setting"] != b["setting"] for a, b in pairwise(lines)]
    return float(np.mean(moved)) if moved else float("nan")


FOUND_FOR = Cause(
    "the search is over and rests at what it found for training, which has the experts' "
    "throughput and long queues. What it found on FB_Hadoop has about half of these round trips "
    "in the influx (a quarter at quick size), and little throughput after it",
    Growth("rtt", OTHER_TRAFFIC, DONE, X), AtMost(-0.4),
)  # fmt: skip


def _others(tried: Mapping[str, str], name: str, rivals: Sequence[str]) -> Sequence[Reading]:
    return [Reading(said, {one: Growth(name, row, one, X) for one in rivals},
                    at="quick" if row in QUICK else "")
            for row, said in tried.items()]  # fmt: skip


def _points(rows: Iterable[str] = ROWS) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(rows, (X,))


def claims(tried: Mapping[str, str]) -> tuple[Claim, ...]:
    """Return the claims; ``tried``: rows of other readings, in words."""
    return tuple(
        Claim(f"the {best} {'in the influx' if way < 0 else 'after it'}, against {whom}",
              PLACE, {row: Growth(name, DONE, row, X) for row in rivals}, rule(way), 100, " %",
              "+.1f", FOUND_FOR if way < 0 else None, _others(tried, name, rivals))
        for best, name, way in (("lowest round trips", "rtt", -1),
                                ("highest throughput", "tp after", 1))
        for whom, rivals, rule in (("the others", KNOWN, Sign), ("ACC", ("ACC",), Direction))
    )  # fmt: skip


FIGURE = Figure(
    name="P-fig8-late",
    paper="paraleon",
    title="the influx at 2.01 s, after a finished search",
    x="traffic",
    sizes={
        "smoke": Size(_points(), 2, 14, {"hosts": 16, "begin_ms": 6, "influx_ms": 4}),
        "quick": Size(_points(), 3, 2110, {"hosts": 16, "begin_ms": 2010, "influx_ms": 30}),
        "full": Size(_points(FULL), 5, 2110, {"hosts": 128, "begin_ms": 2010, "influx_ms": 30}),
    },
    measure=measure,
    measures=(
        *INFLUX,
        Measure("moves", "intervals before it that began with a move, %", 1e2, ".0f"),
    ),
    claims=claims(TRIED),
    plots=(
        Over("rtt", "Mean round trip, us", "ms", tuple((row, X) for row in FULL), 1e6,
             1e3),
    ),
    ours=(
        SIZES_OF_INFLUX,
        "after: from 5 ms after the end of the influx on, for 65 ms",
        "claims are judged for a search that is over after 280 intervals with data. With the KL "
        "trigger it never is: 1 ms of ON-OFF training changes the distribution by more than theta"
        " in most intervals",
    ),
    before={DONE: PROTOTYPE},
    revision=2,
)  # fmt: skip
