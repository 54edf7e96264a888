"""Result files that appear together: under temporary names until the last one is written."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO

from dcqcn_gym.core.collectives import Collective
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.interval import JobSpans
from dcqcn_gym.core.iterations import COMPUTING


class JobTrace:
    """A growing Chrome trace, which Perfetto opens: a process for each rank of each job.

    Its first thread has computation, the others what is communicated at once; process 0 has the
    iterations, and counters of what else was traced. Times are microseconds.
    """

    def __init__(self, files: ResultFiles, name: str, jobs: Iterable[Collective]) -> None:
        self._files, self._name = files, name
        self._jobs = {c.workload: c.operations for c in jobs if c.operations is not None}
        self._lanes: dict[int, list[int]] = {}
        """By process: when the last span of each thread of communication ended."""
        self._comma = ""
        files.text(name, '{"displayTimeUnit": "ns", "traceEvents": [')
        self._named("process", 0, 0, "jobs")

    def _event(self, event: Mapping[str, object]) -> None:
        self._files.text(self._name, f"{self._comma}\n{json.dumps(event)}")
        self._comma = ","

    def _named(self, what: str, process: int, thread: int, name: str) -> None:
        self._event({"ph": "M", "pid": process, "tid": thread, "name": f"{what}_name",
                     "args": {"name": name}})  # fmt: skip

    def add(self, spans: JobSpans) -> None:
        """Write spans, which are ordered by their end."""
        for workload, label, host, begin, end in spans.rows():
            of = self._jobs[workload]
            name, kind, process, thread = f"iteration of job {workload}", "iteration", 0, workload
            if host >= 0:
                name, kind = of.names[label], of.kinds[of.kind_of[label]]
                process = 1 + host
                thread = self._thread(process, workload, int(of.rank_of[host]), kind, begin, end)
            self._event({"name": name, "cat": kind, "ph": "X", "pid": process, "tid": thread,
                         "ts": begin / 1e6, "dur": (end - begin) / 1e6})  # fmt: skip

    def _thread(
        self, process: int, workload: int, rank: int, kind: str, begin: int, end: int
    ) -> int:
        """Return the first thread that is free from ``begin`` on, and take it."""
        if process not in self._lanes:
            self._lanes[process] = []
            self._named("process", process, 0, f"job {workload} rank {rank}")
            self._named("thread", process, 0, COMPUTING)
        if kind == COMPUTING:
            return 0
        lanes = self._lanes[process]
        free = next((i for i, last in enumerate(lanes) if last <= begin), len(lanes))
        if free == len(lanes):
            lanes.append(0)
            self._named("thread", process, free + 1, "communication")
        lanes[free] = end
        return free + 1

    def count(self, now_ps: int, name: str, value: float) -> None:
        """Write the value of a counter from now on."""
        self._event({"name": name, "ph": "C", "pid": 0, "ts": now_ps / 1e6,
                     "args": {"value": value}})  # fmt: skip

    def close(self) -> None:
        """End the file."""
        self._files.text(self._name, "\n]}\n")


class ResultFiles:
    """A context in which a directory's files are written; left early, it leaves nothing behind.

    ``tables`` are CSV files with their columns, which exist even without a row. ``known`` are all
    names that an earlier result may have: :meth:`publish` removes those that were not written.
    """

    def __init__(
        self, out: Path, tables: Mapping[str, Sequence[str]], known: Iterable[str]
    ) -> None:
        self.out = out
        self._tables = tables
        self._known = tuple(known)
        self._names: list[str] = []
        self._new_folders: list[Path] = []
        self._open: dict[str, TextIO] = {}
        self._stack = ExitStack()
        self._published = False

    def __enter__(self) -> ResultFiles:
        self._new_folders = [p for p in (self.out, *self.out.parents) if not p.exists()]
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            for name, columns in self._tables.items():
                self._rows(name, [columns])
        except OSError as error:
            self._discard()
            raise RunError(f"{self.out} cannot be written: {error.strerror}") from error
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._published:
            self._discard()

    def draft(self, name: str) -> Path:
        """Return the temporary path of a file, which from now on is one of the results."""
        if name not in self._names:
            self._names.append(name)
        return self.out / f"{name}.part"

    def rows(self, name: str, rows: Iterable[Sequence[object]]) -> None:
        """Append rows to a CSV file."""
        try:
            self._rows(name, rows)
        except OSError as error:
            raise RunError(f"{self.out / name} cannot be written: {error.strerror}") from error

    def _rows(self, name: str, rows: Iterable[Sequence[object]]) -> None:
        if name not in self._open:
            handle = open(self.draft(name), "w", newline="", encoding="utf-8")  # noqa: SIM115
            self._open[name] = self._stack.enter_context(handle)
        csv.writer(self._open[name], lineterminator="\n").writerows(rows)
        self._open[name].flush()

    def text(self, name: str, text: str) -> None:
        """Append to a text file."""
        try:
            if name not in self._open:
                handle = open(self.draft(name), "w", encoding="utf-8")  # noqa: SIM115
                self._open[name] = self._stack.enter_context(handle)
            self._open[name].write(text)
        except OSError as error:
            raise RunError(f"{self.out / name} cannot be written: {error.strerror}") from error

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file."""
        try:
            self.draft(name).write_bytes(data)
        except OSError as error:
            raise RunError(f"{self.out / name} cannot be written: {error.strerror}") from error

    def publish(self) -> None:
        """Give every file its name, in the order of their first mention."""
        try:
            self._stack.close()
            for name in self._names:
                os.replace(self.draft(name), self.out / name)
            for name in self._known:
                if name not in self._names:
                    (self.out / name).unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{self.out} cannot be written: {error.strerror}") from error
        self._published = True

    def _discard(self) -> None:
        with suppress(OSError):  # the disk is full; the file is removed next
            self._stack.close()
        for name in {*self._names, *self._known}:
            (self.out / f"{name}.part").unlink(missing_ok=True)
        for folder in self._new_folders:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def write_files(out: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files by their names into a folder, all or none."""
    with ResultFiles(out, {}, ()) as results:
        for name, data in files.items():
            results.write(name, data.encode() if isinstance(data, str) else data)
        results.publish()
