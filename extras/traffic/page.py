"""A page on traffic: sizes, load over time, who talks to whom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.extras.traffic.fitting import Fit, Traffic
from dcqcn_gym.report.axes import linear_axis, log_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.render import render
from dcqcn_gym.runs.table import Table, number

BINS = 240
"""Points of the load over time."""
MOST_SIDE = 16
"""Hosts, or groups of hosts with neighbouring numbers, along a side of the matrix."""


def traffic_tables(traffic: Traffic, fit: Fit) -> list[Table]:
    """Return the figures of the traffic, one a row."""
    offered = float(traffic.bytes.sum()) * 8 / traffic.seconds / len(fit.senders)
    low, middle, high = (int(v) for v in np.quantile(traffic.bytes, (0.5, 0.99, 1.0)))
    rows = [
        ("flows", f"{traffic.bytes.size}"),
        ("hosts that send, that receive", f"{len(fit.senders)}, {len(fit.receivers)}"),
        ("time from the first start to the last, s", number(traffic.seconds)),
        ("payload, GB", number(float(traffic.bytes.sum()) * 1e-9)),
        ("payload per sending host, Gb/s", number(offered * 1e-9)),
        ("size: median, 99th percentile, largest, bytes", f"{low}, {middle}, {high}"),
        ("flows to one host at once: mean of hosts, most", f"{fit.incast:.3g}, {fit.most_incast}"),
        ("bytes of the busiest tenth of all pairs", f"{fit.pair_share:.1%}"),
    ]
    rows += [
        (f"arrivals in {width:g} us: variance over mean (Poisson: 1)", number(dispersion))
        for width, dispersion in fit.dispersion
    ]
    return [Table(("figure", "value"), rows)]


def traffic_page(title: str, traffic: Traffic, fit: Fit, notes: Sequence[str]) -> bytes:
    """Return the page; ``notes`` are what was left out when the file was read."""
    charts = [Chart([_sizes(traffic)]).html(), Chart([_load(traffic)]).html()]
    labels, shares = _matrix(traffic)
    return render(
        "traffic.html.j2", title=title, notes=list(notes), tables=traffic_tables(traffic, fit),
        sizes=charts[0], load=charts[1], labels=labels, shares=shares,
    )  # fmt: skip


def _sizes(traffic: Traffic) -> Panel:
    order = np.sort(traffic.bytes) / 1000.0
    places = np.unique(np.linspace(0, order.size - 1, 400).astype(np.int64))
    by_flows = (places + 1) / order.size
    sums = np.cumsum(order)
    by_bytes = sums[places] / sums[-1]
    panel = Panel(
        "Share of flows, and of bytes, up to a size", log_axis([order[places]]),
        linear_axis([np.array([0.0, 1.0])], exact=True), height=240, x_label="KB", follow=True,
    )  # fmt: skip
    panel.line(Key("tuned", "flows"), order[places], by_flows)
    panel.line(Key("default", "bytes"), order[places], by_bytes)
    return panel


def _load(traffic: Traffic) -> Panel:
    edges = np.linspace(float(traffic.start_ns[0]), float(traffic.start_ns[-1]), BINS + 1)
    weights = traffic.bytes.astype(np.float64)
    sums, _ = np.histogram(traffic.start_ns, bins=edges, weights=weights)
    width_s = (edges[1] - edges[0]) * 1e-9
    at: FloatArray = (edges[:-1] - edges[0]) * 1e-9 + width_s / 2
    offered = sums * 8e-9 / width_s
    panel = Panel(
        "Payload that begins, Gb/s", linear_axis([np.zeros(1), at], exact=True, wanted=6),
        linear_axis([np.zeros(1), offered]), height=200, x_label="s after the first flow",
        follow=True,
    )  # fmt: skip
    panel.line(Key("tuned", "all hosts"), at, offered)
    return panel


def _matrix(traffic: Traffic) -> tuple[list[str], list[list[float]]]:
    """Return labels of hosts, or of groups with neighbouring numbers, and shares of all bytes."""
    hosts = np.union1d(traffic.src, traffic.dst)
    width = -(-hosts.size // MOST_SIDE)
    groups = np.split(hosts, range(width, hosts.size, width))
    group_of = np.concatenate([np.full(g.size, i) for i, g in enumerate(groups)])
    src, dst = (group_of[np.searchsorted(hosts, ends)] for ends in (traffic.src, traffic.dst))
    side = len(groups)
    sums = np.bincount(src * side + dst, traffic.bytes.astype(np.float64), side * side)
    labels = [f"h{g[0]}" if g.size == 1 else f"h{g[0]}–h{g[-1]}" for g in groups]
    return labels, (sums.reshape(side, side) / sums.sum()).tolist()
