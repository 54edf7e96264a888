"""What a study shows: a function for each kind of table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.comparison.iterations import iterations
from dcqcn_gym.comparison.plan import Case, Plan, TableOf, Trials
from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.statistics import (
    BOOTSTRAP_FROM,
    estimate,
    paired_change,
    places,
    rank_agreement,
)
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.core.verdict import Measured, Summary, changes, pooled, scores, summary
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.paired import PairedRow, paired_rows, paired_table, series_of
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.markdown import plain as shown
from dcqcn_gym.runs.recorded import end_of
from dcqcn_gym.runs.results import plain, write_results
from dcqcn_gym.runs.table import Table, as_markdown, point, with_interval
from dcqcn_gym.runs.trials import Trial


def tables_of(plan: Plan, trials: Trials) -> list[Table]:
    """Return every table of a study."""
    return [found for table in plan.tables for found in TABLES[table.kind](plan, table, trials)]


def markdown(plan: Plan, name: str, tables: Sequence[Table]) -> str:
    """Return the tables as Markdown, with the command that makes them."""
    seeds = ", ".join(map(str, plan.every_seed))
    lines = [
        f"`dcqcn-gym study {name}`: {shown(plan.description)} "
        f"Runs of {plan.intervals} intervals, seeds {seeds}"
    ]
    if plan.held_out_seeds:
        lines[0] += (
            f"; what was recommended then ran {plan.held_out_intervals} intervals on each of "
            f"{plan.held_out_seeds} held-out seeds"
        )
    method = "Student's t" if plan.judged_seeds < BOOTSTRAP_FROM else "BCa bootstrap"
    lines[0] += f". Brackets: 95 % intervals over the seeds ({method}), paired by seed."
    return f"{lines[0]}\n\n{as_markdown(tables)}"


def write_results_of(plan: Plan, trials: Trials, out: Path, kind: str = "study") -> None:
    """Write ``results.json``: a line per case and entry, of its held-out runs where it has some."""
    write_results(
        out,
        kind,
        [
            {"case": case.title, **plain(row)}
            for case in plan.cases
            for row in paired_results(plan, case, trials)
        ],
        scenarios=[case.loaded for case in plan.cases],
        tuners={entry.name: (entry.entry.tuner, entry.tuner_args) for entry in plan.entries},
        seeds={"run": plan.every_seed},
        figures={"plan": plan.model_dump(mode="json")},
    )


def paired_results(plan: Plan, case: Case, trials: Trials) -> list[PairedRow]:
    """Return each entry's figures on held-out traffic, or of its own runs if nothing else ran."""
    against = [name for table in plan.tables if table.kind == "held-out" for name in table.against]
    runs: dict[str, Iterator[Series]] = {}
    for entry in plan.entries:
        found = trials[case.title, entry.name]
        runs[entry.name] = series_of(
            path for trial in found for path in (trial.held_out or [trial.log])
        )
    return paired_rows(runs, [name for name in runs if name in against])


