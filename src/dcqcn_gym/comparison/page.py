"""Writes what a comparison leaves besides its logs: tables, ``compare.html``, ``plots/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from dcqcn_gym.comparison.compare import command_of
from dcqcn_gym.comparison.figures import dots_figure, mean_over, profile_figure, utility_figure
from dcqcn_gym.comparison.latex import csv_of, latex, seed_rows
from dcqcn_gym.comparison.network_tables import network_tables
from dcqcn_gym.comparison.plan import Plan
from dcqcn_gym.comparison.ranks import leader, rank_table
from dcqcn_gym.comparison.results import EntryResult, Figures
from dcqcn_gym.comparison.text import (
    answers,
    during_table,
    explain,
    headline,
    markdown,
    table,
    verdict_table,
)
from dcqcn_gym.report.render import render
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.entries import evaluation_seeds
from dcqcn_gym.runs.results import plain, write_parquet, write_results


@dataclass(frozen=True)
class RunLinks:
    """One run: its figures, and its logs relative to the page."""

    figures: Figures
    log: Path
    held_out: Sequence[Path]


def write_all(
    plan: Plan,
    tables: Mapping[str, Sequence[EntryResult]],
    notes: Sequence[str],
    out: Path,
    bins: str | None = None,
) -> Path:
    """Write the Markdown table, the plots and the page; return the page's path.

    ``bins`` adds slowdowns by the sizes of a paper.
    """
    write_atomically(out / "table.md", markdown(plan, tables, notes, out, bins).encode())
    write_atomically(out / "table.tex", latex(tables).encode())
    seeds = seed_rows(tables)
    write_atomically(out / "seeds.csv", csv_of(seeds))
    write_parquet(out / "seeds.parquet", seeds)
    found = answers(plan, tables)
    sections = [
        {
            "name": name,
            "headline": headline(name, entries, found[name]),
            "answer": found[name],
            "table": table(name, entries),
            "verdict": verdict_table(name, entries),
            "during": during_table(name, entries),
            "more": network_tables(name, entries, bins),
            "ranks": rank_table(entries),
            "leader": leader(entries),
            "runs": _runs(name, entries, plan),
            "errors": [entry for entry in entries if entry.error and entry.seeds],
            "figures": _figures(name, entries, out),
        }
        for name, entries in tables.items()
    ]
    facts = {"command": command_of(plan, out), "explanation": explain(plan), "notes": notes,
             "window": mean_over(plan.intervals)}  # fmt: skip
    html = render("compare.html.j2", sections=sections, **facts)
    page = out / "compare.html"
    write_atomically(page, html)
    _write_figures(plan, tables, notes, out)
    return page


def _write_figures(
    plan: Plan, tables: Mapping[str, Sequence[EntryResult]], notes: Sequence[str], out: Path
) -> None:
    """Write ``results.json``: an entry per tuner and scenario, with the figures of each seed."""
    runs = range(1, plan.seeds + 1)
    write_results(
        out,
        "compare",
        [
            {"scenario": name, **plain(entry)}
            for name, entries in tables.items()
            for entry in entries
        ],
        scenarios=[case.loaded for case in plan.cases],
        tuners={entry.name: (entry.tuner, {}) for entry in plan.entries},
        seeds={
            "runs": list(runs),
            "held_out": [s for seed in runs for s in evaluation_seeds(seed, plan.held_out_seeds)],
        },
        figures={
            "plan": plan.model_dump(mode="json"),
            "notes": notes,
            "answers": {name: plain(one.data()) for name, one in answers(plan, tables).items()},
        },
    )


def _figures(name: str, table: Sequence[EntryResult], out: Path) -> dict[str, Markup]:
    if not any(entry.seeds for entry in table):
        return {}
    drawn = {"final": dots_figure(table), "utility": utility_figure(table)}
    if any(entry.against_baseline for entry in table):
        drawn["profile"] = profile_figure(table)
    folder = out / "plots"
    folder.mkdir(exist_ok=True)
    for kind, figure in drawn.items():
        write_atomically(folder / f"{name}-{kind}.svg", figure.file().encode())
    return {kind: figure.html() for kind, figure in drawn.items()}


def _runs(name: str, entries: Sequence[EntryResult], plan: Plan) -> dict[str, list[RunLinks]]:
    """Return the runs of every entry, with the logs that hold them, relative to the page."""
    every = (trial for several in plan.trials(Path()).values() for trial in several)
    trials = {(t.folder, t.spec.seed): t for t in every}
    return {
        entry.tuner: [
            RunLinks(figures, trial.log, trial.held_out)
            for figures in entry.figures
            for trial in [trials[Path(name, entry.tuner), figures.seed]]
        ]
        for entry in entries
    }
