"""The one way to a device's files: below a root, plain names only, writes by a fixed list."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, DeviceError, quote

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
MOST_BYTES = 2**20
"""Longer files are refused; every file of sysfs or debugfs that is read here has a few bytes."""


class DeviceFiles:
    """Files below ``folder``, ``/`` on a real host; only paths in ``writable`` are ever written.

    Paths are relative, with ``/`` between plain names: no ``..``, no empty name, no leading slash.
    """

    def __init__(self, folder: Path, writable: Collection[str] = ()) -> None:
        self._folder = folder
        self._writable = frozenset(writable)

    def read(self, path: str) -> str | None:
        """Return the text of a file without white space at its ends, None if there is none.

        Raises DeviceError if it cannot be read or is too long.
        """
        try:
            with self._at(path).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DeviceError(f"/{path}: cannot be read ({error.strerror or error})") from None
        if len(data) > MOST_BYTES:
            raise DeviceError(f"/{path}: cannot be read: longer than {MOST_BYTES} bytes")
        return data.decode("utf-8", "replace").strip()

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; none if it is not there."""
        try:
            return sorted(entry.name for entry in self._at(path).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise DeviceError(f"/{path}: cannot be read ({error.strerror or error})") from None

    def write(self, path: str, text: str) -> None:
        """Write one line into a file that exists already.

        Raises ConfigError for a path that is not on the list, DeviceError if the device refuses.
        No file is created, and none is written through a symbolic link.
        """
        if path not in self._writable:
            raise ConfigError(f"{quote(path)} is not on the list of files that may be written")
        flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(self._at(path), flags)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise DeviceError(f"/{path}: cannot be written: it is not an ordinary file")
                os.write(descriptor, f"{text}\n".encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DeviceError(f"/{path}: cannot be written ({error.strerror or error})") from None

    def _at(self, path: str) -> Path:
        parts = path.split("/")
        if not all(_NAME.fullmatch(part) for part in parts):
            raise ConfigError(
                f"path {quote(path)}: expected plain names with / between them, below the root"
            )
        return self._folder.joinpath(*parts)
