"""A comparison as a table: cells as text, Markdown, and the page's rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from dcqcn_gym.benchmarks.comparison.plan import Plan
from dcqcn_gym.benchmarks.comparison.results import Row
from dcqcn_gym.core.sums import count
from dcqcn_gym.runs.markdown import Marked, code, plain
from dcqcn_gym.runs.table import MISSING, Table, count_of, with_interval

__all__ = ["COLUMNS", "cells", "explain", "markdown", "table"]

COLUMNS = (
    "tuner",
    "final utility",
    "against default",
    "online utility",
    "95 % of best after",
    "slowdown, mean",
    "p99",
    "unfinished",
    "paused",
    "tuner CPU",
)


def cells(row: Row) -> list[str]:
    """Return a row's cells in the order of :data:`COLUMNS`."""
    if not row.seeds:
        why = f"failed: {row.error}" if row.error else "not finished"
        return [row.tuner, why] + [MISSING] * (len(COLUMNS) - 2)
    return [
        row.tuner,
        with_interval(row.final),
        with_interval(row.against_default, "+.4f"),
        with_interval(row.online),
        _reached(row),
        with_interval(row.slowdown_mean, ".2f"),
        with_interval(row.slowdown_p99, ".1f"),
        with_interval(row.unfinished, ".0f"),
        with_interval(row.pause_share, ".2f", 100) + " %",
        f"{row.tuner_ms:.2f} ms",
    ]


def table(name: str, rows: Sequence[Row]) -> Table:
    """Return a scenario's table."""
    return Table(COLUMNS, [cells(row) for row in rows], name)


def _reached(row: Row) -> str:
    there = count(math.isfinite(r) for r in row.reached)
    median = row.reached_median
    if not there:
        return "never"
    text = f"{median:.0f}" if math.isfinite(median) else MISSING
    return text if there == row.seeds else f"{text} ({there} of {row.seeds} seeds)"


def explain(plan: Plan) -> str:
    """Return what the columns mean, for under a table."""
    interval = (
        "± is a 95 % confidence interval over the seeds (Student's t below 20 seeds, BCa bootstrap "
        "from there on)"
    )
    return (
        f"{count_of(plan.seeds, 'seed')}, {plan.intervals} intervals each; "
        f"{interval}. Final: mean utility of the recommended setting on "
        f"{count_of(plan.eval_seeds, 'fresh seed')} of {plan.eval_intervals} intervals per run, "
        "the same for every tuner; the difference to the default is paired by seed. Online: mean "
        "utility of the run itself, search included. 95 % of best: median over the seeds of the "
        "first interval at which the mean utility of the last 10 intervals with data reached 95 % "
        "of the highest such mean of any tuner on that seed, a dash if most seeds never did. "
        "Slowdown: FCT over the FCT in an idle network, all sizes, of the recommended setting; "
        "unfinished flows are not in it, their number at the end of a fresh run stands beside it. "
        "Paused: share of time, mean over devices, during the run. Tuner CPU: per interval, on the "
        "machine that made the table."
    )


def markdown(
    plan: Plan, tables: Mapping[str, Sequence[Row]], notes: Sequence[str], out: Path
) -> str:
    """Return the tables as Markdown with the command that makes them."""
    lines = [f"Made by {code(plan.command(out))}.", "", explain(plan)]
    for name, rows in tables.items():
        cells_of = [_named(row, plan) for row in rows]
        lines += ["", f"### {plain(name)}", "", Table(COLUMNS, cells_of).markdown()]
        errors = [
            f"- {code(row.tuner)}: {plain(row.error)}" for row in rows if row.error and row.seeds
        ]
        lines += ["", *errors] if errors else []
    lines += ["", *[f"- {plain(note)}" for note in notes]] if notes else []
    return "\n".join(lines) + "\n"


def _named(row: Row, plan: Plan) -> list[str]:
    first, *rest = cells(row)
    short = "" if row.seeds in (0, plan.seeds) else f" ({row.seeds} of {plan.seeds} seeds)"
    return [Marked(f"{code(first)}{short}"), *rest]
