"""What was read from a leaderboard's logs, cached: a log is read again only if it has changed.

``DIR/read/ROW.json`` is derived data. It may be deleted, and results are the same bytes with and
without it: an one counts only for a log of the same SHA-256, read by the same code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.log_digests import LogDigest, log_digest
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import RunReading, read_stage, reading_of, table_of
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import MOST_LOG_BYTES
from dcqcn_gym.runs.pool import worker_pool

FOLDER = "read"
AT_ONCE = 16
"""Logs that a worker process reads in one go."""
FEW = 100
"""Logs that this process reads by itself, before worker processes are worth their start."""
CODE = (
    "dcqcn_gym.benchmarks.leaderboard.reading",
    "dcqcn_gym.core.score",
    "dcqcn_gym.core.statistics",
    "dcqcn_gym.core.verdict",
    "dcqcn_gym.report.measurements",
    "dcqcn_gym.report.series",
    "dcqcn_gym.runs.log",
)
"""Modules that decide what a log says."""


@dataclass(frozen=True, eq=False)
class Readings:
    """The readings of a leaderboard's runs. ``executor`` reads logs that were never read before.

    With ``keep`` they are kept in the leaderboard's folder.
    """

    board: Leaderboard
    executor: Executor | None = None
    keep: bool = False

    def of(self, entry: Entry) -> dict[Path, tuple[RunReading, LogDigest]]:
        """Return what each finished log of an entry holds."""
        old = _load(self._path(entry)) if self.keep else {}
        cached: dict[str, Mapping[str, Any]] = {}
        new: list[Path] = []
        digests: dict[Path, LogDigest] = {}
        paths = [path for attempt in self.board.attempts(entry) for path in attempt.logs]
        for path in paths:
            digest = _digest_of(path)
            if digest is None:
                continue
            digests[path] = digest
            one = old.get(_key(path))
            if one is not None and one.get("sha256") == digest.file:
                cached[_key(path)] = one
            else:
                new.append(path)
        fresh = {
            _key(path): {"sha256": digests[path].file, "reading": table}
            for path, table in zip(new, self._read(new), strict=True)
            if table is not None
        }
        cached |= fresh
        if self.keep and fresh:
            self._write(entry, {**old, **cached})
        return {
            path: (reading_of(cached[_key(path)]["reading"]), digests[path])
            for path in paths
            if _key(path) in cached
        }

    def _path(self, entry: Entry) -> Path:
        return self.board.out / FOLDER / f"{entry.name}.json"

    def _write(self, entry: Entry, cached: Mapping[str, Any]) -> None:
        text = json.dumps({"code": _code(), "logs": dict(sorted(cached.items()))})
        path = self._path(entry)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, text.encode())

    def _read(self, paths: Sequence[Path]) -> Iterable[Mapping[str, Any] | None]:
        parts = [paths[i : i + AT_ONCE] for i in range(0, len(paths), AT_ONCE)]
        if self.executor is None or len(paths) <= FEW:
            return _read_all(paths)
        found = self.executor.map(_read_all, parts)
        return (table for part in found for table in part)


@contextmanager
def open_readings(board: Leaderboard, workers: int | None = None) -> Iterator[Readings]:
    """Yield the readings of a leaderboard from its folder; workers read many new logs."""
    if workers == 1:
        yield Readings(board, keep=True)
        return
    with worker_pool(workers) as pool:  # its processes start when they are needed
        yield Readings(board, pool, keep=True)


def _key(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _digest_of(path: Path) -> LogDigest | None:
    if not path.exists():
        return None
    try:
        return log_digest(read_file(path, MOST_LOG_BYTES))
    except ConfigError:
        return None


def _read_all(paths: Sequence[Path]) -> list[dict[str, Any] | None]:
    """Read some logs, in a worker process."""
    found = [read_stage(path, curve=path.name.startswith("online")) for path in paths]
    return [None if one is None else table_of(one) for one in found]


def _load(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the cached of a file; none if it is not there, damaged or made by other code."""
    try:
        data = parse_json(path.read_bytes())
        return dict(data["logs"]) if data["code"] == _code() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@cache
def _code() -> str:
    """Return the SHA-256 of the code that reads logs."""
    files = [import_module(name).__file__ for name in CODE]
    data = [Path(file).read_bytes() for file in files if file is not None]
    return hashlib.sha256(b"\0".join(data)).hexdigest()
