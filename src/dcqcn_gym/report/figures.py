"""The report's figures, as charts of :mod:`dcqcn_gym.report.chart`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.statistics import SlowdownRow
from dcqcn_gym.report.axes import linear_axis, log_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.runs.table import times

STATES = {"elephants": "elephants", "potential": "potential elephants", "mice": "mice"}


@dataclass(frozen=True)
class Line:
    """One curve: ``role`` is tuned, default or expert and picks colour and dashes."""

    role: str
    label: str
    x: FloatArray
    y: FloatArray

    @property
    def key(self) -> Key:
        """The curve in the legend."""
        return Key(self.role, self.label)


def _panel(title: str, lines: Sequence[Line], x_label: str, height: int) -> Panel:
    origin = np.zeros(1)
    x = linear_axis([origin, *(line.x for line in lines)], exact=True, wanted=6)
    y = linear_axis([line.y for line in lines])
    panel = Panel(title, x, y, height, x_label, follow=True)
    for line in lines:
        panel.line(line.key, line.x, line.y)
    return panel


def lines_figure(
    panels: Sequence[tuple[str, Sequence[Line]]], x_label: str, height: int = 130
) -> Chart:
    """Draw panels ``(title with unit, lines)`` above each other; ``height`` of each in pixels."""
    return Chart([_panel(title, lines, x_label, height) for title, lines in panels])


def gain_figure(x: FloatArray, lines: Sequence[Line], gain: FloatArray, x_label: str) -> Chart:
    """Draw utility per interval, and below it the running mean gain over the default."""
    tuned = next(line for line in lines if line.role == "tuned")
    above = _panel("Utility per interval", lines, x_label, 210)
    axis = linear_axis([gain, np.zeros(1)], wanted=3)
    below = Panel(
        "Gain over the default since the start (mean so far; below 0 is worse)",
        above.x, axis, 100, x_label, follow=True,
    )  # fmt: skip
    below.rule(y=0.0)
    below.band(tuned.key, x, np.zeros(len(x)), gain, "band")
    below.line(tuned.key, x, gain)
    return Chart([above, below])


def fsd_figure(x: FloatArray, shares: Mapping[str, FloatArray], x_label: str) -> Chart:
    """Draw shares of elephants, potential elephants and mice as stacked areas, in percent."""
    ends = linear_axis([np.zeros(1), x], exact=True, wanted=6)
    full = linear_axis([np.array([0.0, 100.0])], exact=True, wanted=4)
    panel = Panel("Active flows by state, % of flows", ends, full, 150, x_label, follow=True)
    low = np.zeros(len(x))
    for role, label in STATES.items():
        share = 100 * shares[role]
        panel.band(Key(role, label), x, low, low + share, "area")
        panel.values(Key(role, label), x, share)
        low = low + share
    return Chart([panel])


def slowdown_figure(
    rows: Mapping[str, tuple[str, Sequence[SlowdownRow]]], worse: Collection[str] = ()
) -> Chart:
    """Draw p50 (hollow) and p99 (full) slowdown by size bin; ``rows``: role -> (label, rows).

    The names of bins in ``worse`` say so: there ours is worse than the default beyond chance.
    """
    tables = [table for _, table in rows.values()]
    kept = [i for i in range(len(tables[0])) if any(table[i].count for table in tables)]
    labels = [tables[0][i].bin.label for i in kept]
    values = [np.array([v for i in kept for v in (t[i].p50, t[i].p99)]) for t in tables]
    panel = Panel(
        "FCT slowdown by flow size: median (hollow) to p99 (full)",
        named_axis([_folded(label) + "\n▲ worse" * (label in worse) for label in labels]),
        log_axis(values, "×"),
        190,
    )
    for k, (role, (label, table)) in enumerate(rows.items()):
        key = Key(role, label)
        for place, i in enumerate(kept):
            x = place + (k - (len(rows) - 1) / 2) * 0.2
            low, high = table[i].p50, table[i].p99
            if not table[i].count:
                continue
            panel.stem(key, (x, low), (x, high))
            said = f"{label}, {labels[place]}"
            panel.dot(key, x, low, f"{said}: median {times(low)}×", hollow=True)
            panel.dot(key, x, high, f"{said}: p99 {times(high)}×")
    return Chart([panel])


def _folded(label: str) -> str:
    """Return the name of a size bin in short lines, for seven of them on a telephone."""
    if "–" in label:
        return label.replace("–", "–\n").replace(" ", "\u00a0")
    return "\n".join(wrap(re.sub(r" ([KM]B)", "\u00a0\\1", label), 6))
