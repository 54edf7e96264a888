"""PARALEON (ICNP 2024), Fig. 13 within the ranges of the authors' first prototype."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dcqcn_gym.benchmarks.papers.figure import Size
from dcqcn_gym.benchmarks.papers.figures import p_fig13
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON, PROTOTYPE, under_names

NAMES = {
    PARALEON: PROTOTYPE,
    f"{PARALEON}, later ranges": PARALEON,
    f"{PARALEON}, what it found": p_fig13.HELD,
}
"""Rows of the figure under the names that they have here."""


def _points(size: Size) -> dict[str, tuple[float | str, ...]]:
    cards = tuple(size.points[PARALEON])
    largest = dict.fromkeys(list(NAMES)[1:], cards[-1:])
    return {**dict.fromkeys((PARALEON, "default", "expert", p_fig13.LIMIT), cards), **largest}


FIGURE = replace(
    p_fig13.FIGURE,
    name="P-fig13-prototype",
    title=f"{p_fig13.FIGURE.title}, prototype's ranges",
    sizes={
        name: replace(size, points=_points(size)) for name, size in p_fig13.FIGURE.sizes.items()
    },
    measure=partial(under_names, p_fig13.measure, NAMES),
    revision=1,
    judged_in="P-fig13",
    before={},
)
