"""An agent's memory on disk: one line per event, bounded, and whole after any crash.

A line is the CRC-32 of its text in 8 hexadecimal digits, a blank, and a JSON object. Lines are
appended and flushed to the disk before the call returns; a line that a crash cut off is found by
its CRC and left out. A file that grew too long is written again with its newest lines and moved
into place, so there is an old or a new one, never half of either.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.core.sums import count

__all__ = ["Journal", "Record"]

Record = dict[str, Any]

MOST_BYTES = 1 << 20
KEPT = 200
"""Lines that are kept when a journal is shortened, beside the last confirmed setting."""


class Journal:
    """The events of one device, oldest first. ``bad_lines`` counts what could not be read."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        """Read the journal, or begin one; raise DeviceError if neither can be done."""
        self._path = path
        self._most_bytes = most_bytes
        self.records: list[Record] = []
        self.bad_lines = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise self._failed("read", error) from None
        for line in data.splitlines():
            record = _parsed(line)
            if record is None:
                self.bad_lines += 1
            else:
                self.records.append(record)
        self._size = len(data)
        if self.bad_lines or (data and not data.endswith(b"\n")):
            self._rewrite()

    def append(self, record: Record) -> None:
        """Add an event; it is on the disk when this returns. Raises DeviceError if it is not.

        A journal that cannot be shortened then stays long until the next event: to raise would
        deny an event that is on the disk.
        """
        line = _line(record)
        try:
            with open(self._path, "r+b" if self._path.exists() else "xb") as file:
                try:
                    file.seek(self._size)
                    file.write(line)
                    file.truncate()
                    _flushed(file)
                except OSError:
                    file.truncate(self._size)  # half a line would spoil the next one
                    raise
        except OSError as error:
            raise self._failed("written", error) from None
        self._size += len(line)
        self.records.append(record)
        if self._size > self._most_bytes:
            with suppress(DeviceError):
                self._rewrite()

    def last(self, event: str) -> Record | None:
        """Return the newest event of a kind."""
        return next((r for r in reversed(self.records) if r.get("event") == event), None)

    def _rewrite(self) -> None:
        """Write the newest lines, and the last confirmed setting, into a new file."""
        confirmed = self.last("confirmed")
        kept = self.records[-KEPT:]
        while len(kept) > 1 and count(len(_line(r)) for r in kept) > self._most_bytes // 2:
            kept = kept[len(kept) // 2 :]
        if confirmed is not None and not any(r is confirmed for r in kept):
            kept = [confirmed, *kept]
        data = b"".join(map(_line, kept))
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            with open(fresh, "wb") as file:
                file.write(data)
                _flushed(file)
            os.replace(fresh, self._path)
            self.records, self._size = kept, len(data)  # from here on this is the file
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()  # a full disk needs the room
            raise self._failed("written", error) from None

    def _failed(self, word: str, error: OSError) -> DeviceError:
        return DeviceError(
            f"the journal {self._path} cannot be {word} ({error.strerror or error}); an agent "
            "changes nothing that it cannot remember"
        )


def _flushed(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _line(record: Record) -> bytes:
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parsed(line: bytes) -> Record | None:
    crc, blank, text = line.partition(b" ")
    try:
        if not blank or int(crc, 16) != zlib.crc32(text):
            return None
        record = parse_json(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
