"""The page of a simulation, alone or beside another setting on the same traffic."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.groups import DeviceSetting, by_group
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.statistics import SIZE_BINS, SlowdownRow
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.chart import Chart
from dcqcn_gym.report.fabric_picture import fabric_svg
from dcqcn_gym.report.figures import STATES, Line, fsd_figure, lines_figure, slowdown_figure
from dcqcn_gym.report.jobs import part_tables
from dcqcn_gym.report.render import render
from dcqcn_gym.report.tables import group_table, knob_groups
from dcqcn_gym.runs.table import MISSING, Table, as_csv, number

PAGE = "report.html"
MOST_POINTS = 1000
"""Intervals along a chart; of more, means over neighbours are drawn."""

Figure = tuple[str, str, float | None]
"""Name, unit and value of one figure of a run; None: there is no such value."""

PANELS = {
    "Utility": ("utility", 1.0),
    "Delivered, Gb/s": ("throughput_bps", 1e-9),
    "Round trip, µs (mean)": ("rtt_mean_ns", 1e-3),
    "Paused per interval, µs (mean device)": ("device_pause_ns", 1e-3),
    "Longest queue, KB": ("max_queue_bytes", 1e-3),
}
"""What is drawn of every interval: title -> column of ``intervals.csv``, scale."""


@dataclass
class ComparedRun:
    """A finished run under another setting, and after :meth:`files` the table of differences."""

    name: str
    summary: Mapping[str, Any]
    series: Mapping[str, FloatArray]
    table: Table | None = None

    def files(self, summary: Mapping[str, Any], here: Mapping[str, FloatArray]) -> dict[str, bytes]:
        """Return the files of the comparison, given the other run's summary and its intervals."""
        rows = list(zip(_figures(summary), _figures(self.summary), strict=True))
        self.table = _table(self.name, rows)
        picture = _intervals(here, self).file()
        return {"difference.csv": _csv(self.name, rows), "difference.svg": picture.encode()}


def run_page(
    scenario: Scenario,
    setting: DeviceSetting,
    summary: Mapping[str, Any],
    here: Mapping[str, FloatArray],
    against: ComparedRun | None = None,
    traced: Sequence[Chart | None] = (),
) -> bytes:
    """Return the page of a run from its summary, its intervals, and what was traced."""
    table = (against.table if against else None) or _values(_figures(summary))
    by_name = {name: dict(values) for name, values in by_group(setting)}
    slow = [("tuned", "this", summary)] + (
        [("default", against.name, against.summary)] if against else []
    )
    bins = {r: (n, _sizes(s["slowdown"])) for r, n, s in reversed(slow) if s["slowdown"]}
    charts = {
        "intervals": _intervals(here, against),
        "slowdown": slowdown_figure(bins)
        if bins and any(r.count for r in bins["tuned"][1])
        else None,
        "traffic": _traffic(here),
    }
    return render(
        "simulate.html.j2",
        scenario=scenario,
        summary=summary,
        against=against,
        table=table,
        done=_done(summary, against),
        fabric=fabric_svg(scenario.fabric),
        charts={name: chart.html() for name, chart in charts.items() if chart is not None},
        traced=[chart.html() for chart in traced if chart and chart.panels],
        groups=group_table(by_name) if len(by_name) > 1 else None,
        knobs=knob_groups(scenario.line_rate_bps, scenario.table, by_name["cluster"]),
    )


def _values(figures: Iterable[Figure]) -> Table:
    """Return the figures that a run has, one a row."""
    rows = [
        (_named(what, unit), number(value)) for what, unit, value in figures if value is not None
    ]
    return Table(("", "value"), rows)


def _done(summary: Mapping[str, Any], against: ComparedRun | None) -> list[Table]:
    """Return what collectives and applications got done, where there are any."""
    tables = []
    if rounds := summary["collectives"]:
        heads = ("collective", "ranks", "rounds", "mean time, ms", "algbw, GB/s", "busbw, GB/s")
        scales = {"time_ns_mean": 1e-6, "algbw_gbytes_per_s": 1, "busbw_gbytes_per_s": 1}
        rows = []
        for r in rounds:
            known = [MISSING if r[n] is None else number(r[n] * s) for n, s in scales.items()]
            rows.append((r["collective"], f"{r['ranks']}", f"{r['rounds']}", *known))
        tables += [Table(heads, rows), *_jobs(summary, against)]
    if done := summary["applications"]:
        cells = [
            (d["application"], f"{d['operations']}",
             MISSING if d["per_s"] is None else f"{number(d['per_s'])} {d['unit']}")
            for d in done
        ]  # fmt: skip
        tables.append(Table(("application", "operations", "rate"), cells))
    return tables