def _held_out(plan: Plan, _: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield what was recommended, on held-out seeds: a table per case."""
    for case in plan.cases:
        yield paired_table(paired_results(plan, case, trials), case.title)


def _acting(trials: Sequence[Trial]) -> list[float]:
    """Return the mean utility of each run while its tuner acted."""
    return [float(end_of(trial.log)["mean_utility"]) for trial in trials]


def _while_acting(plan: Plan, table: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield mean utilities while acting, and what they are above an entry, paired by seed."""
    found = {key: _acting(some) for key, some in trials.items()}
    titles = [case.title for case in plan.cases]
    lines = [
        [entry.name, *(_cell(found[t, entry.name], found[t, table.against[0]]) for t in titles)]
        for entry in plan.entries
    ]
    yield Table(("entry", *titles), lines)


def _cell(values: Sequence[float], reference: Sequence[float]) -> str:
    if values == reference:
        return f"{mean(values):.4f}"
    return f"{mean(values):.4f}, {_change(values, reference)}"


def _change(values: Sequence[float], reference: Sequence[float]) -> str:
    return with_interval(paired_change(values, reference), "+.4f", style="brackets")


def _differences(plan: Plan, table: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield what one entry's utility while acting is above others', paired by seed."""
    titles = [case.title for case in plan.cases]
    lines = [
        [
            f"{table.of} - {other}",
            *(_change(_acting(trials[t, table.of]), _acting(trials[t, other])) for t in titles),
        ]
        for other in table.against
    ]
    yield Table(("difference", *titles), lines)


def _places(plan: Plan, table: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield mean utilities and places under every case of a scenario.

    The last line is Spearman's rank correlation with the places under the case ``against``.
    """
    (usual,) = (case for case in plan.cases if case.title in table.against)
    cases = [case for case in plan.cases if case.scenario == usual.scenario]
    found = {
        case.title: [mean(_acting(trials[case.title, entry.name])) for entry in plan.entries]
        for case in cases
    }
    ranked = {title: places(values) for title, values in found.items()}
    lines = [
        [entry.name, *(f"{found[title][i]:.4f} ({ranked[title][i]})" for title in found)]
        for i, entry in enumerate(plan.entries)
    ]
    agreement = [f"{rank_agreement(some, found[usual.title]):+.2f}" for some in found.values()]
    columns = (usual.scenario, *(case.name for case in cases))
    yield Table(columns, [*lines, [f"same order as {usual.name}", *agreement]])


def _fleet(plan: Plan, table: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield what tuning a real network costs; differences are to the first entry of a tuner."""
    for case in plan.cases:
        default = [_judged(trial) for trial in trials[case.title, table.against[0]]]
        first: dict[str, tuple[list[float], list[Measured]]] = {}
        lines = []
        for entry in plan.entries:
            if entry.name in table.against:
                continue
            logs = [read_run(trial.log) for trial in trials[case.title, entry.name]]
            utility = [[x["utility"] for x in log.intervals if not x["idle"]] for log in logs]
            online = [mean(u) for u in utility]
            ours = [_judged(trial) for trial in trials[case.title, entry.name]]
            group = str(entry.tuner_args.get("tuner", entry.entry.tuner))
            against, theirs = first.setdefault(group, (online, ours))
            same = against is online
            lines.append([
                entry.name, point(estimate(online)),
                with_interval(
                    None if same else paired_change(online, against), "+.4f", style="brackets"
                ),
                point(estimate([min(u) for u in utility])),
                point(estimate([_everywhere(log.intervals) for log in logs]), ".0f"),
                point(estimate([_wire(log.intervals) for log in logs]), ",.0f"),
                with_interval(scores(ours, default), "+.3f", style="brackets"),
                with_interval(None if same else scores(ours, theirs), "+.3f", style="brackets"),
            ])  # fmt: skip
        yield Table(_FLEET_COLUMNS, lines, case.title)


_FLEET_COLUMNS = (
    "entry", "utility while tuning", "against the first of its tuner", "worst interval",
    "settings on all devices", "monitoring, bytes an interval", "S of what it recommends",
    "against the first of its tuner",
)  # fmt: skip


def _classes(plan: Plan, table: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield slowdowns of each class, while a tuner acts and of what it recommends.

    Changes are against an entry's; the last table has their geometric means over the cases.
    """
    keys = [f"{what} {flow_class.key}" for flow_class in CLASSES for what in ("mean", "p99")]
    columns = ("entry", *(f"{key}{when}" for when in ("", ", after") for key in keys))
    ratios: dict[str, list[list[float]]] = {entry.name: [] for entry in plan.entries}
    for case in plan.cases:
        seen = {e.name: _during_and_after(trials[case.title, e.name]) for e in plan.entries}
        lines = []
        for name, runs in seen.items():
            found = []
            for ours, theirs in zip(runs, seen[table.against[0]], strict=True):
                known = {change.key: change for change in changes(ours, theirs)}
                found += [known[key] for key in keys]
            ratios[name].append([1 + one.change.mean for one in found])
            said = [
                with_interval(c.change, "+.0f", 100, unit=" %", style="brackets") for c in found
            ]
            cells = [f"{c.ours:.2f}, {t}" for c, t in zip(found, said, strict=True)]
            lines.append([name, *cells])
        yield Table(columns, lines, case.title)
    lines = [
        [name, *(f"{100 * (v - 1):+.0f} %" for v in np.exp(np.nanmean(np.log(found), axis=0)))]
        for name, found in ratios.items()
    ]
    yield Table(columns, lines, f"all cases against {table.against[0]}")


def _during_and_after(trials: Sequence[Trial]) -> tuple[list[Summary], list[Summary]]:
    parts = ([t.log for t in trials], [path for t in trials for path in t.held_out])
    during, after = ([summary(measured(one)) for one in series_of(some)] for some in parts)
    return during, after


def _judged(trial: Trial) -> Measured:
    """Return what a recommendation did on all its held-out seeds, as one."""
    return pooled([measured(one) for one in series_of(trial.held_out)])


def _everywhere(intervals: Sequence[Mapping[str, Any]]) -> float:
    """Return how many settings were in force on all devices alike."""
    whole = (str(x["setting"]) for x in intervals if "cluster" not in x["setting"])
    return float(len(set(whole)))


def _wire(intervals: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean bytes of flow-size monitoring per interval."""
    return count(int(x["wire"]["fsd_bytes"]) for x in intervals) / len(intervals)


TABLES: Mapping[str, Callable[[Plan, TableOf, Trials], Iterator[Table]]] = {
    "acting": _while_acting,
    "differences": _differences,
    "places": _places,
    "held-out": _held_out,
    "fleet": _fleet,
    "iterations": iterations,
    "classes": _classes,
}
