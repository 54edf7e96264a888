"""The tables of a report: slowdowns by flow size, settings by group, runs, and their file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dcqcn_gym.core.interval import FloatArray, IntArray
from dcqcn_gym.core.knobs import (
    GROUP_TITLES,
    KNOBS,
    REFERENCE_RATE_BPS,
    Knob,
    KnobTable,
    default_setting,
    expert_setting,
)
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
from dcqcn_gym.report.data import SAME, ReportData, cluster_setting
from dcqcn_gym.report.metrics import mean_utility
from dcqcn_gym.report.paired import paired_rows
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import REFERENCES
from dcqcn_gym.runs.log import RunDir
from dcqcn_gym.runs.results import write_results


def write_run_results(data: ReportData, page: Mapping[str, Any]) -> Path:
    """Write what the page shows into the run's directory; ``page`` are the values it was made of.

    One row per setting on held-out seeds: default, expert and candidate. What was drawn per
    interval is in the run's log.
    """
    header = data.run.header
    runs = data.held_out
    tuned = {**data.references, "tuned": data.run}
    scenario, tuner = header.get("scenario"), str(header.get("tuner", ""))
    return write_results(
        data.directory,
        "tune",
        paired_rows(runs, REFERENCES),
        scenarios=[scenario] if isinstance(scenario, Mapping) else [],
        tuners={tuner: (tuner, header.get("tuner_args") or {})},
        seeds={"run": [header.get("seed", 0)], "held_out": data.seeds},
        figures={
            "answer": page["best"].answer.data(),
            "evidence": page["headline"],
            "judged": page["judged"],
            "notes": page["notes"],
            "finished": data.finished,
            "intervals": len(data.run),
            "utility_while_tuning": {name: mean_utility(one) for name, one in tuned.items()},
            "utility_per_seed": {n: list(map(mean_utility, found)) for n, found in runs.items()},
            "slowdown_while_tuning": page["during"],
            "slowdown_on_held_out_seeds": page["held_out"],
            "unfinished_while_tuning": dict(page["during_unfinished"]),
            "unfinished_on_held_out_seeds": dict(page["held_out_unfinished"]),
            "collectives": page["collectives"],
            "applications": page["more"]["applications"],
            "network": page["more"]["network"],
            "setting": [
                {"knob": row.knob.name, "unit": row.knob.unit, "default": row.default,
                 "expert": row.expert, "candidate": row.candidate}
                for _, rows in setting_rows(data) for row in rows
            ],
        },
    )  # fmt: skip


@dataclass(frozen=True)
class KnobRow:
    """One line of the table of settings, in NVIDIA's units."""

    knob: Knob
    default: float
    expert: float
    candidate: float | None

    @property
    def changed(self) -> bool:
        """True if the candidate's value is not the default's (beyond rounding)."""
        return self.candidate is not None and not math.isclose(self.candidate, self.default)


def knob_groups(
    rate: float, table: KnobTable, found: Mapping[str, float]
) -> list[tuple[str, list[KnobRow]]]:
    """Return the rows of a setting by the groups of knobs, beside default and expert."""
    default, expert = default_setting(rate, table), expert_setting(rate, table)
    groups: dict[str, list[KnobRow]] = {}
    for name, row in table.knobs.items():
        groups.setdefault(GROUP_TITLES[row.group], []).append(
            KnobRow(row, default[name], expert[name], found.get(name))
        )
    return list(groups.items())


def setting_rows(
    data: ReportData, setting: Mapping[str, Any] | None = None
) -> list[tuple[str, list[KnobRow]]]:
    """Return the rows of a setting of the whole cluster, by default of what the run found."""
    rate = REFERENCE_RATE_BPS if data.scenario is None else data.scenario.line_rate_bps
    found = data.recommended or {} if setting is None else cluster_setting(setting)
    return knob_groups(rate, data.knob_table, found)


@dataclass(frozen=True)
class TabledRun:
    """One log: what ran, on which traffic seed, what came of it, and the file beside the page."""

    setting: str
    seed: int
    intervals: int
    utility: float
    finished_flows: int
    unfinished: int
    log: Path
    """Relative to the run's directory."""


def recorded_runs(data: ReportData) -> list[TabledRun]:
    """Return the tuned run, the references on its traffic, then the runs on held-out seeds."""
    return list(_found(data))


def _found(data: ReportData) -> Iterator[TabledRun]:
    out = RunDir(data.directory)
    seed = int(data.run.header.get("seed", 0))
    tuner = str(data.run.header.get("tuner", "tuned"))

    def run(setting: str, seed: int, series: Series, path: Path) -> TabledRun:
        return TabledRun(
            setting,
            seed,
            len(series),
            mean_utility(series),
            int(series.fct_ps.size),
            series.unfinished,
            path.relative_to(data.directory),
        )

    yield run(f"{tuner}, as it searched", seed, data.run, out.log)
    for name, series in data.references.items():
        yield run(name, seed, series, out.reference(name))
    for name in sorted(data.evaluation, key=lambda n: (n != "recommended", n)):
        for held_out, series in sorted(data.evaluation[name].items()):
            yield run(
                "candidate" if name == "recommended" else name,
                held_out,
                series,
                out.evaluation(name, held_out),
            )


@dataclass(frozen=True)
class GroupTable:
    """Knobs that some group sets on its own, and one line per group, in NVIDIA's units."""

    columns: tuple[str, ...]
    """Name and unit of each knob; the name alone of another scheme's."""
    lines: tuple[tuple[str, tuple[float, ...]], ...]


def group_table(recommended: Mapping[str, Any]) -> GroupTable | None:
    """Return the table for a logged recommendation; None if it is one setting for all devices."""
    if "cluster" not in recommended:
        return None
    cluster = recommended["cluster"]
    knobs = [k for k in cluster if len({group[k] for group in recommended.values()}) > 1]
    lines = tuple(
        (name, tuple(float(group[knob]) for knob in knobs)) for name, group in recommended.items()
    )
    units = {knob: KNOBS[knob].unit.replace("us", "µs") for knob in knobs if knob in KNOBS}
    return GroupTable(tuple(f"{k} [{units[k]}]" if k in units else k for k in knobs), lines)


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


def held_out_table(data: ReportData) -> list[BinTable]:
    """Return slowdowns on held-out seeds: means of per-seed statistics, changes paired by seed."""
    if not data.seeds:
        return []
    runs = data.held_out
    tables = _bins({OURS: runs["candidate"], **{name: runs[name] for name in REFERENCES}})
    if data.judged_on != SAME:
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
    return [int(np.count_nonzero(size_bin.holds(size))) for size, _ in flows]


def _row(
    name: str,
    percentile: float | None,
    size_bin: SizeBin,
    every: Mapping[str, Sequence[RunFlows]],
    finished: Mapping[str, Sequence[RunFlows]],
    fewest: int,
) -> StatisticRow:
    values, done = (
        {k: slowdown_by_seed(flows, size_bin, name) for k, flows in kind.items()}
        for kind in (every, finished)
    )
    change = {
        r: paired_change(values[OURS], values[r], relative=True) for r in REFERENCES if r in values
    }
    all_of, of = ({k: estimate(v).mean for k, v in kind.items()} for kind in (values, done))
    return StatisticRow(
        name, all_of.get("default"), all_of.get("expert"), all_of[OURS],
        change.get("default"), change.get("expert"),
        of.get("default"), of.get("expert"), of[OURS], _few(fewest, percentile),
    )  # fmt: skip
