"""Where the time of a job's iterations goes, by setting: tables, stragglers, timelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from markupsafe import Markup

from dcqcn_gym.core.iterations import COMPUTING, Part
from dcqcn_gym.report.axes import linear_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.collectives import CollectiveRow, CollectiveTable, Summary
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.figures import Line, lines_figure
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.table import MISSING, Table, number

_LANE = 15
_MOST = 16


@dataclass(frozen=True)
class JobBlock:
    """One job: what the page shows of it."""

    title: str
    grids: Sequence[Table]
    late: Markup
    timeline: Markup


def job_blocks(data: ReportData, tables: Sequence[CollectiveTable]) -> list[JobBlock]:
    """Return a block per job with a finished iteration: on held-out seeds, else while tuning."""
    return [block for table in tables if (block := _block(data, table)) is not None]


def _block(data: ReportData, table: CollectiveTable) -> JobBlock | None:
    held_out = _with_parts(table.held_out)
    rows = held_out or _with_parts(table.during)
    if not rows:
        return None
    tuner = str(data.run.header.get("tuner", "tuned"))
    during = {**{n: [s] for n, s in data.references.items()}, tuner: [data.run]}
    runs: Mapping[str, Sequence[Series]] = data.held_out if held_out else during
    drawn = {n: p for n in rows for run in runs[n][:1] for p in _last(run, table.workload)}
    longest = max((part["time_ps"] for part in drawn.values()), default=0)
    panels = [timeline_panel(p, name, longest) for name, p in drawn.items() if name != "expert"]
    late = [
        Line(_role(name), name, np.arange(len(s["by_rank"]), dtype=np.float64),
             np.array([one["late_ns"] for one in s["by_rank"]]) * 1e-3)
        for name, s in rows.items()
    ]  # fmt: skip
    title = "Done after the first rank of its collectives, µs an iteration"
    return JobBlock(
        table.title,
        part_tables(rows),
        lines_figure([(title, late)], "rank").html(),
        Chart(panels).html() if panels else Markup(),
    )


def _with_parts(rows: Sequence[CollectiveRow]) -> dict[str, Summary]:
    return {row.setting: row.summary for row in rows if row.summary and "by_rank" in row.summary}


def _role(setting: str) -> str:
    return setting if setting in ("default", "expert") else "tuned"


def _last(run: Series, workload: int) -> Iterator[Part]:
    """Yield the last iteration of a run that has a timeline, if there is one."""
    for record in reversed(run.records):
        for part in reversed(record.get("jobs", ())):
            if part["workload"] == workload and "timeline" in part:
                yield part
                return


def part_tables(summaries: Mapping[str, Summary]) -> list[Table]:
    """Return where the time goes, and bus bandwidths, of one job by setting."""
    job = f"Job {next(iter(summaries.values()))['workload']}"
    return [
        replace(table, title=f"{job}: {table.title}")
        for table in (_parts(summaries), _busbw(summaries))
    ]


def _parts(summaries: Mapping[str, Summary]) -> Table:
    """Return the means over ranks in ms, and the rank that is done last."""
    kinds = list(dict.fromkeys(kind for s in summaries.values() for kind in s["exposed_ns"]))
    columns = ["setting", "iteration", COMPUTING, *(f"exposed {kind}" for kind in kinds),
               "waiting", "latest rank"]  # fmt: skip
    return Table(columns, [
        [name, *(number(ns * 1e-6) for ns in (
            s["time_ns_mean"], s["computing_ns"], *(s["exposed_ns"].get(k, 0.0) for k in kinds),
            s["waiting_ns"])), _latest(s["by_rank"])]
        for name, s in summaries.items()
    ], "where the time goes, ms of an iteration, mean over ranks")  # fmt: skip


def _latest(ranks: Sequence[Mapping[str, float]]) -> str:
    late = [one["late_ns"] for one in ranks]
    most = max(range(len(late)), key=late.__getitem__)
    return f"{most}: {number(late[most] * 1e-6)}" if late[most] else MISSING


def _busbw(summaries: Mapping[str, Summary]) -> Table:
    """Return the bandwidth of each collective and size by setting, most bytes first."""
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for name, summary in summaries.items():
        for one in summary["busbw"]:
            key = one["collective"], one["ranks"], one["bytes"] or 0
            found.setdefault(key, {})[name] = one
    times = {key: next(iter(of.values()))["times"] for key, of in found.items()}
    keys = sorted(found, key=lambda k: (-k[1] * k[2] * times[k], k))[:_MOST]
    return Table(
        ["collective", "ranks", "bytes", "an iteration", *(f"{name}, GB/s" for name in summaries)],
        [
            [key[0], str(key[1]), f"{key[2]:,}" if key[2] else MISSING, number(times[key]),
             *(number(found[key].get(n, {}).get("busbw_gbytes_per_s")) for n in summaries)]
            for key in keys
        ],
        "bus bandwidth by collective and size",
    )  # fmt: skip


def timeline_panel(part: Part, name: str, longest: int = 0) -> Panel:
    """Draw one iteration: of each rank computation above, collectives and messages below.

    The axis reaches to ``longest`` ps if that is more.
    """
    drawn, length = part["timeline"], part["time_ps"] * 1e-9
    ranks, kinds = drawn["ranks"], drawn["kinds"]
    panel = Panel(
        f"{name}: {number(length)} ms of an iteration, by rank: computation above, transfers below",
        linear_axis([np.array([0.0, max(length, longest * 1e-9)])], exact=True, wanted=6),
        named_axis([str(rank) for rank, _, _ in ranks], down=True),
        30 + _LANE * len(ranks),
        "ms",
    )
    for k, kind in enumerate(kinds):
        key = Key("default" if k == 0 else f"c{(k - 1) % 8}", kind)
        panel.bars(key, [
            (start * length, stop * length, i + low, i + low + 0.4)
            for i, (_, *lanes) in enumerate(ranks)
            for lane, low in zip(lanes, (-0.42, 0.02), strict=True)
            for start, stop in _runs(lane, chr(ord("a") + k))
        ])  # fmt: skip
    return panel


def _runs(lane: str, letter: str) -> Iterator[tuple[float, float]]:
    """Yield where a letter begins and ends, as shares of the lane."""
    at = 0
    for found, many in groupby(lane):
        n = len(list(many))
        if found == letter:
            yield at / len(lane), (at + n) / len(lane)
        at += n
