"""From a finished board to the folder that its authors hand in: one row, its code, logs, result."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dcqcn_gym
from dcqcn_gym.benchmarks.board.plugin_code import plugin_files, requirements
from dcqcn_gym.benchmarks.board.protocol import BASELINE, BOARD_FILE, Board
from dcqcn_gym.benchmarks.board.repetitions import check_repetitions, check_slow
from dcqcn_gym.benchmarks.board.results import row_line
from dcqcn_gym.benchmarks.board.row_text import check_asked
from dcqcn_gym.benchmarks.board.scoring import score_rows
from dcqcn_gym.benchmarks.board.submission import (
    ABOUT,
    CODE,
    REQUIREMENTS,
    RESULT,
    SCHEMA,
    About,
    compressed,
    log_name,
    open_submission,
    write_list,
)
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import RunError, UnknownNameError
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.runs.log import MOST_LOG_BYTES, read_run, write_atomically
from dcqcn_gym.runs.results import plain
from dcqcn_gym.runs.rows import Row

__all__ = ["Author", "result_bytes", "submit"]


@dataclass(frozen=True)
class Author:
    """What only the authors of a row can say; the fields are those of ``submission.toml``."""

    authors: Sequence[str]
    licence: str
    track: str
    link: str = ""
    training_intervals: int = 0
    training_data: str = "none"


def submit(
    board: Board,
    name: str,
    out: Path,
    author: Author,
    *,
    wheel: Path | None = None,
    include: Sequence[Path] = (),
) -> Path:
    """Write the row called ``name``, or of the tuner of that name, into the new folder ``out``.

    ``wheel`` and ``include`` are as :func:`~.plugin_code.plugin_files` takes them. Raises
    ConfigError, UnknownNameError or RunError; then nothing is left of ``out``.
    """
    row = _row(board, name)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out} already holds something; give another --out")
    about = _about(board, row, author)
    files: dict[str, bytes] = {
        f"{CODE}/{path}": data for path, data in plugin_files(row.tuner, wheel, include).items()
    }
    files[ABOUT] = toml_text(about.model_dump(mode="json", by_alias=True)).encode()
    files[REQUIREMENTS] = requirements(row.tuner).encode()
    files[RESULT] = result_bytes(board, row)
    check_slow(board, row, _named(board, row))
    draft = out.with_name(f"{out.name}.tmp-{os.getpid()}")
    try:
        for path, data in files.items():
            _write(draft / path, data)
        for attempt in board.attempts(row):
            for log in attempt.logs:
                _check_header(log, attempt.online.spec.header())
                data = compressed(read_file(log, MOST_LOG_BYTES))
                _write(draft / log_name(attempt.entry.name, log), data)
        write_list(draft)
        open_submission(draft)
        if out.exists():
            out.rmdir()
        draft.rename(out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return out


def result_bytes(board: Board, row: Row) -> bytes:
    """Return a row's result as a submission holds it; RunError while runs are missing."""
    scored = next(found for found in score_rows(board) if found.name == row.name)
    if not scored.complete:
        raise RunError(
            f"row {row.name!r} has no result yet: runs of it or of the default are missing; "
            f"dcqcn-gym bench resume {board.out} makes them"
        )
    value = {"schema": SCHEMA, **plain(row_line(board, scored, None))}
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def _row(board: Board, name: str) -> Row:
    rows = {row.name: row for row in board.rows if row.name != BASELINE}
    found = rows.get(name) or next((row for row in rows.values() if row.tuner == name), None)
    if found is None:
        raise UnknownNameError(f"row of {board.out}", name, rows)
    check_asked(found, _named(board, found))
    check_repetitions(board.suite.file, board.repeated(found.name), _named(board, found))
    return found


def _named(board: Board, row: Row) -> str:
    return f"{board.out / BOARD_FILE}, row {row.name!r}"


def _about(board: Board, row: Row, author: Author) -> About:
    table: dict[str, Any] = {
        "schema": SCHEMA,
        "name": row.name,
        "tuner": row.tuner,
        "tuner_args": dict(row.tuner_args),
        "changes": dict(row.changes),
        "authors": list(author.authors),
        "licence": author.licence,
        "track": author.track,
        "link": author.link,
        "version": dcqcn_gym.__version__,
        "suite": board.suite.file.name,
        "suite_digest": board.suite.digest,
        "repetitions": board.repeated(row.name),
        "training": {"intervals": author.training_intervals, "data": author.training_data},
    }
    return validate(table, About, source="bench submit")


def _check_header(log: Path, asked: dict[str, Any]) -> None:
    """Raise RunError for a log of another version: it would be refused by every verifier."""
    found = read_run(log).header.get("versions")
    if found != asked["versions"]:
        raise RunError(
            f"{log} was made by {found}, this is {asked['versions']}; run the board again"
        )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
