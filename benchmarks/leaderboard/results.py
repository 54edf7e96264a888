"""A leaderboard as tables and as ``results.json``: everything follows from the logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical
from dcqcn_gym.benchmarks.leaderboard.cached_readings import open_readings
from dcqcn_gym.benchmarks.leaderboard.page_details import (
    curve_details,
    entry_details,
    suite_details,
)
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.ranking import improvement
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS
from dcqcn_gym.benchmarks.leaderboard.regret import best_known
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine
from dcqcn_gym.benchmarks.leaderboard.scoring import STAGES, EntryScores, score_entries
from dcqcn_gym.benchmarks.leaderboard.tiers import (
    CSV_FILE,
    amounts,
    category_in,
    harm_fields,
    limits_details,
    places_in_tiers,
    tier_order,
    tier_tables,
    write_csv,
)
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.sums import mean
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.results import plain, write_parquet
from dcqcn_gym.runs.results import write_results as write_json_results
from dcqcn_gym.runs.table import MISSING, Table, count_of


def write_results(
    board: Leaderboard, workers: int | None = None, out: Path | None = None
) -> tuple[list[Table], list[str]]:
    """Write ``results.json`` and ``leaderboard.md``; return the tables and remarks for a terminal.

    ``runs.csv``, and with pyarrow ``runs.parquet``, have a line a run. New logs are read by
    ``workers`` processes, by default one per CPU. Files go into ``out``, by default the
    leaderboard's folder.
    """
    folder = out or board.out
    with open_readings(board, workers) as readings:
        entries = score_entries(board, readings)
    entries, lines = _in_order(board, entries)
    known = best_known(entries, list(board.suite.scenarios))
    curves = {line.entry: line.data()["learning_curve"] for line in lines if line.learning_curve}
    details = entry_details(board, entries, known, curves)
    lines = _against_others(lines, details)
    write_json_results(
        folder,
        "leaderboard",
        [line.model_dump(exclude={"learning_curve"}, exclude_unset=True) for line in lines],
        scenarios=board.suite.scenarios.values(),
        tuners={entry.name: (entry.tuner, entry.tuner_args) for entry in board.entries},
        seeds={"repetitions": list(range(board.repetitions))},
        figures={**suite_details(board, known), **_season(board), "entries": details,
                 **limits_details(board, entries)},
    )  # fmt: skip
    _write_runs(board, entries, folder)
    tables = [
        t for t in (*tier_tables(board, lines), _columns(lines, details), _flags(lines)) if t.rows
    ]
    text = "\n\n".join(f"## {t.title}\n\n{t.markdown()}" for t in tables)
    write_atomically(folder / "leaderboard.md", (text + "\n").encode())
    makes = f"bench run --out {board.out} makes them"
    lacking = [(entry.name, count_of(entry.missing, "run")) for entry in entries if entry.missing]
    return tables, [f"{name}: {runs} missing; {makes}" for name, runs in lacking]


def _season(board: Leaderboard) -> dict[str, Any]:
    """Return what is said of a season: its salt, and whose the entries of others are."""
    if not board.salt:
        return {}
    sha256 = hashlib.sha256(board.salt.encode()).hexdigest()
    others = {name: one.model_dump(exclude={"category"}) for name, one in board.submitted.items()}
    return {"season": {"salt": board.salt, "salt_sha256": sha256, "entries": others}}


def _in_order(
    board: Leaderboard, entries: Sequence[EntryScores]
) -> tuple[list[EntryScores], list[EntryLine]]:
    """Return the entries by tier of harm, in each the best first, and their lines."""
    places = places_in_tiers(board, entries)
    entries = sorted(entries, key=lambda entry: tier_order(entry, places["final"]))
    return entries, [
        entry_line(board, entry, {stage: ranks.get(entry.name) for stage, ranks in places.items()})
        for entry in entries
    ]


def _against_others(lines: Sequence[EntryLine], details: Mapping[str, Any]) -> list[EntryLine]:
    """Return the lines of complete entries with what depends on the other ones."""
    return [
        line.model_copy(update={"regret": _mean(details[line.entry]["regret"]),
                                "recovery": _mean(details[line.entry]["recovery"])})
        if line.entry in details else line
        for line in lines
    ]  # fmt: skip


def entry_line(
    board: Leaderboard, entry: EntryScores, ranks: Mapping[str, int | None] | None = None
) -> EntryLine:
    """Return an entry's figures; but for ranks, and chance in harms, no other entry counts."""
    line: dict[str, Any] = {
        "entry": entry.name,
        "category": category_in(board, entry.name),
        "missing": entry.missing,
        "repetitions": entry.repetitions,
    }
    for stage in STAGES if entry.complete else ():
        part = entry.parts[stage]
        line[stage] = {
            "score": hierarchical(part.score),
            "utility": float(np.mean(part.utility)),
            "improvement": improvement(part.score, np.zeros_like(part.score)),
            "flags": part.flag_names,
            "scores": dict(zip(board.suite.scenarios, part.score.tolist(), strict=True)),
            "flags_by_scenario": {name: list(found) for name, found in part.raised.items()},
            **harm_fields(board, part, (ranks or {}).get(stage)),
        }
    if entry.curve is not None:
        line["wire_bytes"] = float(np.mean(entry.curve.wire_bytes))
        line["learning_curve"] = curve_details(entry.curve)
    return validate(plain(line), EntryLine, source=f"{board.out}, entry {entry.name!r}")


