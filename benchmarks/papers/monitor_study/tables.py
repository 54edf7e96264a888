"""What `dcqcn-gym paper monitors` shows: gates, accuracy and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import MEASURES
from dcqcn_gym.benchmarks.papers.monitor_study.gates import gates, value
from dcqcn_gym.benchmarks.papers.monitor_study.study import (
    KIND,
    MONITORS,
    REFERENCE_LOAD,
    MonitorResult,
    MonitorStudy,
    results_of,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.chart import Chart
from dcqcn_gym.report.figures import Line, lines_figure
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.campaign import JsonJob
from dcqcn_gym.runs.markdown import Marked
from dcqcn_gym.runs.results import write_results
from dcqcn_gym.runs.study import Study
from dcqcn_gym.runs.table import Table

ROLES = {"elastic": "tuned", "elastic-naive": "expert", "netflow": "default"}
Cells = Sequence[str]


def write_all(plan: MonitorStudy, study: Study[JsonJob], out: Path) -> list[Table]:
    """Write ``results.json`` and the figures of a finished study; return its tables.

    ``results.json`` has an entry per monitor, load, interval length and seed.
    """
    table = results_of(study)
    for name, figure in _figures(plan, table).items():
        write_atomically(out / f"monitor-{name}.svg", figure.file().encode())
    write_results(
        out,
        KIND,
        table,
        scenarios=[
            load_scenario(name) for name in sorted({plan.scenario, plan.rounds, plan.long} - {""})
        ],
        seeds={"runs": plan.seeds},
        figures={
            "plan": plan.model_dump(mode="json"),
            "gates": gates(table),
        },
    )
    return [gate_table(table), *_tables(plan, table), cost_table(table)]


def gate_table(table: Sequence[MonitorResult]) -> Table:
    """Return what the accuracies have to show, and whether they do."""
    lines = [
        (g.what, f"{g.worst:+.3f}", "yes" if g.holds else Marked("**no**")) for g in gates(table)
    ]
    return Table(("gate", "margin of the worst seed", "holds"), lines)


def _tables(plan: MonitorStudy, table: Sequence[MonitorResult]) -> list[Table]:
    titles = {
        "load": f"{plan.scenario}, {plan.length_ms} ms after {plan.warmup_ms} ms",
        "rounds": f"{plan.rounds}: all-to-all rounds",
        "long": f"{plan.long}, {plan.long_ms} ms, 1 ms intervals: exports of a second",
    }
    found = {row.group for row in table}
    columns = ["load", "interval", "monitor", *MEASURES, "spread of label"]
    return [Table(columns, accuracy_lines(table, g), titles[g], 3) for g in titles if g in found]


def _monitors(table: Sequence[MonitorResult]) -> list[str]:
    """Return who is in the table: the engine's monitors first, in their order."""
    found = dict.fromkeys(row.monitor for row in table)
    return [*(name for name in MONITORS if name in found), *(n for n in found if n not in MONITORS)]


def accuracy_lines(table: Sequence[MonitorResult], group: str) -> list[Cells]:
    """Return one line per load, interval and monitor: means over the seeds, spread of the first."""
    lines: list[Cells] = []
    places = sorted({(r.load or 0, r.interval_ms) for r in table if r.group == group})
    for load, interval in places:
        for monitor in _monitors(table):
            at: dict[str, Any] = {
                "group": group, "monitor": monitor, "interval_ms": interval, "load": load or None
            }  # fmt: skip
            means = [value(table, measure, **at) for measure in MEASURES]
            if means[0] is None:
                continue
            labels = [
                r.label for r in table
                if (r.group, r.monitor, r.interval_ms, r.load)
                == (group, monitor, interval, load or None)
            ]  # fmt: skip
            spread = max(labels) - min(labels)
            first = f"{load} %" if load else "–"
            lines.append([first, f"{interval} ms", monitor, *map(_share, means), f"{spread:.3f}"])
    return lines


