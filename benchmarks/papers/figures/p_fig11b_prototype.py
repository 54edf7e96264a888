"""PARALEON (ICNP 2024), Fig. 11 (b) within the ranges of the authors' first prototype."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import Cause, Effect, Growth
from dcqcn_gym.benchmarks.papers.figures import p_fig11b
from dcqcn_gym.benchmarks.papers.paraleon import ELEPHANTS, PARALEON

LATER = f"{PARALEON}, later ranges"
ROWS = {**p_fig11b.within("paraleon-prototype"), LATER: p_fig11b.within("paraleon")[PARALEON]}
FURTHER = Cause(
    "more steps lead the search further to the ends of its ranges that starve large flows; within "
    "the later ranges, with as many steps, they are half as slow",
    Growth(ELEPHANTS, LATER, PARALEON, 1), Effect(-0.5),
)  # fmt: skip


def _points(full: bool) -> dict[str, tuple[int, ...]]:
    return {**p_fig11b.points(ROWS, full), LATER: (1,)}


FIGURE = replace(
    p_fig11b.FIGURE,
    name="P-fig11b-prototype",
    title=f"{p_fig11b.FIGURE.title}, prototype's ranges",
    sizes={
        name: replace(size, points=_points(name == "full"))
        for name, size in p_fig11b.FIGURE.sizes.items()
    },
    measure=partial(p_fig11b.measure, ROWS),
    claims=p_fig11b.claims(p_fig11b.guided(""), FURTHER, earlier=False),
    revision=1,
    judged_in="P-fig11b",
    before={},
)