def _write_runs(board: Leaderboard, entries: Sequence[EntryScores], out: Path) -> None:
    """Write ``runs.parquet`` where pyarrow is installed; incomplete entries are left out."""
    lines = [plain(line) for entry in entries for line in _runs(board, entry)]
    write_parquet(out / "runs.parquet", lines)
    write_csv(out / CSV_FILE, lines)


def _runs(board: Leaderboard, entry: EntryScores) -> Iterator[dict[str, Any]]:
    """Yield suite, entry, scenario, repetition, S, utility, S so far, wire bytes and flags."""
    if entry.curve is None:
        return
    online, final = entry.parts["online"], entry.parts["final"]
    for i, scenario in enumerate(board.suite.file.scenarios):
        for repetition in range(entry.repetitions):
            so_far = entry.curve.so_far[:, i, repetition]
            at = (i, repetition)
            yield {
                "suite": board.suite.file.name,
                "entry": entry.name,
                "scenario": scenario.name,
                "third": scenario.third,
                "repetition": repetition,
                "score_online": online.score[at],
                "score_final": final.score[at],
                "utility_online": online.utility[at],
                "utility_final": final.utility[at],
                **{
                    f"score_at_{100 * share:.0f}": value
                    for share, value in zip(CHECKPOINTS, so_far, strict=True)
                },
                "wire_bytes": entry.curve.wire_bytes[at],
                "flags_of_scenario": ", ".join(final.raised.get(scenario.name, ())),
                **amounts(entry, at),
                "recommended": entry.curve.recommended[scenario.name][repetition],
            }


def _mean(values: Mapping[str, float | None]) -> float | None:
    known = [value for value in values.values() if value is not None]
    return mean(known) if known else None


def _columns(lines: Sequence[EntryLine], details: Mapping[str, Any]) -> Table:
    columns = ("entry", "category", "repetitions", "regret",
               *(f"S at {100 * share:g} %" for share in CHECKPOINTS[:-1]),
               "intervals to recover", "wire bytes per interval")  # fmt: skip
    entries = []
    for line in lines:
        if line.entry not in details:
            continue
        so_far = details[line.entry]["anytime"]["score"]
        cells = (
            _number(line.regret, ".2f"),
            *(f"{one['value']:+.3f}" for one in so_far[:-1]),
            _number(line.recovery, ".1f"),
            _number(line.wire_bytes, ".0f"),
        )
        entries.append((line.entry, line.category, str(line.repetitions), *cells))
    return Table(columns, entries, "further columns", words=2)


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)


def _flags(lines: Sequence[EntryLine]) -> Table:
    entries = [
        (line.entry, stage, name, str(number))
        for line in lines
        for stage in STAGES
        if line.final is not None
        for name, number in line.stage(stage).flags.items()
    ]
    return Table(("entry", "stage", "safety flag", "scenarios"), entries, "safety flags", words=3)
