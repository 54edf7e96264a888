"""Compare two settings on the same traffic: what ``simulate --against`` prints and draws.

The other setting runs first, into a folder that is thrown away; only its summary and its intervals
are read. One pair of runs is one draw of traffic: it says what happened here, not how sure that is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import Setting, dcqcn_paper_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.core.statistics import SIZE_BINS
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.figures import Line, lines_figure
from dcqcn_gym.runs.rows import reference_settings
from dcqcn_gym.runs.table import MISSING, Table, number
from dcqcn_gym.simulate.run import simulate

AGAINST: Mapping[str, Callable[[Scenario], Setting]] = {
    "default": lambda scenario: reference_settings(scenario)["default"],
    "expert": lambda scenario: reference_settings(scenario)["expert"],
    "dcqcn-paper": lambda scenario: keeping_optional(
        dcqcn_paper_setting(scenario.line_rate_bps), scenario.initial_setting()
    ),
    "initial": lambda scenario: scenario.initial_setting(),
}
"""The settings that a simulation can be compared with, by name."""

Figure = tuple[str, str, float | None]
"""Name, unit and value of one figure of a run; None: there is no such value."""


def other_setting(name: str, scenario: Scenario) -> Setting:
    """Return the setting to compare with; UnknownNameError if there is none of that name.

    Raises ConfigError for one of another scheme than the scenario's.
    """
    if name not in AGAINST:
        raise UnknownNameError("setting of --against", name, AGAINST)
    return AGAINST[name](scenario)


@dataclass
class Against:
    """A finished run, and after :meth:`files` the table of differences from it."""

    name: str
    summary: Mapping[str, Any]
    series: Mapping[str, FloatArray]
    table: Table | None = None

    def files(self, summary: Mapping[str, Any], intervals: Path) -> dict[str, bytes]:
        """Return the files of the comparison, given the other run's summary and its intervals."""
        rows = list(zip(_figures(summary), _figures(self.summary), strict=True))
        self.table = _table(self.name, rows)
        picture = _picture(self.name, _series(intervals), self.series)
        return {"difference.csv": _csv(self.name, rows), "difference.svg": picture.encode()}


def run_against(
    name: str, scenario: Scenario, *, seed: int, intervals: int | None, backend: str | Backend
) -> Against:
    """Run the scenario under the setting of that name, as :func:`simulate` does."""
    setting = other_setting(name, scenario)
    with TemporaryDirectory(prefix="dcqcn-gym-against-") as folder:
        out = Path(folder) / "run"
        summary = simulate(
            scenario, out, setting=setting, seed=seed, intervals=intervals, backend=backend
        )
        return Against(name, summary, _series(out / "intervals.csv"))


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
        (f"{what} [{unit}]" if unit else what, number(here), number(there), _change(here, there))
        for (what, unit, here), (_, _, there) in rows
        if (here, there) != (None, None)
    ]
    return Table(("", "this", name, "change"), cells, f"against {name}, same traffic")


def _change(here: float | None, there: float | None) -> str:
    if here is None or there is None:
        return MISSING
    if here == there:
        return "="
    if not there:
        return number(here - there)
    return f"{100 * (here / there - 1):+.1f} %".replace("-", "−")


def _csv(name: str, rows: list[tuple[Figure, Figure]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("figure", "unit", "this", name, "difference"))
    for (what, unit, here), (_, _, there) in rows:
        change = None if here is None or there is None else here - there
        writer.writerow((what, unit, here, there, change))
    return text.getvalue().encode()


def _series(path: Path) -> dict[str, FloatArray]:
    """Return the columns of ``intervals.csv`` that are drawn; NaN where there is no value."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    names = ("end_ns", "utility", "throughput_bps", "rtt_mean_ns", "device_pause_ns")
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in names}


def _picture(name: str, here: Mapping[str, FloatArray], there: Mapping[str, FloatArray]) -> str:
    panels = {
        "Utility": ("utility", 1.0),
        "Delivered [Gb/s]": ("throughput_bps", 1e-9),
        "Round trip, mean [us]": ("rtt_mean_ns", 1e-3),
        "Paused per interval, mean device [us]": ("device_pause_ns", 1e-3),
    }
    drawn = [
        (
            title,
            [
                Line("default", name, there["end_ns"] * 1e-6, there[column] * scale),
                Line("tuned", "this", here["end_ns"] * 1e-6, here[column] * scale),
            ],
        )
        for title, (column, scale) in panels.items()
    ]
    return lines_figure(drawn, "simulated time [ms]").file()
