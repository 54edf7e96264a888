"""Builds ``report.html`` from a run directory: one self-contained page, figures inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.interval import FloatArray, IntArray
from dcqcn_gym.core.statistics import slowdown_by_size
from dcqcn_gym.core.sums import count
from dcqcn_gym.report import figures
from dcqcn_gym.report.answer import AnswerBlock, answer_of
from dcqcn_gym.report.applications import application_tables, applications_of_run, grid_of
from dcqcn_gym.report.chart import Chart
from dcqcn_gym.report.collectives import CollectiveTable, collective_tables, unfinished_rounds
from dcqcn_gym.report.command import command_again
from dcqcn_gym.report.data import ReportData, load_report_data
from dcqcn_gym.report.fabric_picture import fabric_svg
from dcqcn_gym.report.figures import Line
from dcqcn_gym.report.headline import headline, judged_run
from dcqcn_gym.report.knob_figures import knobs_figure
from dcqcn_gym.report.measurements import tells_unfinished
from dcqcn_gym.report.network import (
    CURVES_FILE,
    mean_figures,
    network_figures,
    network_table,
    size_table,
    write_curves,
)
from dcqcn_gym.report.render import render
from dcqcn_gym.report.series import Series
from dcqcn_gym.report.tables import (
    BinTable,
    during_table,
    group_table,
    held_out_table,
    recorded_runs,
    setting_rows,
    write_run_results,
)
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.commands import commands
from dcqcn_gym.runs.entries import REFERENCES
from dcqcn_gym.runs.log import Run, RunDir
from dcqcn_gym.runs.table import number

if TYPE_CHECKING:
    from dcqcn_gym.report.jobs import JobBlock

TRAFFIC: Mapping[str, str] = {
    "tuning": "while tuning, on the same traffic",
    "held_out": "the candidate, on held-out traffic",
}


def build_report(run_dir: Path | str, *, bins: str | None = None, curves: bool = False) -> Path:
    """Write ``report.html`` into a run directory from its logs alone and return its path.

    ``bins`` adds slowdowns by the sizes of a paper (:data:`~dcqcn_gym.core.statistics.PAPER_BINS`),
    ``curves`` writes the curves of completion times (:data:`CURVES_FILE`). A log that was cut short
    gives a page that says so. The file appears whole or not at all.

    Raise:
        RunError: the directory holds no readable event log.
    """
    directory = Path(run_dir)
    data = load_report_data(directory)
    context = _context(data, bins)
    path = directory / "report.html"
    write_atomically(path, render("report.html.j2", **context))
    write_run_results(data, context)
    if curves:
        write_curves(directory / CURVES_FILE, _by_setting(data), bins)
    return path


def _context(data: ReportData, bins: str | None = None) -> dict[str, Any]:
    header = data.run.header
    judged = judged_run(data)
    best = answer_of(data)
    top = headline(data, judged, best)
    held_out, collectives = held_out_table(data), collective_tables(data)
    return {
        "scenario": _scenario(header),
        "tuner": header.get("tuner", "unknown"),
        "best": best,
        "headline": top,
        "judged": judged,
        "notes": [*data.notes, *(f"{s[0].upper()}{s[1:]}." for s in unfinished_rounds(data))],
        "fabric": Markup() if data.scenario is None else fabric_svg(data.scenario.fabric),
        "figures": _figures(data, held_out) if len(data.run) else {},
        "commands": _commands(data, best),
        "runs": recorded_runs(data),
        "knob_groups": setting_rows(data, best.setting),
        "groups": group_table(best.setting or data.setting("candidate") or {}),
        "decisions": (data.run.end or {}).get("decisions", ()),
        "finished": data.finished,
        "collectives": collectives,
        "jobs": _jobs(data, collectives),
        "more": _more(data, bins),
        "during": during_table(data),
        "held_out": held_out,
        "during_unfinished": [(label, s.unfinished) for _, label, s in _curves(data)],
        "held_out_unfinished": _held_out_unfinished(data),
        "n_seeds": len(data.seeds),
        "facts": _facts(data),
    }


def _jobs(data: ReportData, tables: Sequence[CollectiveTable]) -> list[JobBlock]:
    if not tables:
        return []
    from dcqcn_gym.report.jobs import job_blocks  # few runs have a job

    return job_blocks(data, tables)


def _by_setting(data: ReportData) -> dict[str, Mapping[str, Sequence[Series]]]:
    """Return the runs of each setting: while tuning, and on held-out seeds."""
    return {
        "tuning": {label: [s] for _, label, s in _curves(data)},
        "held_out": data.held_out,
    }


def _more(data: ReportData, bins: str | None) -> dict[str, Any]:
    """Return what applications got done, round trips, fairness and a paper's sizes."""
    parts = _by_setting(data)
    done = {
        part: application_tables({n: list(map(applications_of_run, s)) for n, s in runs.items()})
        for part, runs in parts.items()
    }
    network = {
        part: {name: mean_figures(list(map(network_figures, s))) for name, s in runs.items()}
        for part, runs in parts.items()
        if runs
    }
    return {
        "applications": done,
        "network": network,
        "application_grids": [
            grid_of(table, f"{table.title}, {TRAFFIC[part]}")
            for part in done
            for table in done[part]
        ],
        "network_grids": [network_table(f, TRAFFIC[part]) for part, f in network.items()],
        "size_grids": [size_table(f, bins, TRAFFIC[p]) for p, f in network.items()] if bins else [],
    }


