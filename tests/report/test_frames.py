"""What decides stands inside its picture, whatever the values are."""

from __future__ import annotations

import math
import re

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dcqcn_gym.comparison.figures import profile_chart
from dcqcn_gym.core.answer import Answer
from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.statistics import Estimate, slowdown_by_size
from dcqcn_gym.core.verdict import Change, Flag, Verdict
from dcqcn_gym.report.answer import AnswerBlock, TriedRow
from dcqcn_gym.report.chart import SIDE
from dcqcn_gym.report.figures import Line, gain_figure, lines_figure, slowdown_figure

EDGE = 4.0
"""A dot that is nearer to the frame than this, of 1000, is cut."""

NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e-12, 1e6, -1e6, 40.0]),
    st.floats(-50, 50, allow_nan=False),
)


@st.composite
def estimates(draw: st.DrawFn, means: st.SearchStrategy[float], widest: float) -> Estimate:
    mean = draw(means)
    width = draw(st.one_of(st.none(), st.floats(0, widest)))
    if width is None:
        return Estimate(mean, None, None, 1)
    return Estimate(mean, mean - width, mean + width * draw(st.floats(0, 1)), 5)


def dots(html: str) -> list[tuple[float, float]]:
    """Return where dots stand, in parts of a thousand of their panel."""
    found = re.findall(r'class="dot" d="M(-?[\d.]+) (-?[\d.]+)', html)
    return [(float(x), float(y)) for x, y in found]


def within(html: str, axis: int = 0) -> bool:
    return all(EDGE <= dot[axis] <= SIDE - EDGE for dot in dots(html))


def verdict(score: Estimate, costs: list[Estimate]) -> Verdict:
    keys = [f"p99 {CLASSES[0].key}", f"mean {CLASSES[1].key}", "goodput", "pause", "unfinished"]
    flags = tuple(
        Flag(key, key, "up", 0.25, Change(key, 1.0, 1.0, cost, True, True))
        for key, cost in zip(keys, costs, strict=True)
    )
    return Verdict("worse", "worse", "no", score, flags)


SCORES = estimates(st.floats(-12, 12), 300)
COSTS = estimates(NUMBERS, 1e4)
EXTREME = Estimate(40.0, 0.1, 1e4, 5)


@settings(deadline=None, max_examples=60)
@given(st.lists(SCORES, min_size=2, max_size=4), st.lists(COSTS, min_size=5, max_size=5))
@example([Estimate(0.0, None, None, 1)] * 2, [EXTREME] + [Estimate(0.0, -0.01, 0.01, 5)] * 4)
@example(
    [Estimate(-8.0, -9.0, -0.1, 5), Estimate(9.0, 0.1, 99.0, 5)], [Estimate(0.25, 0.2, 0.3, 5)] * 5
)
def test_the_answers_means_are_inside(scores: list[Estimate], costs: list[Estimate]) -> None:
    verdicts = {f"setting {i}": verdict(score, costs) for i, score in enumerate(scores)}
    said = Answer("a choice", "setting 0", "", "default", verdicts)
    rows = (TriedRow("setting 0", "", "", "", True),)
    html = str(AnswerBlock(said, rows, None).figure())
    # of the two figures of one class the nearer is drawn
    assert len(dots(html)) == len(scores) + len(costs)
    assert within(html)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(1, 1e7), min_size=1, max_size=50), st.floats(1, 1e6))
def test_slowdowns_are_inside(slowdowns: list[float], other: float) -> None:
    size = np.array([10 ** (i % 8) for i in range(len(slowdowns))], dtype=np.int64)
    tables = {
        "default": ("default", slowdown_by_size(size, np.array(slowdowns))),
        "tuned": ("candidate", slowdown_by_size(size, np.full(len(slowdowns), other))),
    }
    html = str(slowdown_figure(tables).html())
    assert dots(html)
    assert within(html, 1)


@settings(deadline=None, max_examples=40)
@given(st.lists(NUMBERS, min_size=2, max_size=20))
def test_lines_are_inside(values: list[float]) -> None:
    x, y = np.arange(1.0, len(values) + 1), np.array(values)
    line = Line("tuned", "x", x, y)
    charts = [
        lines_figure([("one, ms", [line]), ("two, KB", [line])], "time, ms"),
        gain_figure(x, [line], np.cumsum(y), "time, ms"),
        profile_chart({"one": np.sort(y)}, "share, %", "S"),
    ]
    for chart in charts:
        html = str(chart.html())
        for path in re.findall(r'class="line" d="([^"]*)"', html):
            heights = [float(up) for _, up in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]
            assert all(math.isfinite(up) and -1 <= up <= SIDE + 1 for up in heights)
        # every panel says what runs along it
        assert html.count('class="name x"') == len(chart.panels)
