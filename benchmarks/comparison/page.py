"""Writes what a comparison leaves beside its logs: ``table.md``, ``compare.html``, ``plots/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from dcqcn_gym.benchmarks.comparison.figures import dots_figure, standalone, utility_figure
from dcqcn_gym.benchmarks.comparison.plan import Plan
from dcqcn_gym.benchmarks.comparison.results import Row
from dcqcn_gym.benchmarks.comparison.text import COLUMNS, cells, explain, markdown
from dcqcn_gym.report.figures import have_matplotlib
from dcqcn_gym.runs.log import write_atomically

__all__ = ["write_results"]


def write_results(
    plan: Plan, tables: Mapping[str, Sequence[Row]], notes: Sequence[str], out: Path
) -> Path:
    """Write the Markdown table, the plots and the page; return the page's path.

    Without matplotlib (the ``[report]`` extra) there are no plots, and the page says so.
    """
    notes = list(notes)
    if not have_matplotlib():
        notes.append("The figures need matplotlib: pip install 'dcqcn-gym[report]'.")
    write_atomically(out / "table.md", markdown(plan, tables, notes, out).encode())
    sections = [
        {
            "name": name,
            "rows": [cells(row) for row in table],
            "errors": [row for row in table if row.error and row.seeds],
            "figures": _figures(name, table, out),
        }
        for name, table in tables.items()
    ]
    html = (
        _environment()
        .get_template("compare.html.j2")
        .render(
            columns=COLUMNS,
            command=plan.command(out),
            explanation=explain(plan),
            notes=notes,
            sections=sections,
        )
    )
    page = out / "compare.html"
    write_atomically(page, html.encode())
    return page


def _figures(name: str, table: Sequence[Row], out: Path) -> dict[str, Markup]:
    if not have_matplotlib() or not any(row.seeds for row in table):
        return {}
    drawn = {"final": dots_figure(table), "utility": utility_figure(table)}
    folder = out / "plots"
    folder.mkdir(exist_ok=True)
    for kind, figure in drawn.items():
        write_atomically(folder / f"{name}-{kind}.svg", standalone(figure).encode())
    return {kind: Markup(figure) for kind, figure in drawn.items()}


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("dcqcn_gym.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
