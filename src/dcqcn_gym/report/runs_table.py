"""Several runs on one scenario in one table: what each did as it ran, and what it recommends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dcqcn_gym.core.answer import NAMES, Action, Answer
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.core.verdict import Measured, changes, scores
from dcqcn_gym.report.answer import answer_of, percent_text
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.runs.table import MISSING, Table, with_interval


def runs_table(runs: Sequence[ReportData]) -> Table:
    """Return the table; a setting that several runs tried on held-out traffic has one row.

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
    base = runs[0].baseline
    columns = ["", f"slowdowns against {base}", "pauses, points", "answer"]
    tried = _tried(runs)
    answers = [answer_of(data).answer for data in runs]
    rows = [row for data in runs for row in _as_it_ran(data)]
    actions = {one.setting: one.action for one in answers if one.verdicts}
    rows += [
        _final(data, tried, one, actions)
        for data, one in zip(runs, answers, strict=True)
        if data.finished
    ]
    own = [data.setting("candidate") for data in runs if data.finished]
    for name, (setting, of) in tried.items():
        if name in NAMES and name not in ("candidate", base) and setting not in own:
            rows.append([NAMES[name], *_cells(of, tried[base][1]), actions.get(name, MISSING)])
    return Table(columns, rows)


def _as_it_ran(data: ReportData) -> Iterator[list[str]]:
    """Yield the run against the baseline's on the same traffic: one value, so no interval.

    Of a setting of yours there is no such run: the search is compared with the default's alone.
    """
    default = data.references.get(data.baseline)
    if default is not None and len(data.run):
        n = min(len(data.run), len(default))
        ours, theirs = ([measured(s.first(n))] for s in (data.run, default))
        yield [f"{_who(data)}, as it ran", *_cells(ours, theirs), MISSING]


Tried = Mapping[str, tuple[object, list[Measured]]]


def _tried(runs: Sequence[ReportData]) -> Tried:
    """Return what ran on held-out traffic, by the name of a reference or of the tuner."""
    found: dict[str, tuple[object, list[Measured]]] = {}
    for data in runs:
        for name, figures in data.measured.items():
            key = _who(data) if name == "candidate" else name
            found.setdefault(key, (data.setting(name), figures))
    return found


def _final(data: ReportData, tried: Tried, own: Answer, actions: Mapping[str, Action]) -> list[str]:
    """Return what a run found, by its own held-out runs or those of the same setting."""
    setting = data.setting("candidate")
    of = next((runs for other, runs in tried.values() if other == setting), None)
    name = next((n for n, (other, _) in tried.items() if other == setting), "")
    also = f": {NAMES[name]}" if name in NAMES else ""
    title = f"what {_who(data)} found{also}"
    if of is None:
        return [title, "not tried on held-out traffic", MISSING, MISSING]
    said = own.action if own.setting == "candidate" else actions.get(name, MISSING)
    return [title, *_cells(of, tried[own.baseline][1]), said]


def _cells(ours: Sequence[Measured], base: Sequence[Measured]) -> list[str]:
    pause = next(c.change for c in changes(ours, base) if c.key == "pause")
    return [percent_text(scores(ours, base)), _points(pause)]


def _points(pause: Estimate) -> str:
    return str(with_interval(pause, "+.1f", 100.0, style="brackets")).replace("-", "−")


def _who(data: ReportData) -> str:
    return str(data.run.header.get("tuner", "the tuner"))
