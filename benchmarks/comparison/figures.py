"""The figures of a comparison: utility against intervals with bands, and final utility as dots."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.comparison.results import Row, moving_mean
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.report.figures import COLOUR, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["curve", "dots_figure", "standalone", "utility_figure"]

FloatArray = npt.NDArray[np.float64]

COLUMNS = 4
LIGHT: Mapping[str, str] = {
    "ink": "#1c2330",
    "faint": "#9aa3b2",
    "grid": "#e6e9ef",
    "tuned": "#0b62d6",
    "default": "#737c8c",
    "expert": "#d0600a",
    "font": "system-ui, 'Segoe UI', Roboto, Arial, sans-serif",
}


def curve(row: Row) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, low and high of the smoothed utility per interval, over the seeds.

    Where a seed's interval was idle its last value is kept, so that the curve has no holes.
    """
    n = max(len(f.utility) for f in row.figures)
    matrix = np.full((len(row.figures), n), np.nan)
    for line, figures in zip(matrix, row.figures, strict=True):
        line[: len(figures.utility)] = _held(moving_mean(figures.utility))
    mean, low, high = (np.full(n, np.nan) for _ in range(3))
    for i in range(n):
        at = estimate(matrix[:, i])
        mean[i] = at.mean
        low[i] = at.mean if at.low is None else at.low
        high[i] = at.mean if at.high is None else at.high
    return mean, low, high


def _held(values: FloatArray) -> FloatArray:
    known = np.where(np.isnan(values), 0, np.arange(len(values)))
    return np.asarray(values[np.maximum.accumulate(known)], dtype=np.float64)


def utility_figure(rows: Sequence[Row]) -> str:
    """Draw one small panel per tuner: its curve with band over the default's."""
    from matplotlib.figure import Figure

    drawn = [row for row in rows if row.seeds]
    default = next((row for row in drawn if row.tuner == "default"), None)
    lines = math.ceil(len(drawn) / COLUMNS)
    with styled():
        figure = Figure(figsize=(10, 0.5 + 1.55 * lines), layout="constrained")
        grid = figure.subplots(lines, COLUMNS, sharex=True, sharey=True, squeeze=False)
        grid[0, 0].set_ylim(*_limits([curve(row)[0] for row in drawn]))
        for ax in grid.flat[len(drawn) :]:
            ax.set_visible(False)
        for ax, row in zip(grid.flat, drawn, strict=False):
            _panel(ax, row, default)
        for ax in grid.flat[max(0, len(drawn) - COLUMNS) : len(drawn)]:
            ax.tick_params(labelbottom=True)
        figure.supxlabel("interval", fontsize=8.5)
        return svg(figure)


def _limits(values: Sequence[FloatArray]) -> tuple[float, float]:
    """Return axis limits around the means: with two seeds an interval is wider than any axis."""
    known = np.concatenate([v[~np.isnan(v)] for v in values])
    low, high = float(known.min()), float(known.max())
    margin = 0.15 * (high - low) or 0.01
    return low - margin, high + margin


def _panel(ax: Axes, row: Row, default: Row | None) -> None:
    ax.set_title(row.tuner, fontsize=8.5)
    if default is not None and default is not row:
        mean, _, _ = curve(default)
        ax.plot(np.arange(1, len(mean) + 1), mean, color=COLOUR["default"], linewidth=0.9)
    mean, low, high = curve(row)
    x = np.arange(1, len(mean) + 1)
    colour = COLOUR["default"] if row.tuner == "default" else COLOUR["tuned"]
    ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(x, mean, color=colour, linewidth=1.3)


def dots_figure(rows: Sequence[Row]) -> str:
    """Draw final utility (full, with interval) and online utility (hollow) per tuner."""
    from matplotlib.figure import Figure

    drawn = [row for row in rows if row.seeds][::-1]
    with styled():
        figure = Figure(figsize=(10, 0.8 + 0.22 * len(drawn)), layout="constrained")
        ax = figure.subplots()
        at = np.arange(len(drawn))
        for y, row in zip(at, drawn, strict=True):
            colour = COLOUR["default"] if row.tuner == "default" else COLOUR["tuned"]
            if row.final.low is not None and row.final.high is not None:
                ax.hlines(y, row.final.low, row.final.high, color=colour, linewidth=2, alpha=0.45)
            ax.plot(row.final.mean, y, "o", color=colour, markersize=5)
            ax.plot(row.online.mean, y, "o", mfc="none", mec=colour, markersize=5)
            if row.tuner == "default":
                ax.axvline(row.final.mean, color=COLOUR["default"], linewidth=0.8, zorder=0)
        ax.set_yticks(at, [row.tuner for row in drawn])
        ax.set_ylim(-0.6, len(drawn) - 0.4)
        means = [np.array([row.final.mean, row.online.mean]) for row in drawn]
        ax.set_xlim(*_limits(means))
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("mean utility: final on fresh traffic (full), online (hollow)")
        return svg(figure)


def standalone(figure: str) -> str:
    """Return an inline figure as a file of its own, in light colours on white."""
    text = re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], figure)
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'style="background:#ffffff"'
    )
    return text.replace("<svg", head, 1) + "\n"
