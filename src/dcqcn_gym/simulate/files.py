"""Result files that appear together: under temporary names until the last one is written."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO

from dcqcn_gym.core.errors import RunError


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