def _scenario(header: Mapping[str, Any]) -> Mapping[str, Any]:
    scenario = header.get("scenario")
    if isinstance(scenario, Mapping):
        return {"name": scenario.get("name", ""), "description": scenario.get("description", "")}
    return {"name": str(scenario or ""), "description": ""}


def _curves(data: ReportData) -> list[tuple[str, str, Series]]:
    """Return (role, label, series), references first so that the tuned line lies on top."""
    curves = [(name, name, data.references[name]) for name in REFERENCES if name in data.references]
    return [*curves, ("tuned", str(data.run.header.get("tuner", "tuned")), data.run)]


def _figures(data: ReportData, held_out: Sequence[BinTable]) -> dict[str, Markup]:
    x_label = f"{_word(data.run.header)}time since the first interval, ms"
    curves = _curves(data)

    def lines(value: str, scale: float = 1.0) -> list[Line]:
        return [Line(r, label, s.time_ms, scale * s.column(value)) for r, label, s in curves]

    pause = [Line(r, label, s.time_ms, 100 * s.pause_share) for r, label, s in curves]
    made = {
        "network": figures.lines_figure(
            [
                ("Throughput, Gb/s delivered", lines("throughput_bps", 1e-9)),
                ("Round-trip time, µs (mean)", lines("rtt_mean_ps", 1e-6)),
                ("Pause time, % of the interval (mean device)", pause),
            ],
            x_label,
        )
    }
    if knobs := knobs_figure(data.run, data.knob_table):
        made["knobs"] = knobs
    made["utility"] = _utility_figure(data, lines("utility"), x_label)
    shares = _fsd_shares(data.run)
    if shares is not None:
        made["fsd"] = figures.fsd_figure(data.run.time_ms, shares, x_label)
    if data.run.fct_ps.size:
        made["during"] = figures.slowdown_figure(
            {r: (label, slowdown_by_size(*_drawn([s])[0])) for r, label, s in curves}
        )
    if data.seeds:
        made["held_out"] = figures.slowdown_figure(_pooled(data), _worse(held_out))
    return {name: chart.html() for name, chart in made.items()}


def _utility_figure(data: ReportData, lines: Sequence[Line], x_label: str) -> Chart:
    default = data.references.get("default")
    if default is None:
        return figures.lines_figure([("Utility per interval", lines)], x_label, 210)
    n = min(len(data.run), len(default))
    gain = data.run.utility[:n] - default.utility[:n]
    running = np.cumsum(gain) / np.arange(1, n + 1)
    return figures.gain_figure(data.run.time_ms[:n], lines, running, x_label)


