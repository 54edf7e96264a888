"""The learning curve of a training of ACC as a picture."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import numpy as np

from dcqcn_gym.core.errors import MissingExtraError

__all__ = ["draw_curve"]

SPAN = 10
"""Episodes of one scenario that a point of the line is the mean of."""


def draw_curve(curve: Path, picture: Path) -> None:
    """Draw ``curve.csv`` of a training: reward and utility per scenario, and exploration.

    Points are episodes, lines are means over the last ten of a scenario. Raises MissingExtraError
    without matplotlib.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("the picture of the learning curve", "report")
    from matplotlib.figure import Figure

    with curve.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(8, 6), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 1))
    for i, scenario in enumerate(sorted({row["scenario"] for row in rows})):
        own = [row for row in rows if row["scenario"] == scenario]
        x = np.array([float(row["decisions"]) for row in own])
        for panel, key in zip(panels, ("reward", "utility"), strict=False):
            y = np.array([float(row[key]) for row in own])
            panel.plot(x, y, ".", markersize=3, alpha=0.4, color=f"C{i}")
            smooth = [float(y[max(0, k + 1 - SPAN) : k + 1].mean()) for k in range(len(y))]
            panel.plot(x, smooth, color=f"C{i}", label=scenario)
    panels[0].set_ylabel("reward of an agent")
    panels[0].legend(loc="best", frameon=False)
    panels[1].set_ylabel("utility of the network")
    decisions = [float(row["decisions"]) for row in rows]
    panels[2].plot(decisions, [float(row["epsilon"]) for row in rows], color="0.4")
    panels[2].set_ylabel("exploration")
    panels[2].set_xlabel("decisions of a network")
    figure.savefig(picture, dpi=110)
