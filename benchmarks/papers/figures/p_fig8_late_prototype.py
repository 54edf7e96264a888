"""PARALEON (ICNP 2024), Fig. 8 at 2.01 s within the ranges of the authors' first prototype."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dcqcn_gym.benchmarks.papers.figure import Over
from dcqcn_gym.benchmarks.papers.figures import p_fig8_late
from dcqcn_gym.benchmarks.papers.figures.p_fig8_late import DONE, LATER, LATER_TYPE, X
from dcqcn_gym.benchmarks.papers.paraleon import PROTOTYPE, under_names

AGAIN = "PARALEON, KL trigger"
ROWS = {row: row for row in p_fig8_late.FULL if row not in (PROTOTYPE, p_fig8_late.AGAIN)}
NAMES = {**ROWS, DONE: PROTOTYPE, AGAIN: p_fig8_late.AGAIN}
QUICK = {**NAMES, LATER: DONE, LATER_TYPE: p_fig8_late.BY_TYPE}
FIGURE = replace(
    p_fig8_late.FIGURE,
    name="P-fig8-late-prototype",
    title=f"{p_fig8_late.FIGURE.title}, prototype's ranges",
    sizes={
        name: replace(size, points=dict.fromkeys(NAMES if name == "full" else QUICK, (X,)))
        for name, size in p_fig8_late.FIGURE.sizes.items()
    },
    measure=partial(under_names, p_fig8_late.measure, QUICK),
    claims=p_fig8_late.claims(
        {
            AGAIN: "with the KL trigger",
            LATER: "within the ranges of the authors' later code",
            LATER_TYPE: "with weights by type",
        }
    ),
    plots=(Over("rtt", "Mean round trip, us", "ms", tuple((row, X) for row in NAMES), 1e6, 1e3),),
    revision=1,
    judged_in="P-fig8-late",
    before={},
)
