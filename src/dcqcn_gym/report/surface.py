"""A surface over two knobs as a picture: one cell per pair of values, shaded by the figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import escape

from dcqcn_gym.core.interval import FloatArray

CELL, HIGH, LEFT, TOP, GAP, SCALE = 72, 26, 96, 30, 84, 120
"""Pixels: width and height of a cell, left margin, room above and below a panel, its scale."""
DARK, LIGHT = (11, 98, 214), (233, 240, 251)
"""Colours of the best and the worst value."""
STYLE = (
    "text { font: 12px system-ui, sans-serif; fill: #1c2330; } .m { text-anchor: middle; } "
    ".e { text-anchor: end; } .s { fill: #566070; } .w { fill: #ffffff; } .t { font-weight: 600; }"
)


@dataclass(frozen=True)
class Surface:
    """A figure by place along ``up``, then ``across``."""

    title: str
    values: FloatArray
    better: int
    """-1 where less is better: dark is good, or more where neither is (0)."""
    even: npt.NDArray[np.bool_]
    """Where the difference from the best may be chance: marked by ≈."""


def surface_file(
    title: str,
    panels: Sequence[Surface],
    across: tuple[str, Sequence[str]],
    up: tuple[str, Sequence[str]],
) -> str:
    """Return panels above each other, each with its scale.

    ``across`` and ``up`` are an axis' name and the labels of its places; ``up`` rises upwards.
    """
    width = max(LEFT + CELL * len(across[1]) + 64, LEFT + 7 * len(title))
    each = TOP + HIGH * len(up[1]) + GAP
    parts = [
        f'<text class="t" x="{LEFT}" y="18">{escape(title)}</text>',
        '<defs><linearGradient id="scale">'
        f'<stop offset="0" stop-color="{_colour(0)}"/><stop offset="1" stop-color="{_colour(1)}"/>'
        "</linearGradient></defs>",
        *(_panel(one, across, up, TOP + 22 + i * each) for i, one in enumerate(panels)),
    ]
    height = each * len(panels) + 22
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _panel(
    one: Surface, across: tuple[str, Sequence[str]], up: tuple[str, Sequence[str]], top: int
) -> str:
    known = one.values[np.isfinite(one.values)]
    ends = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    worst, best = ends[::-1] if one.better < 0 else ends
    bottom = top + HIGH * len(up[1])
    parts = [f'<text class="t" x="{LEFT}" y="{top - 10}">{escape(one.title)}</text>']
    for j, label in enumerate(up[1]):
        y = bottom - HIGH * (j + 1)
        parts.append(f'<text class="e s" x="{LEFT - 8}" y="{y + 17}">{escape(label)}</text>')
        for i in range(len(across[1])):
            value, even = float(one.values[j, i]), bool(one.even[j, i])
            share = (value - worst) / (best - worst) if best != worst else 0.0
            parts.append(_cell(value, share, even, LEFT + CELL * i, y))
    for i, label in enumerate(across[1]):
        x = LEFT + CELL * i + CELL // 2
        parts.append(f'<text class="m s" x="{x}" y="{bottom + 16}">{escape(label)}</text>')
    end = LEFT + CELL * len(across[1])
    parts.append(f'<text class="e s" x="{end}" y="{bottom + 33}">{escape(across[0])} →</text>')
    parts.append(f'<text class="s" x="4" y="{bottom + 33}">↑ {escape(up[0])}</text>')
    at, x = bottom + 50, end - SCALE
    parts.append(f'<rect x="{x}" y="{at - 9}" width="{SCALE}" height="10" fill="url(#scale)"/>')
    parts.append(f'<text class="e s" x="{x - 6}" y="{at}">{worst:.4g}</text>')
    parts.append(f'<text class="s" x="{end + 6}" y="{at}">{best:.4g}</text>')
    return "".join(parts)


def _colour(share: float) -> str:
    mixed = (round(a + share * (b - a)) for a, b in zip(LIGHT, DARK, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _cell(value: float, share: float, even: bool, x: int, y: int) -> str:
    if not np.isfinite(value):
        return f'<rect x="{x}" y="{y}" width="{CELL}" height="{HIGH}" fill="#f6f7fa"/>'
    ink = "m w" if share > 0.55 else "m"
    return (
        f'<rect x="{x}" y="{y}" width="{CELL}" height="{HIGH}" fill="{_colour(share)}"/>'
        f'<text class="{ink}" x="{x + CELL // 2}" y="{y + 17}">{"≈ " * even}{value:.4g}</text>'
    )
