"""The two tables of FCT slowdown by flow size: during the run, and on fresh seeds."""

from __future__ import annotations

from dataclasses import dataclass

from dcqcn_gym.core.statistics import (
    SIZE_BINS,
    STATISTICS,
    Estimate,
    estimate,
    paired_change,
    slowdown_by_seed,
    slowdown_by_size,
)
from dcqcn_gym.core.sums import count
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.runs.rows import REFERENCES

__all__ = ["BinTable", "StatisticRow", "during_table", "fresh_table"]


@dataclass(frozen=True)
class StatisticRow:
    """One statistic of one size bin: a value per setting, and our change against each reference."""

    statistic: str
    default: float | None
    expert: float | None
    ours: float | None
    against_default: Estimate | None
    against_expert: Estimate | None
    few: bool
    """True if the bin has too few flows for this percentile (less than one in the tail)."""


@dataclass(frozen=True)
class BinTable:
    """All statistics of one size bin; ``flows`` counts ours."""

    label: str
    flows: int
    rows: list[StatisticRow]


def _few(count: int, percentile: float | None) -> bool:
    return percentile is not None and count * (100 - percentile) < 100


def during_table(data: ReportData) -> list[BinTable]:
    """Return slowdowns of the flows that finished during the run, against the same traffic."""
    runs = {"ours": data.run, **{n: s for n, s in data.references.items() if len(s)}}
    n = min(len(series) for series in runs.values())
    tables = {name: slowdown_by_size(*s.first(n).flows) for name, s in runs.items()}
    result = []
    for i, size_bin in enumerate(SIZE_BINS):
        ours = tables["ours"][i]
        if not any(table[i].count for table in tables.values()):
            continue
        rows = []
        for name, percentile in STATISTICS.items():
            theirs = {r: tables[r][i].value(name) for r in REFERENCES if r in tables}
            change = {
                r: paired_change([ours.value(name)], [v], relative=True) for r, v in theirs.items()
            }
            rows.append(
                StatisticRow(
                    name, theirs.get("default"), theirs.get("expert"), ours.value(name),
                    change.get("default"), change.get("expert"), _few(ours.count, percentile),
                )
            )  # fmt: skip
        result.append(BinTable(size_bin.label, ours.count, rows))
    return result


def fresh_table(data: ReportData) -> list[BinTable]:
    """Return slowdowns on fresh seeds: means of the per-seed statistics, changes paired by seed."""
    seeds = data.seeds
    if not seeds:
        return []
    flows = {
        name: [data.evaluation[name][seed].flows for seed in seeds]
        for name in ("recommended", *REFERENCES)
    }
    result = []
    for size_bin in SIZE_BINS:
        counts = [slowdown_by_size(*f, [size_bin])[0].count for f in flows["recommended"]]
        if not count(counts):
            continue
        rows = []
        for name, percentile in STATISTICS.items():
            per_seed = {k: slowdown_by_seed(v, size_bin, name) for k, v in flows.items()}
            ours = per_seed["recommended"]
            default, expert = (paired_change(ours, per_seed[r], relative=True) for r in REFERENCES)
            means = {k: estimate(v).mean for k, v in per_seed.items()}
            rows.append(
                StatisticRow(
                    name, means["default"], means["expert"], means["recommended"],
                    default, expert, _few(min(counts), percentile),
                )
            )  # fmt: skip
        result.append(BinTable(size_bin.label, count(counts), rows))
    return result
