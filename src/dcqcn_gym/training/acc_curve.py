"""The learning curve of a training of ACC as a picture."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from dcqcn_gym.report.figures import Line, lines_figure

SPAN = 10
"""Episodes of one scenario that a point of the line is the mean of."""
COLOURS = 8


def draw_curve(curve: Path, picture: Path) -> None:
    """Draw ``curve.csv`` of a training as SVG: reward and utility per scenario, and exploration.

    Lines are means over the last ten episodes of a scenario.
    """
    with curve.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    reward: list[Line] = []
    utility: list[Line] = []
    for i, scenario in enumerate(sorted({row["scenario"] for row in rows})):
        own = [row for row in rows if row["scenario"] == scenario]
        x = np.array([float(row["decisions"]) for row in own])
        for lines, key in ((reward, "reward"), (utility, "utility")):
            y = np.array([float(row[key]) for row in own])
            smooth = [float(y[max(0, k + 1 - SPAN) : k + 1].mean()) for k in range(len(y))]
            lines.append(Line(f"c{i % COLOURS}", scenario, x, np.array(smooth)))
    decisions = np.array([float(row["decisions"]) for row in rows])
    epsilon = np.array([float(row["epsilon"]) for row in rows])
    panels = [
        ("Reward of an agent", reward),
        ("Utility of the network", utility),
        ("Exploration", [Line("default", "exploration", decisions, epsilon)]),
    ]
    chart = lines_figure(panels, "decisions of a network")
    picture.write_text(chart.file(), encoding="utf-8")
