"""PARALEON (ICNP 2024), Fig. 9 within the ranges of the authors' first prototype."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dcqcn_gym.benchmarks.papers.figure import Over
from dcqcn_gym.benchmarks.papers.figures import p_fig9
from dcqcn_gym.benchmarks.papers.figures.p_fig9 import ALWAYS, BY_TYPE, JUDGED, LATER, THERE, TRIED
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON, PROTOTYPE, under_names

NAMES = {PARALEON: PROTOTYPE, LATER: PARALEON, **THERE}
SAID = {
    ALWAYS: TRIED[ALWAYS],
    LATER: "within the ranges of the authors' later code",
    BY_TYPE: TRIED[BY_TYPE],
}
QUICK = (*JUDGED, *SAID)
FIGURE = replace(
    p_fig9.FIGURE,
    name="P-fig9-prototype",
    title=f"{p_fig9.FIGURE.title}, prototype's ranges",
    sizes={
        name: replace(size, points=dict.fromkeys(JUDGED if name == "full" else QUICK, ("influx",)))
        for name, size in p_fig9.FIGURE.sizes.items()
    },
    measure=partial(under_names, p_fig9.measure, NAMES),
    claims=p_fig9.claims(SAID),
    plots=(
        Over("rtt", "Mean round trip, us", "ms", tuple((row, "influx") for row in JUDGED), 1e6,
             1e3),
    ),
    revision=1,
    judged_in="P-fig9",
    before={},
    data_acks=(),
)  # fmt: skip
