"""PARALEON (ICNP 2024), Fig. 12 within the ranges of the authors' first prototype."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dcqcn_gym.benchmarks.papers.figures import p_fig12

ROWS = p_fig12.within("prototype")
FIGURE = replace(
    p_fig12.FIGURE,
    name="P-fig12-prototype",
    title=f"{p_fig12.FIGURE.title}, prototype's ranges",
    sizes={
        name: replace(size, points=p_fig12.points(ROWS))
        for name, size in p_fig12.FIGURE.sizes.items()
    },
    measure=partial(p_fig12.measure, ROWS),
    claims=p_fig12.claims(),
    revision=1,
    judged_in="P-fig12",
    before={},
)
