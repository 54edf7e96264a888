"""A board as tables and as ``results.json``: everything follows from the logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.board.compared import best_known, p_values
from dcqcn_gym.benchmarks.board.details import course_details, row_details, suite_details
from dcqcn_gym.benchmarks.board.kept_readings import open_readings
from dcqcn_gym.benchmarks.board.protocol import BASELINE, Board
from dcqcn_gym.benchmarks.board.ranking import aggregate, bands, improvement, iqm
from dcqcn_gym.benchmarks.board.reading import CHECKPOINTS
from dcqcn_gym.benchmarks.board.run_table import write_runs
from dcqcn_gym.benchmarks.board.scoring import STAGES, RowScores, score_rows
from dcqcn_gym.benchmarks.board.tracks import track_of
from dcqcn_gym.core.score import geometric_ratio
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.runs.log import write_atomically
from dcqcn_gym.runs.results import write_results as write_json_results
from dcqcn_gym.runs.table import MISSING, Table, count_of

__all__ = ["TOO_FEW", "progress_table", "ranked", "row_line", "write_results"]

TOO_FEW = ", too few repetitions for a rank"
"""What stands beside the flags of a row that ran less often than the others."""


def ranked(rows: Sequence[RowScores]) -> dict[str, int]:
    """Return the rank band of every complete row whose final setting raises no flag.

    One that ran less often than the others has none: its bounds are too wide for flags.
    """
    asked = max((row.repetitions for row in rows), default=0)
    clean = {
        row.name: row.parts["final"].score
        for row in rows
        if row.complete and not row.parts["final"].raised and row.repetitions == asked
    }
    return bands(clean)


def write_results(
    board: Board, workers: int | None = None, out: Path | None = None
) -> tuple[list[Table], list[str]]:
    """Write ``results.json`` and ``board.md``; return the tables and remarks for a terminal.

    With pyarrow also ``runs.parquet``, a line for every run. Many new logs are read by ``workers``
    processes, by default one per CPU. Files go into ``out``, by default the board's folder.
    """
    folder = board.out if out is None else out
    with open_readings(board, workers) as readings:
        rows = score_rows(board, readings)
    place = ranked(rows)
    rows = sorted(rows, key=lambda row: _order(row, list(place)))
    known = best_known(rows, list(board.suite.scenarios))
    others = [row for row in rows if row.complete and row.name != BASELINE]
    chance = p_values({row.name: row.parts["final"].score for row in others})
    lines = [row_line(board, row, place.get(row.name)) for row in rows]
    courses = {line["row"]: line.pop("course") for line in lines if "course" in line}
    details = row_details(board, rows, known, courses)
    for line in lines:
        found = details.get(line["row"])
        if found is not None:
            line["p_default"] = chance.get(line["row"])
            line["regret"] = _mean(found["regret"])
            line["recovery"] = _mean(found["recovery"])
    write_json_results(
        folder,
        "board",
        lines,
        scenarios=board.suite.scenarios.values(),
        tuners={row.name: (row.tuner, row.tuner_args) for row in board.rows},
        seeds={"repetitions": list(range(board.repetitions))},
        figures={**suite_details(board, known), "rows": details},
    )
    write_runs(board, rows, folder)
    tables = [_ranking(board, lines), _columns(lines, details), _flags(lines)]
    text = "\n\n".join(f"## {t.title}\n\n{t.markdown()}" for t in tables if t.rows)
    write_atomically(folder / "board.md", (text + "\n").encode())
    remarks = [
        f"{row.name}: {count_of(row.missing, 'run')} missing; bench resume {board.out} makes them"
        for row in rows
        if row.missing
    ]
    return [table for table in tables if table.rows], remarks


def _order(row: RowScores, by_rank: Sequence[str]) -> tuple[int, bool, float]:
    """Rows with a rank come first, then the others by their final score, unfinished ones last."""
    place = by_rank.index(row.name) if row.name in by_rank else len(by_rank)
    return place, not row.complete, -iqm(row.parts["final"].score) if row.complete else 0.0


def row_line(board: Board, row: RowScores, band: int | None) -> dict[str, Any]:
    """Return a row as ``results.json`` holds it; without figures while runs are missing.

    It depends on no row but the default. ``course`` is how its online runs went.
    """
    tuner = next(one.tuner for one in board.rows if one.name == row.name)
    line: dict[str, Any] = {
        "row": row.name,
        "track": track_of(tuner),
        "band": band,
        "missing": row.missing,
        "repetitions": row.repetitions,
    }
    for stage in STAGES if row.complete else ():
        part = row.parts[stage]
        line[stage] = {
            "score": aggregate(part.score),
            "utility": float(np.mean(part.utility)),
            "improvement": improvement(part.score, np.zeros_like(part.score)),
            "flags": part.flag_names,
            "scores": dict(zip(board.suite.scenarios, part.score.tolist(), strict=True)),
            "flags_by_scenario": {
                name: [flag.name for flag in found] for name, found in part.raised.items()
            },
        }
    if row.course is not None:
        line["wire_bytes"] = float(np.mean(row.course.wire_bytes))
        line["course"] = course_details(row.course)
    return line


def _mean(values: Mapping[str, float | None]) -> float | None:
    known = [value for value in values.values() if value is not None]
    return mean(known) if known else None


def _ranking(board: Board, lines: Sequence[dict[str, Any]]) -> Table:
    columns = ("rank", "row", "S final", "slowdown", "S online", "better runs", "U final",
               "U online", "flags")  # fmt: skip
    cells = []
    for line in lines:
        if "final" not in line:
            cells.append((MISSING, line["row"], *[MISSING] * 6, f"{line['missing']} runs missing"))
            continue
        final, online = line["final"], line["online"]
        fewer = line["repetitions"] < board.repetitions
        called = line["row"] + (f" ({line['repetitions']} repetitions)" if fewer else "")
        rank = MISSING if line["band"] is None else str(line["band"])
        if line["row"] == BASELINE:
            cells.append((rank, BASELINE, "0", "1.00", "0", MISSING, f"{final['utility']:.3f}",
                          f"{online['utility']:.3f}", ""))  # fmt: skip
            continue
        raised = count(final["flags"].values())
        cells.append(
            (
                rank,
                called,
                _interval(final["score"]),
                f"{geometric_ratio(final['score'].value):.2f}",
                _interval(online["score"]),
                f"{100 * final['improvement']:.0f} %",
                f"{final['utility']:.3f}",
                f"{online['utility']:.3f}",
                f"{raised} up" if raised else f"none{TOO_FEW if fewer else ''}",
            )
        )
    file = board.suite.file
    title = f"{file.name}: {len(file.scenarios)} scenarios, {board.repetitions} repetitions"
    return Table(columns, cells, title, words=2)


def _columns(lines: Sequence[dict[str, Any]], details: Mapping[str, Any]) -> Table:
    columns = ("row", "track", "repetitions", "p against default", "regret",
               *(f"S at {100 * share:g} %" for share in CHECKPOINTS[:-1]),
               "intervals to recover", "wire bytes per interval")  # fmt: skip
    rows = []
    for line in lines:
        if line["row"] not in details:
            continue
        so_far = details[line["row"]]["anytime"]["score"]
        cells = (
            _number(line["p_default"], ".3f"),
            _number(line["regret"], ".2f"),
            *(f"{one['value']:+.3f}" for one in so_far[:-1]),
            _number(line["recovery"], ".1f"),
            f"{line['wire_bytes']:.0f}",
        )
        rows.append((line["row"], line["track"], str(line["repetitions"]), *cells))
    return Table(columns, rows, "further columns", words=2)


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)


def _interval(value: Any) -> str:
    return f"{value.value:+.3f} [{value.low:+.3f}, {value.high:+.3f}]"


def _flags(lines: Sequence[dict[str, Any]]) -> Table:
    rows = [
        (line["row"], stage, name, str(number))
        for line in lines
        for stage in STAGES
        if stage in line
        for name, number in line[stage]["flags"].items()
    ]
    return Table(("row", "stage", "safety flag", "scenarios"), rows, "safety flags", words=3)


def progress_table(board: Board) -> Table:
    """Return how many runs of every row are finished."""
    rows = []
    for row in board.rows:
        own = [a.logs for a in board.own_attempts if a.row.name == row.name]
        done = [count(_finished(logs[i]) for logs in own) for i in range(len(STAGES))]
        rows.append((row.name, *(f"{n} of {len(own)}" for n in done)))
    return Table(("row", *STAGES), rows, f"{board.out}: {board.suite.file.name}")


def _finished(path: Path) -> bool:
    """Return whether a log's last line ends its run, without reading what comes before."""
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            last = data.rfind(b"\n", 0, len(data) - 1) + 1
            return data[last : last + 6] == b'{"end"' and data[-1:] == b"\n"
    except (OSError, ValueError):  # no file, or an empty one
        return False
