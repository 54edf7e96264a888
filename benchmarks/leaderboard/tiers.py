"""Harm in the results: ranks within tiers, amounts per run, power of the limits."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.bootstrap import (
    FEWEST_SCENARIOS,
    ranked_in_tiers,
    scenario_mean,
)
from dcqcn_gym.benchmarks.leaderboard.categories import category_of_entry
from dcqcn_gym.benchmarks.leaderboard.harm import FIGURES, TIERS, chance_of
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE, Leaderboard
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine, Stage
from dcqcn_gym.benchmarks.leaderboard.scoring import STAGES, EntryScores, StageScores, references_of
from dcqcn_gym.core.score import geometric_ratio
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.table import MISSING, Table

CSV_FILE = "runs.csv"
UNRANKED = ("scheme", "oracle")
"""Categories that are no tuners; schemes are ranked among themselves."""

TOO_FEW = f"too few scenarios for ranks: expected at least {FEWEST_SCENARIOS}"


def category_in(board: Leaderboard, name: str) -> str:
    """Return an entry's category: that of its code, or what the authors of another's say."""
    if name in board.submitted:
        return board.submitted[name].category
    entry = next(one for one in board.entries if one.name == name)
    return category_of_entry(entry)


def places_in_tiers(
    board: Leaderboard, entries: Sequence[EntryScores]
) -> dict[str, dict[str, int]]:
    """Return by stage the rank of every tuner within its tier of harm, and of every scheme.

    One that has runs missing, or ran less often than the others, has none.
    """
    able = [e for e in entries if e.complete and e.repetitions == board.repetitions]
    found: dict[str, dict[str, int]] = {}
    for stage in STAGES:
        found[stage] = {}
        for schemes in (False, True):
            some = {
                e.name: e.parts[stage] for e in able
                if (category := category_in(board, e.name)) != "oracle"
                and (category == "scheme") == schemes
            }  # fmt: skip
            found[stage] |= ranked_in_tiers(
                {name: part.score for name, part in some.items()},
                {name: part.harm.tier for name, part in some.items()},
            )
    return found


def tier_order(entry: EntryScores, ranks: Mapping[str, int]) -> tuple[bool, int, bool, float]:
    """Order entries: by tier, those with a rank first, then by their figure."""
    if not entry.complete:
        return True, 0, True, 0.0
    part = entry.parts["final"]
    return False, TIERS.index(part.harm.tier), entry.name not in ranks, -scenario_mean(part.score)


def harm_fields(board: Leaderboard, part: StageScores, rank: int | None) -> dict[str, Any]:
    """Return what a stage says of its harm, its rank, and the figures that decide nothing."""
    harm = part.harm
    return {
        "rank": rank,
        "harm": {
            "tier": harm.tier, "share": harm.share, "worst": harm.worst,
            "worst_run": harm.worst_run, "open_cells": harm.open_cells,
            "without_limit": harm.without_limit,
            "beyond": harm.names(list(board.suite.scenarios)),
        },
        "beside": {
            name: float(np.nanmean(v)) if np.isfinite(v).any() else None
            for name, v in part.beside.items()
        },
    }  # fmt: skip


def limits_details(board: Leaderboard, entries: Sequence[EntryScores]) -> dict[str, Any]:
    """Return each limit's power: the cells that it covers, and which change it sees.

    ``seen`` is the median over scenarios of the change that is found beyond the limit four times
    in five: a ratio for slowdowns and goodput, a difference for the others.
    """
    whole = {e.name: e.parts["final"].changes for e in entries if e.complete}
    if not whole:
        return {}
    chance = chance_of(whole, references_of(board))
    seen = chance.seen(board.repetitions)
    covered = np.asarray(np.isfinite(whole[BASELINE]).all(axis=2))
    return {
        "limits": [
            {
                "figure": figure.name,
                "limit": _plainly(figure.limit, figure.ratio),
                "seen": _plainly(float(np.median(seen[:, k])), figure.ratio),
                "cells": int(covered[:, k].sum()),
                "of": len(covered),
            }
            for k, figure in enumerate(FIGURES)
        ]
    }


def _plainly(change: float, ratio: bool) -> float:
    return math.expm1(change) if ratio else change


def amounts(entry: EntryScores, at: tuple[int, int]) -> dict[str, Any]:
    """Return every figure of one run beside its score: changes of both stages, and the others."""
    found: dict[str, Any] = {}
    for stage in STAGES:
        part = entry.parts[stage]
        found |= {f"{name}_{stage}": values[at] for name, values in part.beside.items()}
        for k, figure in enumerate(FIGURES):
            found[f"{figure.name}, change_{stage}"] = _plainly(
                float(part.changes[at[0], k, at[1]]), figure.ratio
            )
    return found


def write_csv(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write lines of runs as CSV; settings are JSON."""
    text = io.StringIO()
    columns = list(lines[0]) if lines else []
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({
            key: json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else value
            for key, value in line.items()
        })  # fmt: skip
    write_atomically(path, text.getvalue().encode())


def shortened(text: str) -> str:
    """Return the CSV of runs without settings, four significant digits of every number."""
    lines = list(csv.reader(text.splitlines()))
    found = [i for i, name in enumerate(lines[0]) if name != "recommended"] if lines else []
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerows([[_short(line[i]) for i in found] for line in lines])
    return made.getvalue()


def _short(cell: str) -> str:
    try:
        return cell if cell.isdigit() else format(float(cell), ".4g")
    except ValueError:
        return cell


_COLUMNS = ("harm", "rank", "entry", "category", "S final", "slowdown", "worst scenario",
            "scenarios beyond", "worst", "S online", "rank online", "harm online", "p99.9",
            "fairness", "changes")  # fmt: skip


def tier_tables(board: Leaderboard, lines: Sequence[EntryLine]) -> list[Table]:
    """Return the ranking, tiers of harm in their order."""
    file = board.suite.file
    title = f"{file.name}: {len(file.scenarios)} scenarios, {board.repetitions} repetitions"
    if len(file.scenarios) < FEWEST_SCENARIOS:
        title += f"; {TOO_FEW}"
    return [Table(_COLUMNS, [_cells(line) for line in lines], title, words=1)]


def _cells(line: EntryLine) -> tuple[str, ...]:
    final, online = line.final, line.online
    if final is None or online is None:
        missing = f"{line.missing} runs missing"
        return (MISSING, MISSING, line.entry, line.category, missing,
                *[MISSING] * (len(_COLUMNS) - 5))  # fmt: skip
    beside = final.beside
    return (
        final.harm.tier, _rank(final), line.entry, line.category, str(final.score),
        f"{geometric_ratio(final.score.value):.2f}", f"{worst_scenario(final):+.3f}",
        f"{100 * final.harm.share:.0f} %", f"{final.harm.worst:.1f}", str(online.score),
        _rank(online), online.harm.tier,
        *(_number(beside.get(k), form) for k, form in
          (("p999", ".1f"), ("fairness", ".3f"), ("setting_changes", ".0f"))),
    )  # fmt: skip


def worst_scenario(stage: Stage) -> float:
    """Return the least mean S of any scenario."""
    return min(float(np.mean(scores)) for scores in stage.scores.values())


def _rank(stage: Stage) -> str:
    return MISSING if stage.rank is None else str(stage.rank)


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)
