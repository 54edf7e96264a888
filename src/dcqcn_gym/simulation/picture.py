"""The picture of a trace: one panel per quantity, the ports that matter most, the first flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.report.axes import linear_axis, log_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.simulation.bins import Binned, CompletionBins, FlowLines
from dcqcn_gym.simulation.tracer import Tracer

PLOTTED_PORTS = 8
PLOTTED_WORKLOADS = 8
HEIGHT = 150
LOG_FROM = 20
"""Completion times that differ by more than this have a logarithmic axis."""
POINTS = 120
"""Sent data is a burst or nothing within a few microseconds: the line shows means."""


def draw(tracer: Tracer) -> Chart | None:
    """Return the series as a chart, or None if nothing was recorded that has a panel."""
    panels = list(_panels(tracer, tracer.trace.every_ps * 1e-9))
    if not panels:
        return None
    for panel in panels:
        panel.x_label = "simulated time, ms"
    return Chart(panels)


def _panels(tracer: Tracer, ms: float) -> Iterator[Panel]:
    """Return the panels from the top: ports, rates of flows, what is sent, messages."""
    yield from _port_panels(tracer, ms)
    if tracer.flow_rates.lines:
        yield _flows(tracer.flow_rates, ms, "Rate of the reaction point, Gb/s")
    if tracer.trace.sending:
        yield _total(tracer.total_sending, ms)
        yield _flows(tracer.flow_sending, ms, "Sent by flows, Gb/s", with_mean=True)
    if tracer.trace.completions:
        yield _completions(tracer.completed, ms)


def _port_panels(tracer: Tracer, ms: float) -> Iterator[Panel]:
    tables = {name: binned.table() for name, binned in tracer.binned.items()}
    top = _top_ports(tables)
    keys = _keys([f"port {tracer.trace.ports[i]}" for i in top])
    hidden = len(tracer.trace.ports) - len(top)
    note = f" ({hidden} quieter ports not drawn)" if hidden else ""
    for name, (ends, mean, peak) in tables.items():
        if name == "queue":
            yield _lines("Queue, KB" + note, keys, ends * ms, peak[:, top] * 1e-3)
        else:
            points, means = _coarse(ends, mean[:, top])
            title, unit = ("Data sent, Gb/s", 1e-9) if name == "rate" else ("Paused, %", 100)
            yield _lines(title + note, keys, points * ms, means * unit)
        note = ""


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


def _keys(labels: Sequence[str]) -> list[Key]:
    return [Key(f"c{i}", label) for i, label in enumerate(labels)]


def _lines(title: str, keys: Sequence[Key], x: FloatArray, y: FloatArray) -> Panel:
    """Return a panel with a line for each column of ``y``."""
    origin = np.zeros(1)
    across = linear_axis([origin, x], exact=True, wanted=6)
    panel = Panel(title, across, linear_axis([origin, y]), HEIGHT)
    for key, column in zip(keys, y.T, strict=True):
        panel.line(key, x, column)
    return panel


def _coarse(ends: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means over neighbouring bins, at most :data:`POINTS` of them, at their last bin."""
    step = -(-len(ends) // POINTS) or 1
    whole = len(ends) // step * step
    means: FloatArray = values[:whole].reshape(-1, step, values.shape[1]).mean(axis=1)
    return ends[step - 1 : whole : step], means


def _flows(lines: FlowLines, ms: float, title: str, *, with_mean: bool = False) -> Panel:
    ends, mean, _ = lines.binned.table()
    names = sorted(lines.names, key=lambda name: lines.names[name])
    keys = _keys([f"flow {src}>{dst} #{ordinal}" for src, dst, ordinal in names])
    values = mean[:, : len(names)] * 1e-9
    if lines.seen > len(names):
        title += f" ({len(names)} of {lines.seen} flows that live long)"
        if with_mean:
            keys.append(Key("default", "mean of all flows"))
            values = np.hstack([values, lines.mean.table()[1] * 1e-9])
    return _lines(title, keys, ends * ms, values)


def _total(binned: Binned, ms: float) -> Panel:
    ends, mean, _ = binned.table()
    points, means = _coarse(ends, mean)
    return _lines("Sent by all hosts, Gb/s", [Key("tuned", "all hosts")], points * ms, means * 1e-9)


def _completions(completed: CompletionBins, ms: float) -> Panel:
    """Return a line for the mean, and a band up to the longest, of each workload."""
    ends, mean, longest = completed.table()
    done = [w for w in range(mean.shape[1]) if not np.all(np.isnan(mean[:, w]))]
    shown = done[:PLOTTED_WORKLOADS]
    title = "Message completion time, µs: mean, and up to the longest of each period"
    if hidden := len(done) - len(shown):
        title += f" ({hidden} workloads not drawn)"
    mean, longest = mean[:, shown] * 1e-6, longest[:, shown] * 1e-6
    log = bool(shown) and bool(np.nanmax(longest) > LOG_FROM * np.nanmin(mean))
    up = log_axis([mean, longest]) if log else linear_axis([np.zeros(1), longest])
    panel = Panel(title, linear_axis([np.zeros(1), ends * ms], exact=True, wanted=6), up, HEIGHT)
    keys = _keys([f"workload {w}" for w in shown])
    for key, low, high in zip(keys, mean.T, longest.T, strict=True):
        known = ~np.isnan(low)
        x = ends[known] * ms
        panel.band(key, x, low[known], high[known], "band")
        panel.line(key, x, low[known])
    return panel
