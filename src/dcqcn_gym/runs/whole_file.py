"""A file written whole or not at all: a draft beside it is forced to disk and takes its name.

A draft is locked as long as its process lives. So what a killed process left can be told from what
another one writes just now, and goes when the same file is next written.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["try_folder", "write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, also where two processes do; OSError if it cannot be."""
    draft = _draft(path)
    while not _written(draft, path, data):
        continue
    with suppress(OSError):  # a folder that may be written and not be read
        for left in _drafts(path):
            _remove_unless_locked(left)


def try_folder(path: Path) -> None:
    """Raise OSError unless :func:`write_whole` can make ``path``; leaves nothing behind."""
    draft = _draft(path)
    draft.touch()
    draft.unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def _drafts(path: Path) -> Iterator[Path]:
    """Yield the drafts of one file, whoever made them."""
    begin, end = f"{path.name}.", ".tmp"
    for entry in path.parent.iterdir():
        name = entry.name
        if name.startswith(begin) and name.endswith(end) and name[len(begin) : -len(end)].isdigit():
            yield entry


def _written(draft: Path, path: Path, data: bytes) -> bool:
    """Write the draft and rename it; False if it was taken away, to be written again."""
    with open(draft, "wb") as file:
        try:
            with suppress(OSError):  # a file system without locks: no draft is ever removed there
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(draft, path)
        except FileNotFoundError:  # removed as left over, in the moment before it was locked
            return False
        except OSError:
            draft.unlink(missing_ok=True)
            raise
    return True


def _remove_unless_locked(draft: Path) -> None:
    with suppress(OSError), open(draft, "r+b") as file:  # gone, not ours, being written, no locks
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.unlink()
