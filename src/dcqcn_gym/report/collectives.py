"""The tables of collectives: how long a round takes, while tuning and on held-out traffic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from dcqcn_gym.core.collectives import no_round, summary_of_parts, summary_of_rounds
from dcqcn_gym.core.statistics import Estimate, paired_change
from dcqcn_gym.envs.scenario.workloads import collectives_of
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import REFERENCES

Summary = Mapping[str, Any]


@dataclass(frozen=True)
class CollectiveRow:
    """One setting: its finished rounds, perhaps none, and its mean time against the default's."""

    setting: str
    summary: Summary | None
    against_default: Estimate | None


@dataclass(frozen=True)
class CollectiveTable:
    """One collective of the scenario; rows while tuning, and pooled over the held-out seeds."""

    title: str
    workload: int
    during: list[CollectiveRow]
    held_out: list[CollectiveRow]


def collective_tables(data: ReportData) -> list[CollectiveTable]:
    """Return a table per collective; empty if the log has no finished round."""
    during: dict[str, Sequence[Series]] = {
        name: [data.references[name]] for name in REFERENCES if name in data.references
    }
    during[str(data.run.header.get("tuner", "tuned"))] = [data.run]
    parts = (during, data.held_out)
    tables = [{name: _Rounds.of(runs) for name, runs in part.items()} for part in parts]
    seen = {w: s for rounds in tables[0].values() for w, s in rounds.pooled.items()}
    return [
        CollectiveTable(_title(seen[w]), w, *(_rows(table, w) for table in tables))
        for w in sorted(seen)
    ]


def unfinished_rounds(data: ReportData) -> list[str]:
    """Return a sentence per collective without a finished round while tuning."""
    scenario = data.scenario
    if scenario is None:
        return []
    rounds = _Rounds.of([data.run]).pooled
    alone = len(scenario.workloads) == 1
    delivered = float(np.nansum(data.run.column("delivered_bytes"))) if alone else None
    return [
        no_round(
            {"collective": c.kind, "ranks": c.ranks, "bytes": c.bytes}, len(data.run), delivered
        )
        for c in collectives_of(scenario.workloads, scenario.fabric)
        if c.workload not in rounds
    ]


def _title(s: Summary) -> str:
    return f"{s['collective']} of {s['ranks']} ranks, {s['bytes'] / 1e6:g} MB each"


@dataclass(frozen=True)
class _Rounds:
    """The summaries of one setting by workload: of each of its runs, and of all together."""

    each: Sequence[Mapping[int, Summary]]
    pooled: Mapping[int, Summary]
    drawn: bool

    @classmethod
    def of(cls, runs: Sequence[Series]) -> _Rounds:
        logged = [_logged(run, "rounds") for run in runs]
        drawn = all(run.drawn for run in runs)
        parts = list(chain.from_iterable(_logged(run, "jobs") for run in runs))
        pooled = {
            w: {**s, **summary_of_parts([part for part in parts if part["workload"] == w])}
            for w, s in _by_workload(chain(*logged)).items()
        }
        return cls([_by_workload(rounds) for rounds in logged], pooled, drawn)


def _logged(run: Series, key: str) -> list[Mapping[str, Any]]:
    return [one for record in run.records for one in record.get(key, ())]


def _by_workload(rounds: Iterable[Mapping[str, Any]]) -> dict[int, Summary]:
    return {s["workload"]: s for s in summary_of_rounds(rounds)}


def _rows(rounds: Mapping[str, _Rounds], workload: int) -> list[CollectiveRow]:
    default = rounds.get("default")
    return [
        CollectiveRow(name, ours.pooled.get(workload), _change(ours, default, workload))
        for name, ours in rounds.items()
    ]


def _change(ours: _Rounds, default: _Rounds | None, workload: int) -> Estimate | None:
    """Return the relative change of the mean time of a round, over the seeds that have rounds."""
    if default is None or default is ours:
        return None
    mine, theirs = (
        [one[workload]["time_ns_mean"] if workload in one else math.nan for one in rounds.each]
        for rounds in (ours, default)
    )
    change = paired_change(mine, theirs, relative=True)
    if not change.n:
        return None
    return change if ours.drawn else change.of_one_trace()
