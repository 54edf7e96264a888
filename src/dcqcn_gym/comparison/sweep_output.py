"""What a sweep leaves: a table, ``sweep.csv``, ``results.json`` and ``sweep.svg``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dcqcn_gym.comparison.grid import Grid, Point
from dcqcn_gym.comparison.plan import Plan
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.report.axes import linear_axis, log_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.metrics import METRICS, metric
from dcqcn_gym.report.surface import Surface, surface_file
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.results import write_results
from dcqcn_gym.runs.table import Table, as_csv, with_interval

Found = Mapping[tuple[Point, int], Mapping[str, float]]
"""The metrics of every run, by point and seed."""

HEIGHT = 200


def mean_of(found: Found, plan: Plan, point: Point, name: str) -> Estimate:
    """Return a metric at a point with its interval over the seeds, in SI units."""
    return estimate([found[point, seed][name] for seed in plan.every_seed])


def table_of(grid: Grid, plan: Plan, found: Found, names: Sequence[str]) -> Table:
    """Return a line per point with the chosen metrics."""
    rows = [
        [
            *(f"{value:.6g}" for value in point),
            *(
                with_interval(mean_of(found, plan, point, name), ".4g", metric(name).scale)
                for name in names
            ),
        ]
        for point in grid.points
    ]
    heads = [f"{axis.knob.name}, {axis.knob.unit}" for axis in grid.axes]
    return Table((*heads, *(metric(name).heading for name in names)), rows, words=0)


def write_all(grid: Grid, plan: Plan, found: Found, names: Sequence[str], out: Path) -> list[Path]:
    """Write every file of a sweep; return their paths. ``names``: the metrics that are drawn."""
    write_atomically(out / "sweep.csv", _csv(grid, plan, found))
    picture = (
        _curves(grid, plan, found, names)
        if len(grid.axes) == 1
        else _surface(grid, plan, found, names)
    )
    write_atomically(out / "sweep.svg", picture.encode())
    knobs = [axis.knob.name for axis in grid.axes]
    rows = [
        {
            **dict(zip(knobs, point, strict=True)),
            **{name: mean_of(found, plan, point, name) for name in METRICS},
        }
        for point in grid.points
    ]
    results = write_results(
        out, "sweep", rows, scenarios=[grid.case.loaded], seeds={"run": plan.every_seed},
        figures={"plan": plan.model_dump(mode="json"), "knobs": knobs},
    )  # fmt: skip
    return [out / "sweep.csv", results, out / "sweep.svg"]


def _csv(grid: Grid, plan: Plan, found: Found) -> bytes:
    """Return a line per run: knobs in NVIDIA's units, seed, every metric in SI units."""
    rows: list[list[object]] = [[*(axis.knob.name for axis in grid.axes), "seed", *METRICS]]
    for point in grid.points:
        for seed in plan.every_seed:
            values = (found[point, seed][name] for name in METRICS)
            cells = ("" if np.isnan(value) else f"{value:.9g}" for value in values)
            rows.append([*(f"{value:.10g}" for value in point), seed, *cells])
    return as_csv(rows)


def _curves(grid: Grid, plan: Plan, found: Found, names: Sequence[str]) -> str:
    (axis,) = grid.axes
    x = np.array(axis.values)
    along = log_axis([x]) if axis.knob.log and x.min() > 0 else linear_axis([x])
    panels = []
    for name in names:
        means = [mean_of(found, plan, point, name) for point in grid.points]
        y, low, high = (
            np.array([np.nan if v is None else v for v in values]) * metric(name).scale
            for values in ([e.mean for e in means], [e.low for e in means], [e.high for e in means])
        )
        of = f"{axis.knob.name}, {axis.knob.unit}"
        panel = Panel(metric(name).drawn, along, linear_axis([y, low, high]), HEIGHT, of)
        key = Key("c0", axis.knob.name)
        panel.band(key, x, low, high, "band")
        panel.line(key, x, y)
        for at, value in zip(x, y, strict=True):
            panel.dot(key, float(at), float(value), f"{at:g}: {value:.4g}")
        panels.append(panel)
    said = f"{_title(grid, plan)}; band: 95 % interval over the seeds"
    return Chart(panels, title=said).file()


def _title(grid: Grid, plan: Plan) -> str:
    over = " and ".join(axis.knob.name for axis in grid.axes)
    return f"{grid.case.loaded.name}: {over}, {len(plan.every_seed)} seeds"


def _surface(grid: Grid, plan: Plan, found: Found, names: Sequence[str]) -> str:
    across, up = grid.axes
    labels = [
        (f"{axis.knob.name}, {axis.knob.unit}", [f"{value:.5g}" for value in axis.values])
        for axis in (across, up)
    ]
    points = [[(a, b) for a in across.values] for b in up.values]
    panels = []
    for name in names:
        means = [[mean_of(found, plan, point, name).mean for point in row] for row in points]
        values = np.array(means) * metric(name).scale
        even = _even(points, values, found, plan, name)
        panels.append(Surface(metric(name).drawn, values, metric(name).better, even))
    said = f"{_title(grid, plan)}; ≈ not distinguished from the best: paired 95 % interval"
    return surface_file(said, panels, labels[0], labels[1])


def _even(
    points: Sequence[Sequence[Point]], values: FloatArray, found: Found, plan: Plan, name: str
) -> npt.NDArray[np.bool_]:
    """Return where the paired difference from the best point may be 0; nowhere with one seed."""
    sign = metric(name).better
    even = np.zeros(values.shape, dtype=bool)
    if not sign or len(plan.every_seed) < 2 or not np.any(np.isfinite(values)):
        return even
    j, i = np.unravel_index(np.nanargmax(sign * values), values.shape)
    best = points[int(j)][int(i)]
    for place in np.ndindex(values.shape):
        point = points[place[0]][place[1]]
        pairs = [found[point, s][name] - found[best, s][name] for s in plan.every_seed]
        apart = estimate(pairs)
        even[place] = point != best and (apart.low is None or apart.low <= 0 <= (apart.high or 0.0))
    return even
