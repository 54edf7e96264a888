"""The report's figures: matplotlib SVG that takes its colours and fonts from the page around it.

matplotlib is the ``[report]`` extra. Every function returns SVG text for embedding in HTML.
Colours are place-holders that become CSS variables, so one file looks right on a light and on a
dark screen.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import MissingExtraError
from dcqcn_gym.core.statistics import SlowdownRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Line",
    "fsd_figure",
    "gain_figure",
    "have_matplotlib",
    "lines_figure",
    "slowdown_figure",
    "styled",
    "svg",
]

FloatArray = npt.NDArray[np.float64]

# place-holder colour -> CSS variable of the page
CSS: Mapping[str, str] = {
    "#010101": "var(--ink)",
    "#020202": "var(--faint)",
    "#030303": "var(--grid)",
    "#040404": "var(--tuned)",
    "#050505": "var(--default)",
    "#060606": "var(--expert)",
    "#070707": "var(--elephants)",
    "#080808": "var(--potential)",
    "#090909": "var(--mice)",
}
COLOUR = {value[6:-1]: key for key, value in CSS.items()}

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dcqcn-gym",
    "text.parse_math": False,  # a name may hold a dollar sign
    "font.size": 8.5,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOUR["faint"],
    "axes.labelcolor": COLOUR["ink"],
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": COLOUR["ink"],
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": COLOUR["grid"],
    "grid.linewidth": 0.6,
    "text.color": COLOUR["ink"],
    "xtick.color": COLOUR["faint"],
    "ytick.color": COLOUR["faint"],
    "xtick.labelcolor": COLOUR["ink"],
    "ytick.labelcolor": COLOUR["ink"],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Line:
    """One curve: ``role`` is tuned, default or expert and picks the colour."""

    role: str
    label: str
    x: FloatArray
    y: FloatArray


def have_matplotlib() -> bool:
    """Return True if figures can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def _figure(rows: int, height: float, **kwargs: Any) -> tuple[Figure, list[Axes]]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing figures", "report") from None
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False, **kwargs)[:, 0]
    return figure, list(axes)


def svg(figure: Figure) -> str:
    """Return the figure as an inline SVG element in the page's colours and font."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1">', text, count=1)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", text)
    text = re.sub(r"(?<=\d\.\d\d)\d+", "", text)  # 1/100 of a point is fine enough
    for place_holder, variable in CSS.items():
        text = text.replace(place_holder, variable)
    return text


def styled() -> Any:
    """Return a context in which figures are drawn in the page's style."""
    import matplotlib as mpl

    return mpl.rc_context(STYLE)


def lines_figure(panels: Sequence[tuple[str, Sequence[Line]]], x_label: str, height: float) -> str:
    """Draw panels ``(title with unit, lines)`` above each other over one x axis."""
    if not have_matplotlib():
        raise MissingExtraError("drawing figures", "report")
    with styled():
        figure, axes = _figure(len(panels), height)
        for ax, (title, lines) in zip(axes, panels, strict=True):
            ax.set_title(title)
            for line in lines:
                ax.plot(
                    line.x,
                    line.y,
                    color=COLOUR[line.role],
                    label=line.label,
                    linewidth=1.5 if line.role == "tuned" else 1.1,
                    zorder=3 if line.role == "tuned" else 2,
                )
            ax.set_xlim(0, max((float(s.x[-1]) for s in lines if len(s.x)), default=1.0) * 1.01)
        axes[-1].set_xlabel(x_label)
        _legend(figure, axes[0])
        return svg(figure)


def gain_figure(x: FloatArray, lines: Sequence[Line], gain: FloatArray, x_label: str) -> str:
    """Draw utility per interval, and below it the running mean gain over the default."""
    with styled():
        figure, axes = _figure(2, 4.6, height_ratios=[2.2, 1])
        axes[0].set_title("Utility per interval")
        for line in lines:
            axes[0].plot(line.x, line.y, color=COLOUR[line.role], label=line.label)
        axes[1].set_title("Gain over the default since the start (mean of all intervals so far)")
        axes[1].axhline(0, color=COLOUR["default"], linewidth=1)
        axes[1].plot(x, gain, color=COLOUR["tuned"], linewidth=1.6)
        axes[1].fill_between(x, gain, 0, color=COLOUR["tuned"], alpha=0.15, linewidth=0)
        axes[1].set_xlabel(x_label)
        axes[1].set_xlim(0, float(x[-1]) * 1.01 if len(x) else 1)
        _legend(figure, axes[0])
        return svg(figure)


def fsd_figure(x: FloatArray, shares: Mapping[str, FloatArray], x_label: str) -> str:
    """Draw shares of elephants, potential elephants and mice as stacked areas, in percent."""
    roles = ("elephants", "potential", "mice")
    labels = ("elephants", "potential elephants", "mice")
    with styled():
        figure, (ax,) = _figure(1, 2.4)
        ax.set_title("Active flows by state, % of flows")
        ax.stackplot(
            x,
            *(100 * shares[role] for role in roles),
            colors=[COLOUR[role] for role in roles],
            labels=labels,
            linewidth=0,
        )
        ax.set_ylim(0, 100)
        ax.set_xlim(0, float(x[-1]) * 1.01)
        ax.set_xlabel(x_label)
        _legend(figure, ax)
        return svg(figure)


def slowdown_figure(rows: Mapping[str, tuple[str, Sequence[SlowdownRow]]]) -> str:
    """Draw p50 (hollow) and p99 (full) slowdown by size bin; ``rows``: role -> (label, rows)."""
    from matplotlib.ticker import LogLocator, NullLocator

    with styled():
        figure, (ax,) = _figure(1, 2.9)
        ax.set_title("FCT slowdown by flow size: median (hollow) to p99 (full)")
        first = next(iter(rows.values()))[1]
        kept = [i for i, row in enumerate(first) if any(r[1][i].count for r in rows.values())]
        for k, (role, (label, table)) in enumerate(rows.items()):
            at = np.arange(len(kept)) + (k - (len(rows) - 1) / 2) * 0.2
            low = [table[i].p50 for i in kept]
            high = [table[i].p99 for i in kept]
            colour = COLOUR[role]
            ax.vlines(at, low, high, color=colour, linewidth=2, alpha=0.45)
            ax.plot(at, low, "o", mfc="none", mec=colour, markersize=5)
            ax.plot(at, high, "o", color=colour, markersize=5.5, label=label)
        ax.set_yscale("log")
        bottom, top = ax.get_ylim()
        subs = (1, 2, 5) if top > 8 * bottom else (1, 1.2, 1.5, 2, 3, 5, 7)
        ax.yaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_xticks(range(len(kept)), [first[i].bin.label for i in kept])
        ax.grid(axis="x", visible=False)
        _legend(figure, ax)
        return svg(figure)


def _legend(figure: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), fontsize=8.5)
