"""The page of `dcqcn-gym paper monitors`: accuracy and cost, as HTML and Markdown."""

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
    Plan,
    clocks_of,
    results_of,
)
from dcqcn_gym.core.overhead import (
    ECN_DISPATCH,
    NIC_DISPATCH,
    PORT_RECORD,
    PUBLISHED,
    RNIC_RECORD,
    SWITCH_HEADER,
)
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.chart import Chart
from dcqcn_gym.report.figures import Line, lines_figure
from dcqcn_gym.report.render import render
from dcqcn_gym.runs.campaign import JsonJob
from dcqcn_gym.runs.markdown import Marked
from dcqcn_gym.runs.results import write_results
from dcqcn_gym.runs.study import Study
from dcqcn_gym.runs.table import Table
from dcqcn_gym.runs.whole_file import write_atomically

ROLES = {"elastic": "tuned", "elastic-naive": "expert", "netflow": "default"}
LOCAL_FSD_BYTES = 96
"""What a ToR sends per interval: counts by state, the weighted sum and 16 bins."""

Cells = Sequence[str]


def build_page(plan: Plan, study: Study[JsonJob], out: Path) -> Path:
    """Write ``monitor.html``, its figures and ``results.json`` from a finished study."""
    table, clocks = results_of(study), clocks_of(study)
    figures = _figures(plan, table)
    html = render(
        "monitor.html.j2",
        plan=plan,
        measures=MEASURES,
        monitors=plan.monitors,
        gates=gates(table),
        tables=_tables(plan, table),
        overhead=Table(OVERHEAD, overhead_table(load_scenario(plan.scenario))),
        costs=Table(COSTS, cost_table(table)),
        clocks=clock_table(clocks),
        figures={name: chart.html() for name, chart in figures.items()},
    )
    for name, figure in figures.items():
        write_atomically(out / f"monitor-{name}.svg", figure.file().encode())
    path = out / "monitor.html"
    write_atomically(path, html)
    _write_figures(plan, table, clocks, out)
    return path


def _write_figures(
    plan: Plan, table: Sequence[MonitorResult], clocks: Sequence[Mapping[str, Any]], out: Path
) -> None:
    """Write ``results.json``: a row per monitor, load, interval length and seed."""
    names = {plan.scenario, plan.rounds, plan.long} - {""}
    overhead = overhead_table(load_scenario(plan.scenario))
    write_results(
        out,
        KIND,
        table,
        scenarios=[load_scenario(name) for name in sorted(names)],
        seeds={"runs": plan.seeds},
        figures={
            "plan": plan.model_dump(mode="json"),
            "gates": gates(table),
            "overhead": [dict(zip(OVERHEAD, line, strict=True)) for line in overhead],
            "clocks": clocks,
        },
    )


def _tables(plan: Plan, table: Sequence[MonitorResult]) -> list[Table]:
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


def overhead_table(scenario: Scenario) -> list[Cells]:
    """Return what crosses the wire per device and interval: ours beside PARALEON Table IV."""
    net = scenario.fabric
    tors = {link.b if link.a < net.n_hosts else link.a for link in net.host_link}
    ports = count(tor in (link.a, link.b) for link in net.links for tor in list(tors)[:1])
    switch = LOCAL_FSD_BYTES + SWITCH_HEADER.size + ports * PORT_RECORD.size
    items = [
        ("ToR to controller, every interval", LOCAL_FSD_BYTES, PUBLISHED.fsd),
        (f"ToR to controller, while tuning ({ports} ports)", switch, PUBLISHED.switch),
        ("RNIC to controller, while tuning", RNIC_RECORD.size, PUBLISHED.rnic),
        ("controller to RNIC, per setting", NIC_DISPATCH.size, PUBLISHED.dispatch),
        ("controller to switch, per setting", ECN_DISPATCH.size, PUBLISHED.dispatch),
    ]
    return [
        [what, f"{ours}", f"{published}", f"{ours * 8:.0f}", f"{ours * 8 / 30:.1f}",
         f"{published * 8 / 30:.1f}"]
        for what, ours, published in items
    ]  # fmt: skip


OVERHEAD = (
    "message", "ours, B", "Table IV, B", "ours at 1 ms, kbit/s", "ours at 30 ms, kbit/s",
    "Table IV at 30 ms, kbit/s",
)  # fmt: skip


def clock_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return the CPU time of each monitor."""
    columns = ("monitor", "packets per interval", "ns per packet", "µs per read-out of all ToRs")
    lines = [
        (c["monitor"], f"{c['packets_per_interval']:.0f}", f"{c['ns_per_packet']:.1f}",
         f"{c['us_per_read_out']:.0f}")
        for c in found
    ]  # fmt: skip
    return Table(columns, lines)


COSTS = (
    "monitor", "sent per interval, B", "counters, MB", "flow histories, MB",
    "flows tracked, most", "flows turned away",
)  # fmt: skip


def cost_table(table: Sequence[MonitorResult]) -> list[Cells]:
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
    return lines


def _figures(plan: Plan, table: Sequence[MonitorResult]) -> dict[str, Chart]:
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


def markdown(plan: Plan, table: Sequence[MonitorResult]) -> str:
    """Return the gates and the accuracies as Markdown tables."""
    verdicts = [
        (g.what, f"{g.worst:+.3f}", "yes" if g.holds else Marked("**no**")) for g in gates(table)
    ]
    parts = [Table(("gate", "margin of the worst seed", "holds"), verdicts).markdown()]
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
