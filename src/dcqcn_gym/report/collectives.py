"""The tables of collectives: how long a round takes, while tuning and on fresh traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.collectives import summary_of_rounds
from dcqcn_gym.report.data import REFERENCES, ReportData, Series
from dcqcn_gym.statistics import Estimate, paired_change

__all__ = ["CollectiveRow", "CollectiveTable", "collective_tables"]

Summary = Mapping[str, Any]


@dataclass(frozen=True)
class CollectiveRow:
    """One setting: its finished rounds, perhaps none, and its mean time against the default's."""

    setting: str
    summary: Summary | None
    against_default: Estimate | None


@dataclass(frozen=True)
class CollectiveTable:
    """One collective of the scenario; rows while tuning, and pooled over the fresh seeds."""

    title: str
    during: list[CollectiveRow]
    fresh: list[CollectiveRow]


def collective_tables(data: ReportData) -> list[CollectiveTable]:
    """Return a table per collective; empty if the log has no finished round."""
    during: dict[str, Sequence[Series]] = {
        name: [data.references[name]] for name in REFERENCES if name in data.references
    }
    during[str(data.run.header.get("tuner", "tuned"))] = [data.run]
    fresh: dict[str, Sequence[Series]] = {
        name: [data.evaluation[name][seed] for seed in data.seeds]
        for name in (*REFERENCES, "recommended")
        if data.seeds
    }
    seen = {s["workload"]: s for s in _summaries([r for runs in during.values() for r in runs])}
    return [
        CollectiveTable(_title(seen[w]), _rows(during, w), _rows(fresh, w)) for w in sorted(seen)
    ]


def _title(s: Summary) -> str:
    return f"{s['collective']} of {s['ranks']} ranks, {s['bytes'] / 1e6:g} MB each"


def _summaries(runs: Sequence[Series]) -> Sequence[Summary]:
    return summary_of_rounds(
        done for run in runs for record in run.records for done in record.get("rounds", ())
    )


def _rows(runs: Mapping[str, Sequence[Series]], workload: int) -> list[CollectiveRow]:
    rows = []
    for name, series in runs.items():
        summary = next((s for s in _summaries(series) if s["workload"] == workload), None)
        change = None if name == "default" else _change(series, runs.get("default"), workload)
        rows.append(CollectiveRow(name, summary, change))
    return rows


def _change(
    ours: Sequence[Series], default: Sequence[Series] | None, workload: int
) -> Estimate | None:
    """Return the relative change of the mean time of a round, over the seeds that have rounds."""
    if default is None:
        return None
    times = [
        (_mean_time(a, workload), _mean_time(b, workload))
        for a, b in zip(ours, default, strict=True)
    ]
    pairs = [(a, b) for a, b in times if a is not None and b is not None]
    if not pairs:
        return None
    return paired_change([a for a, _ in pairs], [b for _, b in pairs], relative=True)


def _mean_time(run: Series, workload: int) -> float | None:
    return next((s["time_ns_mean"] for s in _summaries([run]) if s["workload"] == workload), None)
