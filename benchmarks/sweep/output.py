"""What a sweep leaves: a table, ``sweep.csv``, ``results.json`` and ``sweep.svg``."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dcqcn_gym.benchmarks.study.plan import Study
from dcqcn_gym.benchmarks.sweep.plan import Grid, Point
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.report.axes import linear_axis, log_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.metrics import METRICS, metric
from dcqcn_gym.report.surface import surface_file
from dcqcn_gym.runs.results import write_results
from dcqcn_gym.runs.table import Table, with_interval
from dcqcn_gym.runs.whole_file import write_atomically

Found = Mapping[tuple[Point, int], Mapping[str, float]]
"""The metrics of every run, by point and seed."""

HEIGHT = 200


def mean_of(found: Found, study: Study, point: Point, name: str) -> Estimate:
    """Return a metric at a point with its interval over the seeds, in SI units."""
    return estimate([found[point, seed][name] for seed in study.every_seed])


def table_of(grid: Grid, study: Study, found: Found, names: Sequence[str]) -> Table:
    """Return a line per point with the chosen metrics."""
    rows = [
        [
            *(f"{value:.6g}" for value in point),
            *(
                with_interval(mean_of(found, study, point, name), ".4g", metric(name).scale)
                for name in names
            ),
        ]
        for point in grid.points
    ]
    heads = [f"{axis.knob.name}, {axis.knob.unit}" for axis in grid.axes]
    return Table((*heads, *(metric(name).heading for name in names)), rows, words=0)


def write_all(
    grid: Grid, study: Study, found: Found, names: Sequence[str], out: Path
) -> list[Path]:
    """Write every file of a sweep; return their paths. ``names``: the metrics that are drawn."""
    write_atomically(out / "sweep.csv", _csv(grid, study, found))
    picture = (
        _curves(grid, study, found, names)
        if len(grid.axes) == 1
        else _surface(grid, study, found, names)
    )
    write_atomically(out / "sweep.svg", picture.encode())
    knobs = [axis.knob.name for axis in grid.axes]
    rows = [
        {
            **dict(zip(knobs, point, strict=True)),
            **{name: mean_of(found, study, point, name) for name in METRICS},
        }
        for point in grid.points
    ]
    results = write_results(
        out, "sweep", rows, scenarios=[grid.case.loaded], seeds={"run": study.every_seed},
        figures={"plan": grid.identity(study).model_dump(), "knobs": knobs},
    )  # fmt: skip
    return [out / "sweep.csv", results, out / "sweep.svg"]


def _csv(grid: Grid, study: Study, found: Found) -> bytes:
    """Return a line per run: knobs in NVIDIA's units, seed, every metric in SI units."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*(axis.knob.name for axis in grid.axes), "seed", *METRICS))
    for point in grid.points:
        for seed in study.every_seed:
            values = (found[point, seed][name] for name in METRICS)
            cells = ("" if np.isnan(value) else f"{value:.9g}" for value in values)
            writer.writerow((*(f"{value:.10g}" for value in point), seed, *cells))
    return text.getvalue().encode()


def _curves(grid: Grid, study: Study, found: Found, names: Sequence[str]) -> str:
    (axis,) = grid.axes
    x = np.array(axis.values)
    along = log_axis([x]) if axis.knob.log and x.min() > 0 else linear_axis([x])
    panels = []
    for i, name in enumerate(names):
        means = [mean_of(found, study, point, name) for point in grid.points]
        y, low, high = (
            np.array([np.nan if v is None else v for v in values]) * metric(name).scale
            for values in ([e.mean for e in means], [e.low for e in means], [e.high for e in means])
        )
        panel = Panel(metric(name).heading, along, linear_axis([y, low, high]), HEIGHT)
        if i == len(names) - 1:
            panel.x_label = f"{axis.knob.name}, {axis.knob.unit}"
        key = Key("c0", axis.knob.name)
        panel.band(key, x, low, high, "band")
        panel.line(key, x, y)
        for at, value in zip(x, y, strict=True):
            panel.dot(key, float(at), float(value), f"{at:g}: {value:.4g}")
        panels.append(panel)
    return Chart(panels).file()


def _surface(grid: Grid, study: Study, found: Found, names: Sequence[str]) -> str:
    across, up = grid.axes
    labels = [
        (f"{axis.knob.name}, {axis.knob.unit}", [f"{value:.5g}" for value in axis.values])
        for axis in (across, up)
    ]
    panels = [
        (
            metric(name).heading,
            np.array(
                [
                    [mean_of(found, study, (a, b), name).mean for a in across.values]
                    for b in up.values
                ]
            )
            * metric(name).scale,
        )
        for name in names
    ]
    return surface_file(panels, labels[0], labels[1])