def _share(number: float | None) -> str:
    return "–" if number is None else f"{number:.3f}"


COSTS = (
    "monitor", "sent per interval, B", "counters, MB", "flow histories, MB",
    "flows tracked, most", "flows turned away",
)  # fmt: skip


def cost_table(table: Sequence[MonitorResult]) -> Table:
    """Return what each monitor costs at the reference load and 1 ms, over all ToRs."""
    lines: list[Cells] = []
    for monitor in _monitors(table):
        found = [
            r for r in table
            if (r.monitor, r.interval_ms, r.load) == (monitor, 1, REFERENCE_LOAD)
        ]  # fmt: skip
        if found:
            lines.append([
                monitor,
                f"{np.mean([r.wire_bytes for r in found]):.0f}",
                f"{max(r.memory_bytes for r in found) / 1e6:.2f}",
                f"{max(r.state_bytes for r in found) / 1e6:.2f}",
                f"{max(r.tracked_flows for r in found)}",
                f"{max(r.untracked_flows for r in found)}",
            ])  # fmt: skip
    return Table(COSTS, lines, "costs at the reference load and 1 ms, all ToRs together")


def _figures(plan: MonitorStudy, table: Sequence[MonitorResult]) -> dict[str, Chart]:
    made: dict[str, Chart] = {}
    curves: Mapping[str, tuple[str, Iterable[int], str]] = {
        "load": ("load of the host links, %", sorted(plan.loads), "load"),
        "interval": ("monitor interval, ms", sorted(plan.intervals_ms), "interval_ms"),
    }
    for name, (x_label, xs, key) in curves.items():
        panels = [
            (title, _curves(table, measure, list(xs), key))
            for title, measure in (("Label accuracy", "label"), ("Elephant recall", "recall"))
        ]
        if all(len(line.x) for _, lines in panels for line in lines):
            made[name] = lines_figure(panels, x_label, 190)
    return made


def _curves(table: Sequence[MonitorResult], measure: str, xs: list[int], key: str) -> list[Line]:
    lines = []
    for monitor, role in ROLES.items():
        points = []
        for x in xs:
            at = {"load": REFERENCE_LOAD, "interval_ms": 1, key: x}
            mean = value(table, measure, group="load", monitor=monitor, **at)
            if mean is not None:
                points.append((float(x), mean))
        array = np.array(points).reshape(-1, 2)
        lines.append(Line(role, monitor, array[:, 0], array[:, 1]))
    return lines


def markdown(plan: MonitorStudy, table: Sequence[MonitorResult]) -> str:
    """Return the gates and the accuracies as Markdown tables."""
    parts = [gate_table(table).markdown()]
    for one in _tables(plan, table):
        places = {(line[0], line[1]) for line in one.rows}
        grid = _by_place(one.rows) if len(places) > 1 else _by_monitor(one.rows)
        parts.append(f"**{one.title}** (means over {len(plan.seeds)} seeds)\n\n{grid}")
    return "\n\n".join(parts) + "\n"


def _by_place(lines: Sequence[Cells]) -> str:
    """Return label accuracy and recall, one line per load and interval."""
    monitors = list(dict.fromkeys(line[2] for line in lines))
    at = {(line[0], line[1], line[2]): line for line in lines}
    head = ["load", "interval", *(f"{m}: label" for m in monitors)]
    head += [f"{m}: recall" for m in monitors]
    cells = [
        [*place, *(at[(*place, m)][k] if (*place, m) in at else "" for k in (3, 6)
                   for m in monitors)]
        for place in dict.fromkeys((line[0], line[1]) for line in lines)
    ]  # fmt: skip
    return Table(head, cells).markdown()


def _by_monitor(lines: Sequence[Cells]) -> str:
    """Return every measure of one load and interval, one line per monitor."""
    head = ["monitor", *MEASURES, "spread of label"]
    return Table(head, [line[2:] for line in lines]).markdown()
