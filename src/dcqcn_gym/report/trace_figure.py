"""The picture of a trace: one panel per quantity, the ports that matter most, the first flows."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dcqcn_gym.core.interval import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dcqcn_gym.simulate.bins import Binned, CompletionBins, FlowLines
    from dcqcn_gym.simulate.tracer import Tracer

__all__ = ["draw"]

PLOTTED_PORTS = 8
PLOTTED_WORKLOADS = 8
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
LOG_FROM = 20
"""Completion times that differ by more than this have a logarithmic axis."""
RATE_POINTS = 120
"""Sent data is a burst or nothing within a few microseconds: the line shows means."""


def draw(tracer: Tracer) -> bytes | None:
    """Return a PNG of the series, or None without one or if matplotlib is not installed."""
    panels = _panels(tracer)
    if not panels:
        return None
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return None

    with matplotlib.rc_context(STYLE):
        n = len(panels)
        figure = Figure(figsize=(10, 0.6 + 2.0 * n), layout="constrained", dpi=120)
        axes = list(figure.subplots(n, 1, sharex=True, squeeze=False)[:, 0])
        for ax, panel in zip(axes, panels, strict=True):
            panel(ax)
        axes[-1].set_xlabel("simulated time [ms]")
        out = io.BytesIO()
        figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _panels(tracer: Tracer) -> list[Callable[[Axes], None]]:
    """Return what draws each panel, from the top: ports, rates of flows, what is sent, messages."""
    ms = tracer.trace.every_ps * 1e-9
    panels = _port_panels(tracer, ms)
    if tracer.flow_rates.names:
        panels.append(partial(_flows, tracer.flow_rates, ms, "Rate of the reaction point [Gb/s]"))
    if tracer.trace.sending:
        panels.append(partial(_total, tracer.total_sending, ms))
        sent = partial(_flows, tracer.flow_sending, ms, "Sent by flows [Gb/s]", with_mean=True)
        panels.append(sent)
    if tracer.trace.completions:
        panels.append(partial(_completions, tracer.completed, ms))
    return panels


def _port_panels(tracer: Tracer, ms: float) -> list[Callable[[Axes], None]]:
    tables = {name: binned.table() for name, binned in tracer.binned.items()}
    top = _top_ports(tables)
    names = [str(tracer.trace.ports[i]) for i in top]

    def panel(name: str, ax: Axes) -> None:
        ends, mean, peak = tables[name]
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
        if name == next(iter(tables)):
            if set(tables) != {"pause"}:
                _legend(ax, names, "port")
            if hidden := len(tracer.trace.ports) - len(top):
                note = f"{hidden} quieter ports not drawn"
                ax.set_title(note, loc="right", fontweight="normal")

    return [partial(panel, name) for name in tables]


def _top_ports(tables: dict[str, tuple[FloatArray, FloatArray, FloatArray]]) -> list[int]:
    """Return the ports with the highest peaks of the first quantity that distinguishes them."""
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


def _flows(lines: FlowLines, ms: float, title: str, ax: Axes, *, with_mean: bool = False) -> None:
    ends, mean, _ = lines.binned.table()
    keys = list(lines.names)
    _lines(ax, ends * ms, mean[:, : len(keys)] * 1e-9)
    names = [f"{src}>{dst} #{ordinal}" for src, dst, ordinal in keys]
    if with_mean and lines.seen > len(keys):
        ends, mean, _ = lines.mean.table()
        ax.plot(ends * ms, mean[:, 0] * 1e-9, color="black", linewidth=0.8)
        names.append("mean of all")
        ax.autoscale(axis="y")
        ax.set_ylim(bottom=0)
    ax.set_title(title)
    _legend(ax, names, "flow")
    if lines.seen > len(keys):
        note = f"first {len(keys)} of {lines.seen} flows"
        ax.set_title(note, loc="right", fontweight="normal")


def _total(binned: Binned, ms: float, ax: Axes) -> None:
    ends, mean, _ = binned.table()
    points, means = _coarse(ends, mean)
    _lines(ax, points * ms, means * 1e-9)
    ax.set_title("Sent by all hosts [Gb/s]")


def _completions(completed: CompletionBins, ms: float, ax: Axes) -> None:
    """Draw a dot for the mean of a bin and a mark for its longest, a colour for each workload."""
    ends, mean, longest = completed.table()
    ax.set_title("Message completion time [us]: mean (dot) and longest (dash) of each period")
    drawn = [w for w in range(mean.shape[1]) if not np.all(np.isnan(mean[:, w]))]
    shown = drawn[:PLOTTED_WORKLOADS]
    for i, workload in enumerate(shown):
        ax.plot(ends * ms, mean[:, workload] * 1e-6, "o", color=f"C{i}", markersize=2.2)
        ax.plot(ends * ms, longest[:, workload] * 1e-6, "_", color=f"C{i}", markersize=4, alpha=0.6)
    if shown:
        if np.nanmax(longest) > LOG_FROM * np.nanmin(mean):
            ax.set_yscale("log")
            ax.set_title(f"{ax.get_title()}, log scale")
            ax.yaxis.set_major_formatter("{x:g}")
        else:
            ax.set_ylim(bottom=0)
        handles, names = ax.get_lines()[::2], [str(workload) for workload in shown]
        ax.legend(handles, names, title="workload", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if (hidden := len(drawn) - len(shown)) > 0:
        ax.set_title(f"{hidden} workloads not drawn", loc="right", fontweight="normal")
    ax.margins(x=0.01)
