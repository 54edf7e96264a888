"""What a tuner tried: knobs over time."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.report.axes import linear_axis, log_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.series import Series

MOST_PANELS = 20
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
