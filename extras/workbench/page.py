"""Builds the workbench: one page over a folder of runs, which holds all that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import MissingExtraError
from dcqcn_gym.extras.workbench.charts import scripts, specifications
from dcqcn_gym.extras.workbench.figures import SHOWN, STATISTICS, Figures
from dcqcn_gym.extras.workbench.runs import Reader, ShownRun, TriedSetting, called, in_service
from dcqcn_gym.report.metrics import METRICS
from dcqcn_gym.report.render import render
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.results import plain

PAGE = "index.html"
SHORT = {"0-100KB": "< 100 KB", "100KB-1MB": "100 KB–1 MB", "1MB-": "≥ 1 MB"}
"""The classes of sizes in heads of columns and along an axis."""


def write_workbench(folder: Path, every: int = 0, reader: Reader | None = None) -> tuple[Path, int]:
    """Write the page over a folder; return its path and how many runs it lists.

    ``every``: the page loads itself anew so many seconds later. ``reader`` keeps what it read
    between calls. Raises ConfigError where there is no run.
    """
    runs = (reader or Reader()).runs(folder)
    try:
        charts, script, missing = specifications(), scripts(), ""
    except MissingExtraError as error:
        charts, script, missing = {}, "", str(error)
    path = folder / PAGE
    page = render(
        "workbench.html.j2",
        title=folder.resolve().name,
        folder=folder.as_posix(),
        runs=runs,
        columns=_columns(runs),
        choices=_choices(runs),
        data={"settings": _settings(runs), "charts": charts, "every": every},
        script=script,
        missing=missing,
        every=every,
        identity=identity,
        called=called,
        in_service=in_service,
        values=_values,
    )
    write_atomically(path, page)
    return path, len(runs)


def identity(run: ShownRun, setting: TriedSetting) -> str:
    """Return what a setting is remembered by."""
    return f"{run.name}|{setting.name}"


def _columns(runs: Sequence[ShownRun]) -> dict[str, str]:
    """Return the heads of the columns that any run has a value for, by name."""
    heads = {name: METRICS[name].heading for name in SHOWN}
    heads |= {
        f"{what} {key} {statistic}": f"{size}: {words} {statistic}{unit}"
        for key, size in SHORT.items()
        for what, words, unit in (("slowdown", "slowdown", ""), ("ms", "time", ", ms"))
        for statistic in STATISTICS
    }
    every = [_values(setting.figures) for run in runs for setting in run.settings]
    return {
        name: head
        for name, head in heads.items()
        if any(not math.isnan(values[name]) for values in every)
    }


def _values(figures: Figures) -> dict[str, float]:
    """Return every figure of a setting by the name of its column."""
    found = dict(figures.metrics)
    for of in figures.sizes:
        for statistic in STATISTICS:
            found[f"slowdown {of.key} {statistic}"] = of.slowdown[statistic]
            found[f"ms {of.key} {statistic}"] = of.time_ms[statistic]
    return found


def _choices(runs: Sequence[ShownRun]) -> dict[str, list[str]]:
    """Return what a column can be filtered by."""
    found = {
        "kind": {run.kind for run in runs},
        "scenario": {run.scenario for run in runs},
        "setting": {setting.name for run in runs for setting in run.settings},
        "answer": {run.action for run in runs},
    }
    return {key: sorted(some - {""}) for key, some in found.items()}


def _settings(runs: Sequence[ShownRun]) -> list[dict[str, Any]]:
    return [_of_setting(run, setting) for run in runs for setting in run.settings]


def _of_setting(run: ShownRun, setting: TriedSetting) -> dict[str, Any]:
    """Return what the page's script knows of a setting; four digits are enough for pictures."""
    figures = setting.figures
    base = next((s for s in run.settings if in_service(run, s)), None)
    found: dict[str, Any] = {
        "id": identity(run, setting),
        "run": run.name,
        "label": f"{run.name}: {setting.name}",
        "base": None if base is None else identity(run, base),
        "finished_only": figures.finished_only,
        "sizes": [
            {
                "name": of.name,
                "size": SHORT[of.key],
                "count": of.count,
                **{f"slowdown_{s}": of.slowdown[s] for s in STATISTICS},
                **{f"ms_{s}": of.time_ms[s] for s in STATISTICS},
            }
            for of in figures.sizes
            if of.count
        ],
        "over_time": figures.over_time,
    }
    return dict(_rounded(plain(found)))


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
