"""What a tuner tried: knobs over time, and every setting as a line across its knobs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.report.axes import linear_axis, log_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.series import Series

MOST_PANELS = 20
MOST_LINES = 150
"""Settings that are drawn as lines: more cannot be told apart."""
BEST_SHARE = 0.1
LOG_SPAN = 20.0
"""A knob that moves over a larger ratio has a logarithmic axis."""
_TUNED = Key("tuned", "in force")


def moved_knobs(run: Series) -> dict[str, FloatArray]:
    """Return the values of every knob that moved, by interval; of groups the cluster's."""
    settings = [r["setting"].get("cluster", r["setting"]) for r in run.records if "setting" in r]
    if len(settings) < len(run.records) or not settings:
        return {}
    every = {name: np.array([s[name] for s in settings], dtype=np.float64) for name in settings[0]}
    moved = {name: values for name, values in every.items() if np.ptp(values) > 0}
    return dict(list(moved.items())[:MOST_PANELS])


def knobs_figure(run: Series, table: KnobTable) -> Chart | None:
    """Draw a small panel for each knob that moved, in NVIDIA's units; None if none did."""
    x = linear_axis([np.zeros(1), run.time_ms], exact=True, wanted=3)
    panels = []
    for name, values in moved_knobs(run).items():
        low, high = float(values.min()), float(values.max())
        y = (
            log_axis([values])
            if low > 0 and high / low > LOG_SPAN
            else linear_axis([values], wanted=3)
        )
        knob = table.knobs.get(name)
        unit = "" if knob is None else ", " + knob.unit.replace("us", "µs")
        panel = Panel(name + unit, x, y, 80, "ms", follow=True)
        panel.line(_TUNED, run.time_ms, values)
        panels.append(panel)
    return Chart(panels, 4) if panels else None


def tried_figure(run: Series, found: Mapping[str, float] | None) -> Chart:
    """Draw every setting that was tried as a line across the knobs that moved."""
    moved = moved_knobs(run)
    rows = np.stack(list(moved.values()), axis=1)
    utility = np.array([float(r["utility"]) for r in run.records])
    low, span = rows.min(axis=0), np.ptp(rows, axis=0)
    shares, first = np.unique((rows - low) / span, axis=0, return_index=True)
    score = utility[first]
    order = np.argsort(score, kind="stable")
    best = int(np.ceil(BEST_SHARE * len(order)))
    step = max(1, len(order) // MOST_LINES)
    panel = Panel(
        "Settings tried (0: least, 1: largest value that was tried of a knob)",
        named_axis([name.replace("rp_", "").replace("_", "\n") for name in moved]),
        linear_axis([np.array([0.0, 1.0])], wanted=2),
        170,
    )
    places = np.arange(len(moved), dtype=np.float64)
    for i in (*order[:-best:step], *order[len(order) - best :]):
        good = i in order[len(order) - best :]
        key = Key("c1", "best tenth by utility") if good else Key("thin", "others")
        panel.line(key, places, shares[i])
    if found is not None and all(name in found for name in moved):
        place = (np.array([float(found[name]) for name in moved]) - low) / span
        panel.line(Key("tuned", "found"), places, np.clip(place, -0.05, 1.05))
    return Chart([panel])
