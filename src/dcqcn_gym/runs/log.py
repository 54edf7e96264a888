"""The event log of a run: append-only JSON Lines; reports, replay and verification read only it.

Line 1 is the header (what was asked for), then one line per monitor interval, then one line with
the end. Times are integer picoseconds, sizes bytes, settings in NVIDIA's units. The same arguments
give the same bytes; clocks of the machine never enter (they live in ``timing.json``).
docs/tuners.md lists the fields.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from dcqcn_gym.core.errors import ConfigError, RunError, in_one_line, quote
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.sums import mean
from dcqcn_gym.runs.atomic_file import write_atomically, write_failure
from dcqcn_gym.runs.claim import check_place
from dcqcn_gym.runs.log_check import check_line, check_whole

SCHEMA = 4
"""Version of the log's layout; a reader refuses a newer one."""

MOST_LOG_BYTES = 2**35
"""Longer logs are refused: they would not fit into memory."""

Line: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A log as read: ``header``, the complete ``intervals``, and ``end`` (None if interrupted).

    ``size`` is the length in bytes of the complete lines; a torn last line lies beyond it.
    """

    path: Path
    header: Line
    intervals: list[Line] = field(default_factory=list)
    end: Line | None = None
    size: int = 0

    @property
    def complete(self) -> bool:
        """True if the run reached its end."""
        return self.end is not None

    def _repr_html_(self) -> str:
        """Return what was run and how far it came, for notebooks."""
        scenario = self.header.get("scenario")
        name = scenario.get("name") if isinstance(scenario, Mapping) else scenario
        utilities = [float(line["utility"]) for line in self.intervals if "utility" in line]
        rows = {
            "scenario": name, "tuner": self.header.get("tuner"), "seed": self.header.get("seed"),
            "intervals": f"{len(self.intervals)} of {self.header.get('intervals')}",
            "mean utility": f"{mean(utilities):.4f}" if utilities else "not known",
        }  # fmt: skip
        cells = (f"<tr><th>{key}<td>{escape(str(value))}" for key, value in rows.items())
        return f"<table>{''.join(cells)}</table>"


def encode_line(line: Mapping[str, Any]) -> bytes:
    """Return one log line: compact JSON with floats as repr, ended by a newline; NaN raises."""
    text = json.dumps(line, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def _lines(path: Path, data: bytes) -> Iterator[tuple[int, Line]]:
    """Yield (end offset, line); stop silently at a torn last line, raise at a bad one inside."""
    start, number = 0, 0
    while (stop := data.find(b"\n", start)) >= 0:
        number += 1
        try:
            line = parse_json(data[start:stop])
            if not isinstance(line, dict):
                raise ValueError("not an object")
        except ValueError as error:
            if stop + 1 == len(data):  # a torn write can end in a newline of its own
                return
            raise RunError(
                f"{path}: line {number} is not a line of an event log: {in_one_line(error)}"
            ) from None
        check_line(path, number, line)
        start = stop + 1
        yield start, line


def read_run(path: str | Path) -> Run:
    """Read a log (or the ``run.jsonl`` of a run directory), tolerating a torn last line.

    Raises :class:`RunError` if it is missing, has no header, is of another schema, or is damaged
    before its last line, the line and the key named.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "run.jsonl"
    if not path.exists():
        raise RunError(f"{path} cannot be read: No such file or directory")
    try:
        data = read_file(path, most=MOST_LOG_BYTES)
    except ConfigError as error:
        raise RunError(str(error)) from None
    header: Line | None = None
    intervals: list[Line] = []
    end: Line | None = None
    size = 0
    for offset, line in _lines(path, data):
        if header is None:
            header = _checked_header(path, line)
        elif end is not None:
            raise RunError(f"{path}: there are lines after the end of the run")
        elif "end" in line:
            end = line["end"]
        elif line.get("i") == len(intervals):
            intervals.append(line)
        else:
            raise RunError(
                f"{path}: expected interval {len(intervals)}, got {quote(line.get('i'))}"
            )
        size = offset
    if header is None:
        raise RunError(f"{path} holds no run: its first line is not a complete header")
    check_whole(path, intervals, end)
    return Run(path, header, intervals, end, size)


def _checked_header(path: Path, line: Line) -> Line:
    if line.get("kind") != "run" or not isinstance(line.get("schema"), int):
        raise RunError(f"{path} is not the event log of a run (line 1 is not a run header)")
    if line["schema"] != SCHEMA:
        raise RunError(
            f"{path} has log schema {line['schema']}, this version reads schema {SCHEMA} alone; "
            "read it with the dcqcn-gym that line 1 names"
        )
    return line


