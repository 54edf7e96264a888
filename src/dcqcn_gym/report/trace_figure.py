"""The picture of a trace: one panel per quantity, the ports that matter most."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from dcqcn_gym.core.interval import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dcqcn_gym.simulate.tracer import Tracer

__all__ = ["draw"]

PLOTTED_PORTS = 8
STYLE: Any = {
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "legend.frameon": False,
}
RATE_POINTS = 120
"""Sent data is a burst or nothing within a few microseconds: the line shows means."""


def draw(tracer: Tracer) -> bytes | None:
    """Return a PNG of the series, or None without one or if matplotlib is not installed."""
    if not tracer.binned:
        return None
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return None

    tables = {name: binned.table() for name, binned in tracer.binned.items()}
    top = _top_ports(tables)
    flows = len(tracer.plotted_flows) > 0
    with matplotlib.rc_context(STYLE):
        n = len(tables) + flows
        figure = Figure(figsize=(10, 0.6 + 2.0 * n), layout="constrained", dpi=120)
        axes = list(figure.subplots(n, 1, sharex=True, squeeze=False)[:, 0])
        ms = tracer.trace.every_ps * 1e-9
        names = [str(tracer.trace.ports[i]) for i in top]
        for ax, (name, (ends, mean, peak)) in zip(axes, tables.items(), strict=False):
            if name == "queue":
                _lines(ax, ends * ms, peak[:, top] * 1e-3)
                ax.set_title("Queue [KB]")
            elif name == "rate":
                points, means = _coarse(ends, mean[:, top])
                _lines(ax, points * ms, means * 1e-9)
                ax.set_title("Data sent [Gb/s]")
            else:
                _strips(ax, ends * ms, mean[:, top], names)
                ax.set_title("Paused (darker: more of the time)")
        if set(tables) != {"pause"}:
            _legend(axes[0], names, "port")
        hidden = len(tracer.trace.ports) - len(top)
        if hidden:
            axes[0].set_title(f"{hidden} quieter ports not drawn", loc="right", fontweight="normal")
        if flows:
            _flows(axes[-1], tracer, ms)
        axes[-1].set_xlabel("simulated time [ms]")
        out = io.BytesIO()
        figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _top_ports(tables: dict[str, tuple[FloatArray, FloatArray, FloatArray]]) -> list[int]:
    """Return the ports with the highest peaks of the first quantity that tells them apart."""
    score = np.zeros(0)
    for name in ("queue", "pause", "rate"):
        if name in tables and tables[name][2].size:
            score = np.max(tables[name][2], axis=0)
            if np.any(score > 0):
                break
    order = np.argsort(-score, kind="stable")[:PLOTTED_PORTS]
    return sorted(order.tolist())


def _lines(ax: Axes, x: FloatArray, y: FloatArray) -> None:
    for i in range(y.shape[1]):
        ax.plot(x, y[:, i], color=f"C{i}")
    ax.set_ylim(bottom=0)
    ax.margins(x=0.01)


def _coarse(ends: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means over neighbouring bins, at most RATE_POINTS of them, at their last bin."""
    step = -(-len(ends) // RATE_POINTS) or 1
    whole = len(ends) // step * step
    means: FloatArray = values[:whole].reshape(-1, step, values.shape[1]).mean(axis=1)
    return ends[step - 1 : whole : step], means


def _strips(ax: Axes, x: FloatArray, y: FloatArray, names: list[str]) -> None:
    """Draw one row per port, darker the larger its share of paused time."""
    if len(x):
        edges = np.concatenate([[0.0], x])
        rows = np.arange(len(names) + 1) - 0.5
        ax.pcolormesh(edges, rows, y.T, cmap="Greys", vmin=0, vmax=1, rasterized=True)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.margins(x=0.01)


def _legend(ax: Axes, names: list[str], title: str) -> None:
    if names:
        ax.legend(ax.get_lines(), names, title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _flows(ax: Axes, tracer: Tracer, ms: float) -> None:
    ends, mean, _ = tracer.binned_flows.table()
    keys = list(tracer.plotted_flows)
    _lines(ax, ends * ms, mean[:, : len(keys)] * 1e-9)
    seen = tracer.seen_flows
    ax.set_title("Rate of the reaction point [Gb/s]")
    _legend(ax, [f"{src}>{dst} #{ordinal}" for src, dst, ordinal in keys], "flow")
    if seen > len(keys):
        ax.set_title(f"first {len(keys)} of {seen} flows", loc="right", fontweight="normal")
