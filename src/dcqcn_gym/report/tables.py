"""The two tables of FCT slowdown by flow size: during the run, and on fresh seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dcqcn_gym.core.statistics import (
    SIZE_BINS,
    STATISTICS,
    Estimate,
    SizeBin,
    estimate,
    paired_change,
    slowdown_by_seed,
)
from dcqcn_gym.core.sums import count
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.series import FloatArray, IntArray, Series
from dcqcn_gym.runs.rows import REFERENCES

__all__ = ["BinTable", "StatisticRow", "during_table", "fresh_table"]

RunFlows: TypeAlias = tuple[IntArray, FloatArray]
"""Sizes and slowdowns of the flows of one run."""

OURS = "ours"


@dataclass(frozen=True)
class StatisticRow:
    """One statistic of one size bin: a value per setting, and our change against each reference.

    Of all flows, unfinished ones at their age; ``finished_*`` are those of finished flows alone.
    """

    statistic: str
    default: float | None
    expert: float | None
    ours: float | None
    against_default: Estimate | None
    against_expert: Estimate | None
    finished_default: float | None
    finished_expert: float | None
    finished_ours: float | None
    few: bool
    """True if the bin has too few flows for this percentile (less than one in the tail)."""


@dataclass(frozen=True)
class BinTable:
    """All statistics of one size bin; ``flows`` counts ours, ``finished`` those that finished."""

    label: str
    flows: int
    finished: int
    rows: list[StatisticRow]


def _few(count: int, percentile: float | None) -> bool:
    return percentile is not None and count * (100 - percentile) < 100


def during_table(data: ReportData) -> list[BinTable]:
    """Return slowdowns of the flows of the tuning run, search included, on the same traffic."""
    runs = {OURS: [data.run], **{n: [s] for n, s in data.references.items() if len(s)}}
    n = min(len(series) for (series,) in runs.values())
    return _bins({name: [series.first(n)] for name, (series,) in runs.items()})


def fresh_table(data: ReportData) -> list[BinTable]:
    """Return slowdowns on fresh seeds: means of the per-seed statistics, changes paired by seed."""
    if not data.seeds:
        return []
    names = {OURS: "recommended", **{name: name for name in REFERENCES}}
    tables = _bins(
        {key: [data.evaluation[name][seed] for seed in data.seeds] for key, name in names.items()}
    )
    if data.run.drawn:
        return tables
    return [replace(table, rows=list(map(_of_one_trace, table.rows))) for table in tables]


def _of_one_trace(row: StatisticRow) -> StatisticRow:
    changes = row.against_default, row.against_expert
    default, expert = (None if change is None else change.of_one_trace() for change in changes)
    return replace(row, against_default=default, against_expert=expert)


def _bins(runs: Mapping[str, Sequence[Series]]) -> list[BinTable]:
    every = {name: [one.every_flow for one in series] for name, series in runs.items()}
    finished = {name: [one.flows for one in series] for name, series in runs.items()}
    tables = []
    for size_bin in SIZE_BINS:
        seen, done = (_counts(flows[OURS], size_bin) for flows in (every, finished))
        if not any(count(_counts(flows, size_bin)) for flows in finished.values()) and not any(
            count(_counts(flows, size_bin)) for flows in every.values()
        ):
            continue
        rows = [
            _row(name, percentile, size_bin, every, finished, min(seen if any(seen) else done))
            for name, percentile in STATISTICS.items()
        ]
        tables.append(BinTable(size_bin.label, count(seen), count(done), rows))
    return tables


def _counts(flows: Sequence[RunFlows], size_bin: SizeBin) -> list[int]:
    return [
        int(np.count_nonzero((size >= size_bin.low) & (size < size_bin.high))) for size, _ in flows
    ]


def _row(
    name: str,
    percentile: float | None,
    size_bin: SizeBin,
    every: Mapping[str, Sequence[RunFlows]],
    finished: Mapping[str, Sequence[RunFlows]],
    fewest: int,
) -> StatisticRow:
    values = {k: slowdown_by_seed(flows, size_bin, name) for k, flows in every.items()}
    change = {
        r: paired_change(values[OURS], values[r], relative=True) for r in REFERENCES if r in values
    }
    all_of, of = (
        {k: estimate(slowdown_by_seed(flows, size_bin, name)).mean for k, flows in kind.items()}
        for kind in (every, finished)
    )
    return StatisticRow(
        name, all_of.get("default"), all_of.get("expert"), all_of[OURS],
        change.get("default"), change.get("expert"),
        of.get("default"), of.get("expert"), of[OURS], _few(fewest, percentile),
    )  # fmt: skip