class LogWriter:
    """Append lines to a log, one fsync each; with ``replay`` first check them against old ones.

    A new log appears with its whole header or not at all. While recorded lines remain, a line is
    compared instead of written: a resumed run must repeat them byte for byte, and
    :class:`RunError` names the first difference. If the disk refuses a line, the file is cut back
    to its last whole line and :class:`RunError` says so.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any], replay: Run | None = None):
        self.path = Path(path)
        self._recorded = [] if replay is None else list(replay.intervals)
        self._at = 0
        if replay is None:
            write_atomically(self.path, encode_line(header))
        try:
            self._file = open(self.path, "r+b", buffering=0)  # noqa: SIM115
            self._hold()
            self._size = self._file.seek(0, os.SEEK_END)
            if replay is not None and self._size != replay.size:
                self._file.truncate(replay.size)  # drops the torn line
                self._size = self._file.seek(replay.size)
        except OSError as error:
            raise write_failure(self.path, error) from error

    def _hold(self) -> None:
        """Lock the log while it is written; RunError if another process writes it.

        That is a worker elsewhere that was given up for lost and lives.
        """
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise RunError(f"{self.path} is being written by another process") from None
        except OSError:  # a file system without locks cannot protect us
            return

    @property
    def replaying(self) -> bool:
        """True while recorded intervals remain to be repeated."""
        return self._at < len(self._recorded)

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line and force it to disk, or compare it with the recorded one."""
        data = encode_line(line)
        if self.replaying:
            recorded = self._recorded[self._at]
            if data != encode_line(recorded):
                raise RunError(self._drift(recorded, json.loads(data)))
            self._at += 1
            return
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            self._cut_back()
            raise write_failure(self.path, error) from error
        self._size += len(data)

    def close(self) -> None:
        """Close the file; allowed more than once."""
        with contextlib.suppress(OSError):  # every line was forced to disk; a plug-in closed it
            self._file.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def _cut_back(self) -> None:
        try:
            self._file.truncate(self._size)
        except OSError:  # the reader tolerates the torn line
            return

    def _drift(self, recorded: Line, now: Line) -> str:
        keys = [k for k in {**recorded, **now} if recorded.get(k) != now.get(k)]
        key = keys[0] if keys else "order of keys"
        return (
            f"{self.path}: interval {self._at} does not repeat: {key} was recorded as "
            f"{short_json(recorded.get(key))} and is {short_json(now.get(key))} now; it was made "
            "by another version or was changed, so it cannot be continued (--force starts again)"
        )


def short_json(value: object) -> str:
    """Return a value as JSON, cut to 80 characters, for a message."""
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def difference(old: Any, new: Any, name: str = "") -> tuple[str, Any, Any]:
    """Return the first key in which two JSON values differ, and both values of it."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return difference(old.get(key), new.get(key), f"{name}.{key}".lstrip("."))
    return name, old, new


def write_json(path: str | Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file for people and programs, as a whole or not at all."""
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


_MADE_LATER = ("best.json", "timing.json", "report.html", "results.json", "results.parquet")


@dataclass(frozen=True)
class RunDir:
    """Where everything of one run lies; nothing is created before :meth:`create`."""

    root: Path

    @property
    def log(self) -> Path:
        """The event log of the tuned run."""
        return self.root / "run.jsonl"

    @property
    def best(self) -> Path:
        """The recommended setting and how it did."""
        return self.root / "best.json"

    @property
    def timing(self) -> Path:
        """Wall and CPU seconds, outside every same-bytes promise."""
        return self.root / "timing.json"

    def reference(self, name: str) -> Path:
        """The log of a fixed setting on the same traffic."""
        return self.root / "reference" / f"{name}.jsonl"

    def evaluation(self, name: str, seed: int) -> Path:
        """The log of a fixed setting on held-out traffic."""
        return self.root / "evaluation" / f"{name}-seed{seed}.jsonl"

    def check(self, *, resume: bool, force: bool) -> Run | None:
        """Return the run to resume, or None for a new one; raise RunError if OUT cannot be used.

        Writes nothing.
        """
        if resume and force:
            raise RunError("a run is continued or replaced; give one of them")
        check_place(self.root)
        if resume:
            if not self.log.exists():
                raise RunError(f"{self.root} holds no run ({self.log.name} is missing)")
            return read_run(self.log)
        if self.log.exists() and not force:
            raise RunError(
                f"{self.root} already holds a run; replace it with --force, or give another --out"
            )
        return None

    def create(self, *, fresh: bool = True) -> None:
        """Make the directories; if ``fresh``, remove the files of an earlier run, nothing else."""
        try:
            for folder in (self.root, self.root / "reference", self.root / "evaluation"):
                folder.mkdir(parents=True, exist_ok=True)
                for old in folder.glob("*.jsonl") if fresh else ():
                    old.unlink()
            for name in _MADE_LATER if fresh else ():
                (self.root / name).unlink(missing_ok=True)
        except OSError as error:
            raise write_failure(self.root, error) from error

    def remove_if_empty(self) -> None:
        """Remove the directories again if nothing was written into them."""
        for folder in (self.root / "reference", self.root / "evaluation", self.root):
            with contextlib.suppress(OSError):  # not empty, or not there
                folder.rmdir()
