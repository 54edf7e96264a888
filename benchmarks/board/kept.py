"""The board as committed data: results, and what every run was, without the logs.

``bench keep`` writes a folder of a few MB for a board whose logs have gigabytes:

- ``results.json`` and ``board.md``, from which ``bench site`` and the docs are made;
- ``board.json``: the suite's digest and the rows;
- ``runs.jsonl``: a line per run with the digests of both logs and the setting that it recommended:
  whole for the default, for other rows what is not the default's on the same scenario;
- ``cost.json``, where the board's seconds are known.

``bench rerun`` makes runs of it again and compares their digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dcqcn_gym
from dcqcn_gym.benchmarks.board.cost import COST_FILE, write_cost
from dcqcn_gym.benchmarks.board.draw import choose
from dcqcn_gym.benchmarks.board.kept_readings import Readings, log_digest, open_readings
from dcqcn_gym.benchmarks.board.protocol import BASELINE, BOARD_FILE, Attempt, Board, open_board
from dcqcn_gym.benchmarks.board.results import write_results
from dcqcn_gym.benchmarks.board.scoring import STAGES
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError, quote
from dcqcn_gym.core.files import parse_json, read_file, read_text
from dcqcn_gym.runs.log import MOST_LOG_BYTES, write_atomically, write_json
from dcqcn_gym.runs.rows import Row

__all__ = ["RUNS_FILE", "Kept", "keep", "open_kept", "ranking_text", "rerun"]

RUNS_FILE = "runs.jsonl"


def keep(board: Board, out: Path, workers: int | None = None) -> list[str]:
    """Write the committed form of a board's whole rows into ``out``; return the rows left out.

    The same board gives the same bytes, but for ``cost.json``. Raises RunError if ``out`` holds a
    board of another suite, or the default has runs missing: without them no row has a score.
    """
    _refuse_another_suite(board, out)
    with open_readings(board, workers) as readings:
        lines = {row.name: _lines(board, row, readings) for row in board.rows}
    whole = [row for row in board.rows if lines[row.name] is not None]
    if BASELINE not in {row.name for row in whole}:
        raise RunError(
            f"{board.out}: runs of {BASELINE!r} are missing, and every score is against them; "
            f"bench resume {board.out} makes them, or --repetitions N keeps the first ones alone"
        )
    out.mkdir(parents=True, exist_ok=True)
    kept = replace(board, rows=whole)
    write_results(kept, workers, out)
    for path in out.glob("*.parquet"):  # their bytes are those of a version of pyarrow
        path.unlink()
    write_json(out / BOARD_FILE, kept.header())
    found = list(lines[BASELINE] or ())
    default = {line["scenario"]: line["recommended"] for line in found}
    for row in whole:
        if row.name != BASELINE:
            found += _without_default(lines[row.name] or (), default)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in found)
    write_atomically(out / RUNS_FILE, text.encode())
    if not any(cost.runs for cost in write_cost(kept, out)):
        (out / COST_FILE).unlink()
    return [row.name for row in board.rows if row not in whole]


def _refuse_another_suite(board: Board, out: Path) -> None:
    """Raise RunError rather than replace what somebody committed of another suite."""
    path = out / BOARD_FILE
    if not path.exists():
        return
    try:
        old = dict(parse_json(read_text(path)))
    except (TypeError, ValueError):
        old = {}
    if old.get("suite_digest") != board.suite.digest:
        name = Path(str(old.get("suite", "none"))).name
        raise RunError(
            f"{out} holds a board of suite {quote(name)}, {board.out} one of "
            f"{board.suite.file.name!r}; give another --out, or remove that folder first"
        )


def _lines(board: Board, row: Row, readings: Readings) -> list[dict[str, Any]] | None:
    """Return a line per run of a row; None if one is missing."""
    found = readings.of(row)
    lines = []
    for attempt in board.attempts(row):
        if not all(path in found for path in attempt.logs):
            return None
        online, final = (found[path] for path in attempt.logs)
        lines.append({
            "row": row.name, "scenario": attempt.entry.name, "repetition": attempt.repetition,
            "online": online[1].run, "final": final[1].run,
            "recommended": dict(online[0].recommended),
        })  # fmt: skip
    return lines


def _without_default(
    lines: Sequence[dict[str, Any]], default: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield lines of a row, each with those knobs alone that are not the default's."""
    for line in lines:
        base = default[line["scenario"]]
        moved = {k: v for k, v in line["recommended"].items() if base.get(k) != v}
        yield {**line, "recommended": moved}


def ranking_text(folder: Path) -> str:
    """Return the ranking of a kept board as Markdown, as it stands in ``board.md``."""
    title, table = read_text(folder / "board.md").split("\n\n")[:2]
    return f"{title.removeprefix('## ')}\n\n{table}\n"


@dataclass(frozen=True)
class Kept:
    """A committed board: its runs by row, scenario and repetition, and its rows."""

    board: Board
    runs: Mapping[tuple[str, str, int], Mapping[str, Any]]

    @property
    def names(self) -> list[str]:
        """The rows that can be run again by name: all but the default."""
        return [row.name for row in self.board.rows if row.name != BASELINE]


def open_kept(folder: Path) -> Kept:
    """Return what ``bench keep`` wrote; ConfigError or RunError if it is something else."""
    board = open_board(folder)
    path = folder / RUNS_FILE
    try:
        lines = [parse_json(line) for line in read_text(path, MOST_LOG_BYTES).splitlines()]
        runs = {(line["row"], line["scenario"], int(line["repetition"])): line for line in lines}
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} holds no runs of a board: {quote(str(error))}") from None
    for attempt in board.attempts():
        if _key(attempt) not in runs:
            raise RunError(f"{path} has no line for {attempt.title}; bench keep writes it anew")
    return Kept(board, runs)


def rerun(
    kept: Kept,
    out: Path,
    row: str | None = None,
    repetitions: int = 1,
    **how: Any,
) -> tuple[str, int, list[str]]:
    """Make the first repetitions of a row again; return its name, how many runs, what differs.

    Without a ``row`` the version draws one, so that each release looks at another. ``how`` goes to
    :meth:`Board.carry_out`. Raises ConfigError or UnknownNameError.
    """
    known = [BASELINE, *kept.names]
    name = choose(kept.names or known, dcqcn_gym.__version__, "rerun") if row is None else row
    if name not in known:
        raise UnknownNameError("row", name, known)
    if repetitions > kept.board.repeated(name):
        raise ConfigError(f"row {name!r} has {kept.board.repeated(name)} repetitions; give fewer")
    chosen = next(one for one in kept.board.rows if one.name == name)
    board = replace(kept.board, rows=[chosen], out=out, repetitions=repetitions)
    failed = board.carry_out(**how)
    differing = [f"{path.parent.name}/{path.name}: {words}" for path, words in failed.items()]
    attempts = board.attempts()
    for attempt in attempts:
        differing += _differences(attempt, kept.runs[_key(attempt)])
    return name, len(attempts), differing


def _key(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.row.name, attempt.entry.name, attempt.repetition


def _differences(attempt: Attempt, line: Mapping[str, Any]) -> Iterator[str]:
    for stage, path in zip(STAGES, attempt.logs, strict=True):
        if path.exists() and log_digest(read_file(path, MOST_LOG_BYTES)).run != line[stage]:
            yield f"{attempt.title}: the {stage} run is not the one that was kept"
