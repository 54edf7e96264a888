"""Tables of a leaderboard's results, and its runs as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.bootstrap import FEWEST_SCENARIOS, TOO_FEW
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine, HarmLine
from dcqcn_gym.benchmarks.leaderboard.scoring import STAGES
from dcqcn_gym.core.score import geometric_ratio
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.table import MISSING, Table, as_csv

CSV_FILE = "runs.csv"
_COLUMNS = ("rank", "entry", "category", "R online", "S online", "slowdown", "harm", "worst harm",
            "R final")  # fmt: skip


def ranking_table(board: Leaderboard, lines: Sequence[EntryLine]) -> Table:
    """Return the ranking by the online R."""
    file = board.suite.file
    title = f"{file.name}: {len(file.scenarios)} scenarios, {board.repetitions} repetitions"
    if len(file.scenarios) < FEWEST_SCENARIOS:
        title += f"; {TOO_FEW}"
    return Table(_COLUMNS, [_cells(line) for line in lines], title, words=3)


def _cells(line: EntryLine) -> tuple[str, ...]:
    final, online = line.final, line.online
    if final is None or online is None:
        missing = f"{line.missing} runs missing"
        return (MISSING, line.entry, line.category, missing, *[MISSING] * (len(_COLUMNS) - 4))
    return (
        MISSING if online.rank is None else str(online.rank), line.entry, line.category,
        str(online.risk), f"{online.score.value:+.3f}",
        f"{geometric_ratio(online.score.value):.2f}", f"{100 * online.harm.share:.0f} %",
        worst_words(online.harm), str(final.risk),
    )  # fmt: skip


def worst_words(harm: HarmLine) -> str:
    """Return in words the worst of an entry's harm: ``p99 of mice +60 % on 083-racks``."""
    if harm.worst is None:
        return "none"
    scenario, guardrail, change = harm.worst
    return f"{change_words(guardrail, change)} on {scenario}"


def change_words(guardrail: str, change: float) -> str:
    """Return in words how a guardrail's figure changed."""
    name = guardrail.replace("99th percentile of slowdown", "p99").replace("mean slowdown", "mean")
    if guardrail == "goodput":
        return f"goodput {math.expm1(-change):.0%}".replace("%", " %")
    if " of " in guardrail:
        factor = math.exp(change)
        return f"{name} × {factor:.1f}" if factor >= 2 else f"{name} +{100 * (factor - 1):.0f} %"
    return f"{name} +{-100 * math.expm1(-change):.0f} points"


def columns_table(lines: Sequence[EntryLine], details: Mapping[str, Any]) -> Table:
    """Return what else is known of the entries, which decides nothing."""
    beside = (("p999", ".1f"), ("fairness", ".3f"), ("setting_changes", ".0f"))
    columns = ("entry", "category", "repetitions", "S final",
               *(f"S at {100 * share:g} %" for share in CHECKPOINTS[:-1]),
               "wire bytes per interval", "p99.9", "fairness", "changes")  # fmt: skip
    found = []
    for line in lines:
        if line.final is None or line.entry not in details:
            continue
        so_far = details[line.entry]["anytime"]["score"]
        found.append((
            line.entry, line.category, str(line.repetitions), str(line.final.score),
            *(f"{one['value']:+.3f}" for one in so_far[:-1]),
            _number(line.wire_bytes, ".0f"),
            *(_number(line.final.beside.get(key), form) for key, form in beside),
        ))  # fmt: skip
    return Table(columns, found, "further columns", words=2)


def harm_table(lines: Sequence[EntryLine]) -> Table:
    """Return on how many scenarios each guardrail is exceeded."""
    found = []
    for line in lines:
        for stage in STAGES if line.final is not None else ():
            beyond = line.stage(stage).harm.beyond.values()
            names = [name for one in beyond for name in one]
            found += [
                (line.entry, stage, name, str(names.count(name))) for name in dict.fromkeys(names)
            ]
    return Table(("entry", "stage", "guardrail", "scenarios"), found, "harm", words=3)


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)


def write_csv(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write lines of runs as CSV; settings are JSON."""
    rows = (
        [json.dumps(v, separators=(",", ":")) if isinstance(v, dict) else v for v in line.values()]
        for line in lines
    )
    write_atomically(path, as_csv([list(lines[0]) if lines else [], *rows]))
