"""The plots of a figure, from its results alone, with the claim drawn in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dcqcn_gym.benchmarks.papers.figure import Against, Figure, Over
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults, Place
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.report.axes import Axis, linear_axis, log_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel

COLOURS = 8
HEIGHT = 210
LEGEND_MARK, LEGEND_LETTER = 48, 7
"""Pixels of a key in the legend beside its words, and of one letter of them."""
LEAST_GAP = 0.05
"""Between two ticks, as a share of an axis."""
CLAIM = "expert"
"""The role of the claim's lines: dashes that no row has."""

Curve = tuple[Key, FloatArray, FloatArray, FloatArray, FloatArray]
"""Key, x, mean, low end, high end; the ends are NaN where no interval is known."""


def draw(figure: Figure, results: FigureResults) -> list[str]:
    """Return every plot of the figure as an SVG, with the claim drawn in."""
    charts = [Chart([_panel(plot, results)]) for plot in figure.plots]
    for chart in charts:
        longest = max(len(key.label) for key in chart.keys)
        chart.legend_step = LEGEND_MARK + LEGEND_LETTER * longest
    return [chart.file() for chart in charts]


def _panel(plot: Against | Over, results: FigureResults) -> Panel:
    names: list[str] = []
    curves = _against(plot, results, names) if isinstance(plot, Against) else _over(plot, results)
    xs = [x for _, x, *_ in curves]
    ys = [v for _, _, *values in curves for v in values]
    levels = np.array([level for level, _ in plot.lines])
    x_axis = _axis(xs, log=plot.log_x) if not names else named_axis(names)
    if isinstance(plot, Against) and not names:
        x_axis = _at_places(x_axis, np.unique(np.concatenate(xs)))
    one_of_several = isinstance(plot, Over) and len(results.seeds) > 1
    title = f"{plot.title} (seed 1)" if one_of_several else plot.title
    panel = Panel(
        title, x_axis, _axis([*ys, levels], log=plot.log_y), HEIGHT, plot.x_label, follow=True
    )
    for key, x, mean, low, high in curves:
        panel.band(key, x, low, high, "band")
        panel.line(key, x, mean)
        if isinstance(plot, Against):
            for place, value in zip(x, mean, strict=True):
                panel.dot(key, float(place), float(value), f"{key.label}: {value:.4g}")
    for level, words in plot.lines:
        ends = np.array([x_axis.low, x_axis.high])
        panel.line(Key(CLAIM, words), ends, np.array([level, level]))
    return panel


def _axis(values: Sequence[FloatArray], *, log: bool) -> Axis:
    return log_axis(values) if log else linear_axis(values)


def _at_places(axis: Axis, places: FloatArray) -> Axis:
    """Return the axis with its ticks at what was measured, unless their labels would touch."""
    if np.any(np.diff(axis.at(places)) < LEAST_GAP):
        return axis
    return replace(axis, ticks=tuple((float(x), f"{x:g}") for x in places))


def _against(plot: Against, results: FigureResults, names: list[str]) -> list[Curve]:
    """Return a curve per row; ``names`` gets the places that are words."""
    rows = plot.rows or list(dict.fromkeys(row for row, _ in results.places))
    shown = [(row, x) for row, x in results.places if not plot.places or x in plot.places]
    words = list(dict.fromkeys(x for row, x in shown if isinstance(x, str) and row in rows))
    names.extend(words)
    curves: list[Curve] = []
    for i, row in enumerate(rows):
        places = [x for found, x in shown if found == row]
        found = [estimate(results.values(plot.measure, row, x)) for x in places]
        at = np.array([_number(x, words) for x in places])
        ends = [(e.low, e.high) if e.low is not None else (np.nan, np.nan) for e in found]
        low, high = (np.array([pair[k] for pair in ends], dtype=np.float64) for k in (0, 1))
        mean = np.array([e.mean for e in found])
        scale = plot.scale
        curves.append((Key(f"c{i % COLOURS}", row), at, mean * scale, low * scale, high * scale))
    return curves


def _number(x: Place, words: Sequence[str]) -> float:
    return float(words.index(x)) if isinstance(x, str) else float(x)


def _over(plot: Over, results: FigureResults) -> list[Curve]:
    curves: list[Curve] = []
    there = [cell for cell in plot.cells if cell in results.places]
    several = len({row for row, _ in there}) < len(there)
    for i, (row, x) in enumerate(there):
        at, values = (np.array(v) for v in results.series(plot.series, row, x))
        place = f"{x:g}" if isinstance(x, int | float) else x
        key = Key(f"c{i % COLOURS}", f"{row}, {place}" if several else row)
        nothing = np.full(at.size, np.nan)
        curves.append((key, at * plot.x_scale, values * plot.scale, nothing, nothing))
    return curves
