"""Charts as SVG text, drawn here: the same bytes everywhere, and nothing to install.

The marks of a panel lie in an inner SVG of 1000 x 1000 units that stretches with the page; strokes
keep their width and text its size, so a chart is as readable on a telephone as on a wide screen.
Colours are the CSS variables of ``templates/chart.css``. ``templates/page.js`` reads the values in
``data-*`` attributes for hovering and the keys of the legend for hiding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from markupsafe import Markup, escape

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.report.axes import Axis

SIDE = 1000
"""Units of a panel's inner SVG along either axis."""
ARROW = 8.0
"""Length of an arrow's head, in the same units."""
FILE_WIDTH, FILE_LEFT, FILE_GAP = 860, 64, 64
"""Of a chart that is a file of its own, in pixels: width, left margin, room around a panel."""


@dataclass(frozen=True)
class Key:
    """One series: ``role`` picks colour and dashes (a class of ``chart.css``)."""

    role: str
    label: str


@dataclass
class Panel:
    """One plot: axes and the marks of each series, in the order in which they were drawn.

    ``height`` is in pixels. In a panel that is to be ``followed`` the pointer shows the values of
    all lines at one x; elsewhere marks have tips of their own.
    """

    title: str
    x: Axis
    y: Axis
    height: int = 150
    x_label: str = ""
    follow: bool = False
    wide_names: bool = False
    """True if the names along y need more room than numbers."""
    _marks: list[tuple[Key | None, str, str]] = field(default_factory=list)

    @property
    def room(self) -> str:
        """Classes for the room that its labels need: long names along y, many lines along x."""
        lines = max((label.count("\n") + 1 for _, label in self.x.ticks), default=0)
        below = " named" * bool(self.x_label or self.x.log)
        return " names" * self.wide_names + " deep" * (lines > 2) + below

    @property
    def heading(self) -> str:
        """The title, which says where the scale along y is logarithmic."""
        return f"{self.title} (log scale)" if self.y.log else self.title

    @property
    def keys(self) -> list[Key]:
        """The series, each once."""
        return list(dict.fromkeys(key for key, _, _ in self._marks if key is not None))

    def line(self, key: Key, x: FloatArray, y: FloatArray) -> None:
        """Draw a line, with holes where y is not known."""
        data = _data(x, y) if self.follow else ""
        self._marks.append((key, _path("line", self._points(x, y)), data))

    def values(self, key: Key, x: FloatArray, y: FloatArray) -> None:
        """Draw nothing, but let the pointer show these values."""
        self._marks.append((key, "", _data(x, y)))

    def band(self, key: Key, x: FloatArray, low: FloatArray, high: FloatArray, kind: str) -> None:
        """Fill between two lines; ``kind`` is band (faint) or area (full)."""
        known = np.isfinite(low) & np.isfinite(high)
        up, back = (self._points(x[known], y[known]) for y in (low, high))
        self._marks.append((key, _path(kind, [*up, *back[::-1]]), ""))

    def bars(self, key: Key, boxes: Sequence[tuple[float, float, float, float]]) -> None:
        """Fill rectangles, each from its first x to its second and its first y to its second."""
        words = []
        for left, right, low, high in boxes:
            a, b = (float(self.x.at(x)) * SIDE for x in (left, right))
            c, d = (SIDE - float(self.y.at(y)) * SIDE for y in (low, high))
            words.append(f"M{a:.1f} {c:.1f}H{b:.1f}V{d:.1f}H{a:.1f}Z")
        if words:
            self._marks.append((key, f'<path class="area" d="{"".join(words)}"/>', ""))

    def stem(self, key: Key, start: tuple[float, float], stop: tuple[float, float]) -> None:
        """Draw a broad faint line between two points."""
        ends = [self._points([x], [y])[0] for x, y in (start, stop)]
        self._marks.append((key, _path("stem", ends), ""))

    def span(self, key: Key, low: float, high: float, y: float) -> None:
        """Draw a broad faint line along x; an arrow at the frame says where it goes on."""
        first, last = max(low, self.x.low), min(high, self.x.high)
        if first < last:
            self.stem(key, (first, y), (last, y))
        edges = ((low < first, 0.0, ARROW), (high > last, float(SIDE), SIDE - ARROW))
        up, tip, down = (SIDE - float(self.y.at(y + d)) * SIDE for d in (-0.25, 0.0, 0.25))
        for cut, end, back in edges:
            if cut:
                head = [(back, up), (end, tip), (back, down)]
                self._marks.append((key, _path("line arrow", head), ""))

    def dot(
        self, key: Key, x: float, y: float, tip: str, *, hollow: bool = False, link: str = "",
        size: float = 0,
    ) -> None:  # fmt: skip
        """Draw a dot with words for who points at it; nothing where x or y is not known.

        With a ``link`` the dot leads there, and the keyboard reaches it. ``size`` is the diameter
        in pixels, if it is not that of all dots.
        """
        (at,) = self._points([x], [y])
        if at is None:
            return
        mark = _path("dot", [at, at], tip)
        if size:
            mark = mark.replace("<path", f'<path style="stroke-width:{size:g}px"', 1)
        if link:
            mark = f'<a href="{escape(link)}" aria-label="{escape(tip)}">{mark}</a>'
        self._marks.append((key, mark + (_path("hole", [at, at]) if hollow else ""), ""))

    def rule(self, *, x: float | None = None, y: float | None = None) -> None:
        """Draw a straight line over the whole panel at one x or y."""
        if x is not None:
            place = float(self.x.at(x)) * SIDE
            ends = [(place, 0.0), (place, float(SIDE))]
        else:
            place = SIDE - float(self.y.at(0.0 if y is None else y)) * SIDE
            ends = [(0.0, place), (float(SIDE), place)]
        self._marks.append((None, _path("rule", list(ends)), ""))

    def _points(
        self, x: FloatArray | Sequence[float], y: FloatArray | Sequence[float]
    ) -> list[tuple[float, float] | None]:
        across, up = self.x.at(x) * SIDE, SIDE - self.y.at(y) * SIDE
        known = np.isfinite(across) & np.isfinite(up)
        return [
            (float(a), float(b)) if ok else None for a, b, ok in zip(across, up, known, strict=True)
        ]

    def svg(self, keys: Sequence[Key], place: str = "") -> str:
        """Return the panel with these series; ``place``: attributes of a panel inside a file."""
        scales = "".join(
            f' data-{name}="{axis.low!r} {axis.high!r} {int(axis.log)}"'
            for name, axis in (("xs", self.x), ("ys", self.y))
        )
        marks = []
        for key, mark, data in self._marks:
            if key is None:
                marks.append(mark)
            elif key in keys:
                at = f'class="series {key.role}" data-key="{keys.index(key)}"'
                marks.append(f"<g {at}{data}>{mark}</g>")
        follow = ' data-follow="1"' if self.follow else ""
        place = place or f' style="height:{self.height}px"'
        role = "group" if any("<a " in mark for _, mark, _ in self._marks) else "img"
        return (
            f'<svg class="panel" role="{role}" aria-label="{escape(self.heading)}"'
            f"{place}>{self._grid()}"
            f'<svg class="marks" width="100%" height="100%" viewBox="0 0 {SIDE} {SIDE}" '
            f'preserveAspectRatio="none"{scales}{follow}>{"".join(marks)}</svg></svg>'
        )

    def _grid(self) -> str:
        parts = []
        for value, label in self.y.ticks:
            at = f"{100 - 100 * float(self.y.at(value)):.2f}%"
            parts.append(f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>')
            if label:
                parts.append(
                    f'<text class="tick y" x="-8" y="{at}" dy=".32em">{escape(label)}</text>'
                )
        for value, label in self.x.ticks:
            at = f"{100 * float(self.x.at(value)):.2f}%"
            parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="100%"/>')
            words = label.split("\n") if label else []
            for i, word in enumerate(words):
                dy = 1.4 + 1.15 * i
                parts.append(
                    f'<text class="tick x" x="{at}" y="100%" dy="{dy:.2f}em">{escape(word)}</text>'
                )
        name = ", ".join(filter(None, (self.x_label, "log scale" * self.x.log)))
        if name:
            parts.append(f'<text class="name x" x="100%" y="100%" dy="2.7em">{escape(name)}</text>')
        return "".join(parts)


def _broken(title: str) -> Markup:
    """Return a title whose long names may go on in the next line behind an underscore."""
    return escape(title).replace("_", Markup("_<wbr>"))


def _data(x: FloatArray, y: FloatArray) -> str:
    """Return the known points as attributes, for the page's script."""
    known = np.isfinite(x) & np.isfinite(y)
    columns = {"x": x[known], "y": y[known]}
    return "".join(
        f' data-{name}="{" ".join(format(v, ".5g") for v in values)}"'
        for name, values in columns.items()
    )


def _path(kind: str, points: Sequence[tuple[float, float] | None], tip: str = "") -> str:
    """Return a path through the points, in pieces where one is missing."""
    words, begun = [], False
    for point in points:
        if point is not None:
            words.append(f"{'L' if begun else 'M'}{point[0]:.1f} {point[1]:.1f}")
        begun = point is not None
    more = f' data-tip="{escape(tip)}"' if tip else ""
    return f'<path class="{kind}" d="{"".join(words)}"{more}/>'


@dataclass
class Chart:
    """Panels with one legend; ``columns`` > 1 sets them side by side where there is room."""

    panels: list[Panel]
    columns: int = 1
    hidden: Sequence[Key] = ()
    """Series that are shown only once somebody asks for them."""
    legend_step: int = 130
    """Pixels from one key of the legend to the next, of a chart that is a file."""
    title: str = ""
    """What a file says above everything; a page has headings for it."""

    @property
    def keys(self) -> list[Key]:
        """Every series of every panel, each once."""
        return list(dict.fromkeys(key for panel in self.panels for key in panel.keys))

    def _sample(self, key: Key) -> str:
        """Return what the legend shows of a series: a box where it is filled, else its line."""
        marks = [mark for panel in self.panels for k, mark, _ in panel._marks if k == key]
        filled = any('class="area"' in mark for mark in marks)
        kind, way = ("area", "1H23V9H1Z") if filled else ("line", "5H23")
        return f'<path class="{kind}" d="M1 {way}"/>'

    def html(self) -> Markup:
        """Return legend and panels for a page that includes ``chart.css``."""
        keys = self.keys
        buttons = [
            f'<button type="button" class="key {key.role}" data-key="{i}" '
            f'aria-pressed="{"false" if key in self.hidden else "true"}">'
            f'<svg viewBox="0 0 24 10">{self._sample(key)}</svg>{escape(key.label)}'
            "</button>"
            for i, key in enumerate(keys)
        ]
        legend = f'<div class="legend">{"".join(buttons)}</div>' if len(keys) > 1 else ""
        panels = "".join(
            f'<div class="plot{panel.room}">'
            f'<p class="head">{_broken(panel.heading)}</p>{panel.svg(keys)}</div>'
            for panel in self.panels
        )
        side = " many" if self.columns > 1 else ""
        return Markup(f'<div class="chart{side}">{legend}{panels}</div>')  # every text is escaped

    def file(self) -> str:
        """Return the chart as a file of its own, in light colours, without hidden series."""
        keys = [key for key in self.keys if key not in self.hidden]
        parts, at = [], 12.0
        if self.title:
            parts.append(f'<text class="title" x="{FILE_LEFT}" y="16">{escape(self.title)}</text>')
            at += 18
        if len(keys) > 1:
            across = (FILE_WIDTH - FILE_LEFT) // self.legend_step
            for i, key in enumerate(keys):
                x = FILE_LEFT + self.legend_step * (i % across)
                parts.append(
                    f'<svg x="{x}" y="{at + 18 * (i // across):g}" width="24" height="10" '
                    f'class="series {key.role}">{self._sample(key)}</svg>'
                    f'<text class="legend" x="{x + 30}" y="{at + 9 + 18 * (i // across):g}">'
                    f"{escape(key.label)}</text>"
                )
            at += 18 * (1 + (len(keys) - 1) // across)
        wide = max((panel.wide_names for panel in self.panels), default=False)
        left = FILE_LEFT + (80 if wide else 0)
        each = (FILE_WIDTH - 16) / self.columns
        for first in range(0, len(self.panels), self.columns):
            row = self.panels[first : first + self.columns]
            for i, panel in enumerate(row):
                begin, top = left + i * each, at + 26
                said = f'class="title" x="{begin:g}" y="{top - 9:g}"'
                parts.append(f"<text {said}>{escape(panel.heading)}</text>")
                place = (f' x="{begin:g}" y="{top:g}" width="{each - left - 8:g}" '
                         f'height="{panel.height}" overflow="visible"')  # fmt: skip
                parts.append(panel.svg(keys, place))
            at += max(panel.height for panel in row) + FILE_GAP
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{FILE_WIDTH}" height="{at:g}" '
            f'viewBox="0 0 {FILE_WIDTH} {at:g}"><style>{file_css()}</style>'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
        )


@cache
def file_css(name: str = "chart") -> str:
    """Return rules of charts in light colours, for programs that know no CSS variables."""
    folder = Path(__file__).parent / "templates"
    light = (folder / "colours.css").read_text(encoding="utf-8").partition("@media")[0]
    colours = dict(re.findall(r"--(\w+): ([^;]+);", light))
    rules = (folder / f"{name}.css").read_text(encoding="utf-8")
    return re.sub(r"var\(--(\w+)\)", lambda name: colours[name[1]], rules)
