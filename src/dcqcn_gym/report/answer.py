"""The answer of a run, made once: what terminal, page, files, `report`, `emit` and `hw` show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from dcqcn_gym.core.answer import NAMES, Answer, answer, cannot_tell
from dcqcn_gym.core.score import CLASSES, geometric_ratio
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.core.verdict import Flag, Verdict
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.axes import Axis, linear_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.measurements import UNTOLD
from dcqcn_gym.report.traffic_choice import (
    SessionLength,
    census_of,
    length_of,
    problem_of,
)
from dcqcn_gym.report.verdict_block import change_text, flags_text
from dcqcn_gym.runs.table import Table, with_interval

WIDEST = 100.0
"""Changes of slowdowns are drawn up to so many percent; an arrow says more."""
WIDEST_SHARE = 2.5
"""Costs are drawn up to so many times their limit."""


@dataclass(frozen=True)
class TriedRow:
    """One setting that was tried: its slowdowns against the one in force, limits, the verdict."""

    name: str
    slowdowns: str
    crossed: str
    verdict: str
    chosen: bool


@dataclass(frozen=True)
class AnswerBlock:
    """The answer as it is shown; ``setting`` is the one to deploy or to choose, as logs hold it."""

    answer: Answer
    rows: tuple[TriedRow, ...]
    setting: Mapping[str, Any] | None

    @property
    def deploys(self) -> bool:
        """True if something is to be deployed."""
        return self.answer.action == "deploy"

    def table(self) -> Table:
        """Return what was tried for a terminal."""
        columns = ["tried on held-out traffic", self._heading, "guardrails crossed", "verdict"]
        rows = [[row.name, row.slowdowns, row.crossed, row.verdict] for row in self.rows]
        return Table(columns, rows)

    @property
    def _heading(self) -> str:
        return f"slowdowns against {self.answer.baseline}"

    def figure(self) -> Markup:
        """Draw the intervals of what was tried, and those of the closest setting and its limits."""
        if not self.rows or self.answer.candidate is None:
            return Markup()
        panels = [_slowdowns(self.answer), _costs(self.answer, self.answer.candidate)]
        return Chart(panels).html()


def answer_of(data: ReportData) -> AnswerBlock:
    """Make the answer of a run from everything that it tried on held-out traffic."""
    tried = data.tried
    if not tried:
        why = "no setting was tried on held-out traffic"
        if not data.finished:
            why = "the run has not reached its end"
        step = "the command that made the run continues it"
        return AnswerBlock(cannot_tell(why, data.baseline, step), (), None)
    if not data.complete:
        return AnswerBlock(cannot_tell(UNTOLD, data.baseline), (), None)
    scenario, asked = data.scenario, _asked(data)
    census = None if scenario is None else census_of(scenario)
    found = answer(
        data.measured,
        data.baseline,
        data.guardrails,
        problem=None if scenario is None else problem_of(scenario, asked),
        longer=_longer(asked, scenario),
        busiest="" if census is None or data.stretch else census.busiest_text,
    )
    found = replace(found, calibrated="" if scenario is None else scenario.calibrated)
    rows = [_row(name, v, found) for name, v in found.verdicts.items()]
    chosen = found.action in ("deploy", "a choice")
    return AnswerBlock(found, tuple(rows), data.setting(found.setting) if chosen else None)


def _asked(data: ReportData) -> SessionLength:
    """Return the session that a run was, of at least two parts."""
    runs = data.held_out.get("candidate", [])
    return SessionLength(len(data.run), max(2, len(runs)), len(runs[0]) if runs else 0)


def _longer(asked: SessionLength, scenario: Scenario | None) -> str:
    """Return how long a trace would have to be; empty where it is no trace, or long enough."""
    if scenario is None or not asked.part_intervals:
        return ""
    needs = length_of(scenario, asked)
    if needs is None:
        return ""
    more = replace(needs, parts=20, part_intervals=20)
    if not needs.enough:
        return needs.text
    if more.enough:
        return ""
    return (
        f"capture more: --eval-seeds 20 --eval-intervals 20 need {more.needed_ms:.4g} ms of trace, "
        f"and there are {needs.there_ms:.4g}"
    )


def _row(name: str, of: Verdict, found: Answer) -> TriedRow:
    return TriedRow(
        name,
        percent_text(of.score),
        flags_text(of.flags) if of.flags else "not known",
        of.text,
        found.action in ("deploy", "a choice") and name == found.setting,
    )


def percent_text(score: Estimate) -> str:
    """Return the change of slowdowns that a score stands for; below 0 is better."""
    return _text(_percent(score)) if score.n else "not known"


def _percent(score: Estimate) -> Estimate:
    """Return the change of slowdowns in percent that a score stands for; below 0 is better."""
    mean, low, high = (
        None if x is None else 100 * (geometric_ratio(x) - 1)
        for x in (score.mean, score.high, score.low)
    )
    return Estimate(float(mean or 0.0), low, high, score.n, score.constant)


def _text(change: Estimate) -> str:
    return str(with_interval(change, "+.1f", unit="\u00a0%", style="brackets")).replace("-", "−")


def _role(name: str) -> str:
    return {"candidate": "tuned", "expert": "expert", "advise": "c2", "default": "default"}.get(
        name, "c3"
    )


def _slowdowns(found: Answer) -> Panel:
    """Draw the change of slowdowns under every setting that was tried."""
    known = {n: _percent(v.score) for n, v in found.verdicts.items() if v.score.n}
    ends = [x for e in known.values() for x in (e.low, e.high) if x is not None]
    panel = Panel(
        f"Slowdowns against {NAMES[found.baseline]}, %, with 95 % intervals (left is better)",
        _reaching(known.values(), [*ends, -1.0, 1.0], WIDEST),
        named_axis([n + " ✓" * (n == found.setting) for n in known], down=True),
        16 + 22 * max(len(known), 1), wide_names=True,
    )  # fmt: skip
    panel.rule(x=0.0)
    for place, (name, e) in enumerate(known.items()):
        _interval(panel, Key(_role(name), name), e, place, f"{NAMES.get(name, name)}: {_text(e)}")
    return panel


def _costs(found: Answer, name: str) -> Panel:
    """Draw what one setting costs, each figure as a share of its limit."""
    few = _few(found.verdicts[name].flags)
    shares = {flag: _share(flag) for flag in few}
    ends = [x for e in shares.values() for x in (e.low, e.high) if x is not None]
    panel = Panel(
        f"{name}: what it costs, in parts of the limit (right of 1: beyond it, left of 0: better)",
        _reaching(shares.values(), [*ends, 0.0, 1.1], WIDEST_SHARE),
        named_axis([_short(flag) for flag in few], down=True),
        16 + 22 * max(len(few), 1), wide_names=True,
    )  # fmt: skip
    panel.rule(x=0.0)
    panel.rule(x=1.0)
    for place, (flag, e) in enumerate(shares.items()):
        unit = "%" if flag.cost.relative else "points"
        tip = f"{flag.name}: {change_text(flag.cost)}, limit {flag.limit * 100:g} {unit}"
        _interval(panel, Key(_role(name), name), e, place, tip)
    return panel


def _reaching(estimates: Iterable[Estimate], ends: Sequence[float], widest: float) -> Axis:
    """Return an axis that holds every mean, which decides, and ends of intervals up to a width."""
    means = [e.mean for e in estimates]
    return linear_axis([np.array(means), np.clip(np.array(ends), -widest, widest)])


def _interval(panel: Panel, key: Key, e: Estimate, place: int, tip: str) -> None:
    low, high = (e.mean if x is None else x for x in (e.low, e.high))
    panel.span(key, low, high, place)
    panel.dot(key, e.mean, place, tip)


def _few(flags: tuple[Flag, ...]) -> list[Flag]:
    """Return the limits with evidence; of the two of a class of flows the one that is nearer."""
    known = {flag.key: flag for flag in flags if flag.state != "few"}
    chosen = []
    for size in CLASSES:
        of = [
            known[f"{what} {size.key}"] for what in ("mean", "p99") if f"{what} {size.key}" in known
        ]
        chosen += [max(of, key=lambda flag: flag.cost.harm.mean)] if of else []
    return [*chosen, *(flag for key, flag in known.items() if " " not in key)]


def _share(flag: Flag) -> Estimate:
    harm = flag.cost.harm
    low, high = (None if x is None else x / flag.limit for x in (harm.low, harm.high))
    return Estimate(harm.mean / flag.limit, low, high, harm.n, harm.constant)


def _short(flag: Flag) -> str:
    what, _, size = flag.key.partition(" ")
    if not size:
        return flag.name
    of = next(c.name for c in CLASSES if c.key == size)
    return f"{of}, {what}"
