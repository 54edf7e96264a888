"""Several runs on one scenario in one table: what each did as it ran, and what it recommends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.recommendation import NAMES
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.core.verdict import Measured, changes, scores, verdict
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.recommended import percent_text
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.table import MISSING, Table, with_interval

Row = list[str]


def beside(runs: Sequence[ReportData]) -> Table:
    """Return the table; a setting that several runs tried on fresh traffic has one row.

    Raises ConfigError for runs on other scenarios, traffic or lengths.
    """
    asked = {
        str([r.run.header.get(key) for key in ("scenario", "seed", "intervals")]) for r in runs
    }
    if len(asked) > 1:
        raise ConfigError(
            "the runs have other scenarios, seeds or lengths; expected the same of each, so that "
            "they can stand in one table"
        )
    columns = ["", "slowdowns against the default", "pauses, points", "deploy?"]
    rows = [row for data in runs for row in _as_it_ran(data)]
    tried = _tried(runs)
    rows += [_fresh(data, tried) for data in runs if data.finished]
    own = [data.setting("found") for data in runs if data.finished]
    for name, (setting, of) in tried.items():
        if name in NAMES and name not in ("found", "default") and setting not in own:
            rows.append([NAMES[name], *_cells(of, tried["default"][1])])
    return Table(columns, rows)


def _as_it_ran(data: ReportData) -> Iterator[Row]:
    """Yield the run against the default's on the same traffic: one value, so no interval."""
    default = data.references.get("default")
    if default is not None and len(data.run):
        n = min(len(data.run), len(default))
        ours, theirs = (_figures([s.first(n)]) for s in (data.run, default))
        yield [f"{_who(data)}, as it ran", *_cells(ours, theirs)[:2], MISSING]


Tried = Mapping[str, tuple[object, list[Measured]]]


def _tried(runs: Sequence[ReportData]) -> Tried:
    """Return what ran on fresh traffic: by the name of a reference, or the tuner that found it."""
    found: dict[str, tuple[object, list[Measured]]] = {}
    for data in runs:
        for name, series in data.tried.items():
            key = _who(data) if name == "found" else name
            found.setdefault(key, (data.setting(name), _figures(series)))
    return found


def _fresh(data: ReportData, tried: Tried) -> Row:
    """Return what a run recommends, by its own fresh runs or those of the same setting."""
    setting = data.setting("found")
    of = next((runs for other, runs in tried.values() if other == setting), None)
    name = next((n for n, (other, _) in tried.items() if other == setting), "")
    also = f": {NAMES[name]}" if name in NAMES else ""
    title = f"what {_who(data)} recommends{also}"
    if of is None:
        return [title, "not tried on fresh traffic", MISSING, MISSING]
    default, of_default = tried["default"]
    slower, pause, deploy = _cells(of, of_default)
    return [title, slower, pause, MISSING if setting == default else deploy]


def _cells(ours: Sequence[Measured], default: Sequence[Measured]) -> Row:
    score = scores(ours, default)
    pause = next(c.change for c in changes(ours, default) if c.key == "pause")
    return [percent_text(score), _points(pause), verdict(ours, default).deploy]


def _points(pause: Estimate) -> str:
    return str(with_interval(pause, "+.1f", 100.0, style="brackets")).replace("-", "−")


def _figures(runs: Sequence[Series]) -> list[Measured]:
    return [measured(series) for series in runs]


def _who(data: ReportData) -> str:
    return str(data.run.header.get("tuner", "the tuner"))
