"""The tables of applications: IOPS, iterations/s, rounds/s and job times by setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from dcqcn_gym.core.applications import summary_of_applications
from dcqcn_gym.core.statistics import Estimate, estimate, paired_change
from dcqcn_gym.core.sums import count
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.table import Table, with_interval

Summary = Mapping[str, Any]


@dataclass(frozen=True)
class ApplicationRow:
    """One setting: estimates over its runs, of none where no run has it."""

    setting: str
    operations: int
    per_s: Estimate
    reads_per_s: Estimate
    job_ns: Estimate
    against_default: Estimate | None
    """Relative change of the rate, over the runs that have one."""


@dataclass(frozen=True)
class ApplicationTable:
    """One application of the scenario, a row per setting."""

    title: str
    unit: str
    rows: Sequence[ApplicationRow]


def applications_of_run(run: Series) -> dict[int, Summary]:
    """Return what the applications of one run got done, by workload."""
    done, rounds = (
        list(chain.from_iterable(r.get(key, ()) for r in run.records))
        for key in ("applications", "rounds")
    )
    return {s["workload"]: s for s in summary_of_applications(done, rounds)}


def mean_applications(runs: Sequence[Mapping[int, Summary]]) -> list[Summary]:
    """Return a summary per application for several runs: operations together, means of the rest."""
    means: list[Summary] = []
    for w in sorted({w for one in runs for w in one}):
        ours = [one[w] for one in runs if w in one]
        figures = {key: _estimate(ours, key).mean for key in ("per_s", "reads_per_s", "job_ns")}
        known = {key: None if math.isnan(v) else v for key, v in figures.items() if key in ours[0]}
        operations = count(s["operations"] for s in ours)
        means.append({**ours[0], "operations": operations, **known})
    return means


def application_tables(
    runs: Mapping[str, Sequence[Mapping[int, Summary]]],
) -> list[ApplicationTable]:
    """Return a table per application; ``runs`` are what :func:`applications_of_run` gives for each
    run of a setting, the same seeds in the same order for all.
    """
    seen = {w: s for many in runs.values() for one in many for w, s in one.items()}
    return [
        ApplicationTable(f"{s['application']} (workload {w})", s["unit"], _rows(runs, w))
        for w, s in sorted(seen.items())
    ]


def _rows(runs: Mapping[str, Sequence[Mapping[int, Summary]]], w: int) -> list[ApplicationRow]:
    default = runs.get("default")
    rows = []
    for name, many in runs.items():
        ours = [one[w] for one in many if w in one]
        rows.append(
            ApplicationRow(
                name,
                count(s["operations"] for s in ours),
                _estimate(ours, "per_s"),
                _estimate(ours, "reads_per_s"),
                _estimate(ours, "job_ns"),
                None if default is None or name == "default" else _change(many, default, w),
            )
        )
    return rows


def _estimate(summaries: Sequence[Summary], key: str) -> Estimate:
    return estimate([float(s[key]) for s in summaries if s.get(key) is not None])


def _change(
    ours: Sequence[Mapping[int, Summary]], default: Sequence[Mapping[int, Summary]], w: int
) -> Estimate | None:
    mine, theirs = (
        np.array([one.get(w, {}).get("per_s") for one in many], dtype=np.float64)  # NaN for None
        for many in (ours, default)
    )
    change = paired_change(mine, theirs, relative=True)
    return change if change.n else None


def grid_of(table: ApplicationTable, title: str) -> Table:
    """Return the table as cells; the column of reads is there for storage alone."""
    reads = any(not math.isnan(row.reads_per_s.mean) for row in table.rows)
    columns = ["setting", "over", table.unit, *(["reads/s"] if reads else []), "against default",
               "time of the job, ms"]  # fmt: skip
    return Table(columns, [_cells(row, reads=reads) for row in table.rows], title)


def _cells(row: ApplicationRow, *, reads: bool) -> list[str]:
    return [
        row.setting,
        str(row.operations),
        with_interval(row.per_s, ".5g"),
        *([with_interval(row.reads_per_s, ".5g")] if reads else []),
        with_interval(row.against_default, "+.1f", 100, unit=" %", style="brackets"),
        with_interval(row.job_ns, ".4g", 1e-6),
    ]