def _jobs(summary: Mapping[str, Any], against: ComparedRun | None) -> Iterator[Table]:
    """Yield where the time of each job's iterations went, here and under the other setting."""
    runs = {"this": summary} | ({} if against is None else {against.name: against.summary})
    for i, one in enumerate(summary["collectives"]):
        found = {name: run["collectives"][i] for name, run in runs.items()}
        if "by_rank" in one:
            yield from part_tables({n: s for n, s in found.items() if "by_rank" in s})


def _sizes(found: Mapping[str, Mapping[str, float | None]]) -> list[SlowdownRow]:
    """Return a summary's slowdowns as the rows that are drawn."""

    def value(row: Mapping[str, float | None], name: str) -> float:
        return math.nan if (known := row[name]) is None else known

    return [
        SlowdownRow(
            b,
            int(found[b.key]["count"] or 0),
            *(value(found[b.key], n) for n in ("mean", "p50", "p99", "p99.9")),
        )
        for b in SIZE_BINS
    ]


def _intervals(here: Mapping[str, FloatArray], against: ComparedRun | None) -> Chart:
    """Draw what every interval was, above each other."""
    runs = [("tuned", "this", here)]
    if against is not None:
        runs.insert(0, ("default", against.name, against.series))
    drawn = [
        (title, [Line(r, n, s["end_ns"] * 1e-6, s[column] * scale) for r, n, s in runs])
        for title, (column, scale) in PANELS.items()
    ]
    return lines_figure(drawn, "simulated time, ms")


def _traffic(here: Mapping[str, FloatArray]) -> Chart | None:
    """Draw the states of flows as the monitor saw them; None if it saw nothing."""
    counts = {role: here[f"fsd_{role}"] for role in STATES}
    total = np.nan_to_num(np.add.reduce(list(counts.values())))
    if not np.any(total > 0):
        return None
    shares = {role: np.nan_to_num(c) / np.maximum(total, 1e-300) for role, c in counts.items()}
    return fsd_figure(here["end_ns"] * 1e-6, shares, "simulated time, ms")


def series_of(path: Path) -> dict[str, FloatArray]:
    """Return the columns of ``intervals.csv`` that are drawn; NaN where there is no value."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    names = ["end_ns", *(c for c, _ in PANELS.values()), *(f"fsd_{role}" for role in STATES)]
    found = {name: np.array([float(row[name] or "nan") for row in rows]) for name in names}
    if (step := -(-len(rows) // MOST_POINTS)) < 2:
        return found
    starts = np.arange(0, len(rows), step)
    lengths = np.diff(np.append(starts, len(rows)))
    thin = {name: np.add.reduceat(column, starts) / lengths for name, column in found.items()}
    return thin | {"end_ns": found["end_ns"][starts + lengths - 1]}


def _figures(summary: Mapping[str, Any]) -> Iterator[Figure]:
    """Return what is compared, in the order of the table."""
    seconds = summary["simulated_ns"] * 1e-9
    makespan = summary["makespan_ns"]
    yield "utility, mean", "", summary["mean_utility"]
    yield "delivered", "Gb/s", summary["delivered_bytes"] * 8e-9 / seconds
    yield "flows finished", "", summary["finished_flows"]
    yield "flows unfinished", "", summary["unfinished_flows"]
    yield "makespan", "ms", None if makespan is None else makespan * 1e-6
    for which, words in (("slowdown", "slowdown"), ("slowdown_finished", "finished only")):
        for size_bin in SIZE_BINS:
            row = (summary[which] or {}).get(size_bin.key, {})
            yield f"{words} {size_bin.label}, mean", "", row.get("mean")
            yield f"{words} {size_bin.label}, p99", "", row.get("p99")
    yield "paused, mean device", "ms", summary["device_pause_ns"] * 1e-6
    yield "longest queue", "KB", summary["max_queue_bytes"] * 1e-3
    for name in ("pauses", "marks", "cnps", "drops", "rate_cuts", "rate_increases"):
        yield name.replace("_", " "), "", summary[name]


def _table(name: str, rows: list[tuple[Figure, Figure]]) -> Table:
    """Return the rows that at least one run has a value for."""
    cells = [
        (_named(what, unit), number(here), number(there), _change(here, there))
        for (what, unit, here), (_, _, there) in rows
        if (here, there) != (None, None)
    ]
    return Table(("", "this", name, "change"), cells, f"against {name}, same traffic")


def _named(what: str, unit: str) -> str:
    return f"{what}, {unit}" if unit else what


def _change(here: float | None, there: float | None) -> str:
    if here is None or there is None:
        return MISSING
    if here == there:
        return "="
    if not there:
        return number(here - there)
    return f"{100 * (here / there - 1):+.1f} %".replace("-", "−")


def _csv(name: str, rows: list[tuple[Figure, Figure]]) -> bytes:
    lines: list[tuple[object, ...]] = [("figure", "unit", "this", name, "difference")]
    for (what, unit, here), (_, _, there) in rows:
        change = None if here is None or there is None else here - there
        lines.append((what, unit, here, there, change))
    return as_csv(lines)