def _fsd_shares(run: Series) -> dict[str, Any] | None:
    counts = {role: run.fsd(role) for role in ("elephants", "potential", "mice")}
    total = counts["elephants"] + counts["potential"] + counts["mice"]
    if not np.any(np.nan_to_num(total) > 0):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        return {role: np.nan_to_num(count / total) for role, count in counts.items()}


def _worse(held_out: Sequence[BinTable]) -> set[str]:
    """Return the size bins with a statistic that is worse than the default's beyond chance."""
    return {
        table.label
        for table in held_out
        for row in table.rows
        if row.against_default is not None and row.against_default.sign > 0
    }


def _pooled(data: ReportData) -> dict[str, Any]:
    pooled = {}
    for role, name in (("default", "default"), ("expert", "expert"), ("tuned", "candidate")):
        runs = _drawn(data.held_out[name])
        sizes = np.concatenate([size for size, _ in runs])
        slow = np.concatenate([slowdown for _, slowdown in runs])
        pooled[role] = (name, slowdown_by_size(sizes, slow))
    return pooled


def _drawn(runs: Sequence[Series]) -> list[tuple[IntArray, FloatArray]]:
    """Return sizes and slowdowns of all flows; of finished ones if a log has no others."""
    complete = all(map(tells_unfinished, runs))
    return [one.every_flow if complete else one.flows for one in runs]


def _held_out_unfinished(data: ReportData) -> list[tuple[str, int]]:
    return [(name, count(s.unfinished for s in runs)) for name, runs in data.held_out.items()]


def _commands(data: ReportData, best: AnswerBlock) -> dict[str, str]:
    """Return what is recommended, or the candidate, and the way back; nothing if there is none."""
    end = None if data.run.end is None else dict(data.run.end)
    run = Run(RunDir(data.directory).log, dict(data.run.header), end=end)
    try:
        forward, back = (
            commands(
                run,
                "all",
                of=best.setting,
                changed_only=True,
                rollback=back,
                said=best.answer.title,
            )
            for back in (False, True)
        )
    except DcqcnGymError:
        return {}
    word = "recommended setting" if best.deploys else "candidate"
    return {f"Put the {word} in force": forward, "Roll back": back}


def _word(header: Mapping[str, Any]) -> str:
    """Return what kind of time a run has: none of its own where devices were real."""
    return "" if header.get("fleet") == "devices" else "simulated "


def _facts(data: ReportData) -> list[tuple[str, str]]:
    header = data.run.header
    run = data.run
    fleet = f" ({header['fleet']})" if header.get("fleet") else ""
    lasted = (run.records[-1]["end_ps"] - run.records[0]["start_ps"]) * 1e-9 if run.records else 0
    facts = [
        ("scenario", str(_scenario(header)["name"])),
        ("tuner", str(header.get("tuner"))),
        ("seed", str(header.get("seed"))),
        ("backend", f"{header.get('backend')}{fleet}"),
        (
            "intervals",
            f"{len(run)} of {header.get('intervals')} ({number(lasted)} ms {_word(header)}".rstrip()
            + ")",
        ),
        ("finished flows", number(float(run.fct_ps.size))),
        ("held-out seeds", ", ".join(map(str, data.seeds)) or "none"),
    ]
    versions = header.get("versions")
    if isinstance(versions, Mapping):
        facts += [(f"version of {k}", str(v)) for k, v in versions.items()]
    facts += _timing_facts(data.timing)
    return [*facts, ("command", command_again(header, data.directory.name or "out"))]


def _timing_facts(timing: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = []
    for name, spent in timing.items():
        wall, cpu = ((spent.get("wall_s"), spent.get("cpu_s")) if isinstance(spent, Mapping)
                     else (None, None))  # fmt: skip
        if isinstance(wall, int | float) and isinstance(cpu, int | float):
            text = f"{number(float(wall), 3)} s, {number(float(cpu), 3)} s of CPU"
            facts.append((f"time: {name.replace('_', ' ')}", text))
    return facts
