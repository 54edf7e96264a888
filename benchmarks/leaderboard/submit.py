"""From a finished leaderboard to the folder that authors hand in: code, logs, result."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.entry_text import check_asked
from dcqcn_gym.benchmarks.leaderboard.plugin_code import plugin_files, requirements
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE, Leaderboard
from dcqcn_gym.benchmarks.leaderboard.results import entry_line
from dcqcn_gym.benchmarks.leaderboard.scoring import score_entries
from dcqcn_gym.benchmarks.leaderboard.submission import (
    ABOUT,
    CODE,
    REQUIREMENTS,
    RESULT,
    SCHEMA,
    About,
    check_name,
    log_name,
    open_submission,
    write_list,
)
from dcqcn_gym.core.compressed_files import pack
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import RunError, UnknownNameError
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.claim import STUDY_FILE
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import MOST_LOG_BYTES


def submit(
    board: Leaderboard,
    name: str,
    out: Path,
    *,
    include: Sequence[Path] = (),
    **said: Any,
) -> Path:
    """Write the entry called ``name``, or of the tuner of that name, into the new folder ``out``.

    ``said`` is what only its authors can say: ``authors``, ``licence``, ``category``, ``link`` and
    ``training``, as ``submission.toml`` has them.
    ``include`` is as :func:`~.plugin_code.plugin_files` takes it. Raises ConfigError,
    UnknownNameError or RunError; then nothing is left of ``out``.
    """
    entry = _entry(board, name)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out} already holds something; give another --out")
    about = _about(board, entry, said)
    files = {
        **{f"{CODE}/{at}": data for at, data in plugin_files(entry.tuner, include).items()},
        ABOUT: toml_text(about.model_dump(mode="json", by_alias=True)).encode(),
        REQUIREMENTS: requirements(entry.tuner).encode(),
        RESULT: result_bytes(board, entry),
    }
    for path in files:
        check_name(path, entry.tuner)
    draft = out.with_name(f"{out.name}.tmp-{os.getpid()}")
    try:
        for path, data in files.items():
            _write(draft / path, data)
        _write_logs(board, entry, draft)
        open_submission(draft)
        if out.exists():
            out.rmdir()
        draft.rename(out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return out


def _write_logs(board: Leaderboard, entry: Entry, out: Path) -> None:
    """Add the logs to the other files, and the list of all."""
    for attempt in board.attempts(entry):
        for log in attempt.logs:
            data = pack(read_file(log, MOST_LOG_BYTES))
            _write(out / log_name(attempt.scenario.name, log), data)
    write_list(out)


def result_bytes(board: Leaderboard, entry: Entry) -> bytes:
    """Return an entry's result as a submission holds it; RunError while runs are missing."""
    board = replace(board, entries=[Entry(BASELINE), entry])
    scored = next(found for found in score_entries(board) if found.name == entry.name)
    if not scored.complete:
        raise RunError(
            f"entry {entry.name!r} has no result yet: runs of it or of the default are missing; "
            f"dcqcn-gym bench run --out {board.out} makes them"
        )
    value = {"schema": SCHEMA, **entry_line(board, scored).data()}
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def _entry(board: Leaderboard, name: str) -> Entry:
    entries = {entry.name: entry for entry in board.entries if entry.name != BASELINE}
    found = entries.get(name) or next(
        (entry for entry in entries.values() if entry.tuner == name), None
    )
    if found is None:
        raise UnknownNameError(f"entry of {board.out}", name, entries)
    check_asked(found, f"{board.out / STUDY_FILE}, entry {found.name!r}")
    replace(board, entries=[found]).study().check(board.out)
    return found


def _about(board: Leaderboard, entry: Entry, said: Mapping[str, Any]) -> About:
    table: dict[str, Any] = {
        **said,
        "schema": SCHEMA,
        "name": entry.name,
        "tuner": entry.tuner,
        "tuner_args": dict(entry.tuner_args),
        "changes": dict(entry.changes),
        "version": RELEASE,
        "suite": board.suite.file.name,
        "suite_digest": board.suite.digest,
        "repetitions": board.repeated(entry.name),
    }
    return validate(table, About, source="bench submit")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
