"""A surface over two knobs as a picture: one cell per pair of values, shaded by the figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import escape

from dcqcn_gym.report.axes import FloatArray

CELL, HIGH, LEFT, TOP, GAP = 62, 26, 96, 30, 62
"""Pixels: width and height of a cell, left margin, room above and below a panel."""
DARK, LIGHT = (11, 98, 214), (233, 240, 251)
"""Colours of the largest and the smallest value."""
STYLE = (
    "text { font: 12px system-ui, sans-serif; fill: #1c2330; } .m { text-anchor: middle; } "
    ".e { text-anchor: end; } .s { fill: #566070; } .w { fill: #ffffff; } .t { font-weight: 600; }"
)


def surface_file(
    panels: Sequence[tuple[str, FloatArray]],
    across: tuple[str, Sequence[str]],
    up: tuple[str, Sequence[str]],
) -> str:
    """Return panels above each other: (title, values by place along ``up``, then ``across``).

    ``across`` and ``up`` are an axis' name and the labels of its places; ``up`` rises upwards.
    """
    width = LEFT + CELL * len(across[1]) + 16
    each = TOP + HIGH * len(up[1]) + GAP
    parts = [
        _panel(title, values, across, up, TOP + i * each)
        for i, (title, values) in enumerate(panels)
    ]
    height = each * len(panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _panel(
    title: str,
    values: FloatArray,
    across: tuple[str, Sequence[str]],
    up: tuple[str, Sequence[str]],
    top: int,
) -> str:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    rows = len(up[1])
    bottom = top + HIGH * rows
    parts = [f'<text class="t" x="{LEFT}" y="{top - 10}">{escape(title)}</text>']
    for j, label in enumerate(up[1]):
        y = bottom - HIGH * (j + 1)
        parts.append(f'<text class="e s" x="{LEFT - 8}" y="{y + 17}">{escape(label)}</text>')
        for i in range(len(across[1])):
            parts.append(_cell(float(values[j, i]), low, high, LEFT + CELL * i, y))
    for i, label in enumerate(across[1]):
        x = LEFT + CELL * i + CELL // 2
        parts.append(f'<text class="m s" x="{x}" y="{bottom + 16}">{escape(label)}</text>')
    end = LEFT + CELL * len(across[1])
    parts.append(f'<text class="e s" x="{end}" y="{bottom + 33}">{escape(across[0])}</text>')
    parts.append(f'<text class="s" x="4" y="{bottom + 33}">up: {escape(up[0])}</text>')
    return "".join(parts)


def _cell(value: float, low: float, high: float, x: int, y: int) -> str:
    if not np.isfinite(value):
        return f'<rect x="{x}" y="{y}" width="{CELL}" height="{HIGH}" fill="#f6f7fa"/>'
    share = (value - low) / (high - low) if high > low else 0.0
    colour = "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(LIGHT, DARK, strict=True))
    ink = "m w" if share > 0.55 else "m"
    return (
        f'<rect x="{x}" y="{y}" width="{CELL}" height="{HIGH}" fill="#{colour}"/>'
        f'<text class="{ink}" x="{x + CELL // 2}" y="{y + 17}">{value:.4g}</text>'
    )
