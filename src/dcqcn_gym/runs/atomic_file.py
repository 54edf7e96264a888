"""A file written whole or not at all: a draft beside it is forced to disk and takes its name.

A symbolic link stays, and the file at its end is written. A device, a pipe, a socket or a folder is
refused: the draft would take its place.

A draft is locked as long as its process lives. So a draft of a killed process differs from one that
is being written; it goes when the same file is next written.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import other_kind


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all, also where two processes do; RunError if it cannot be."""
    path = _target(Path(path))
    draft = _draft(path)
    try:
        while not _written(draft, path, data):
            continue
    except OSError as error:
        raise write_failure(path, error) from error
    with suppress(OSError):  # a folder that may be written and not be read
        for left in _drafts(path):
            _remove_unless_locked(left)


def check_writable(path: Path) -> None:
    """Raise RunError unless :func:`write_atomically` can make ``path``; leaves nothing behind."""
    draft = _draft(_target(path))
    try:
        draft.touch()
        draft.unlink(missing_ok=True)
    except OSError as error:
        raise write_failure(path, error) from error


def _target(path: Path) -> Path:
    """Return the file that is to be written, at the end of links; RunError if it is no file."""
    end = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        kind = other_kind(end.stat().st_mode)
    except FileNotFoundError:
        return end
    except OSError as error:
        raise write_failure(path, error) from error
    if kind:
        raise RunError(f"{path} cannot be written: it is {kind}; expected a file or a new name")
    return end


def write_failure(path: Path, error: OSError) -> RunError:
    """Return what to raise where the disk refuses ``path``."""
    return RunError(f"{path} cannot be written: {error.strerror}")


def _draft(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def _drafts(path: Path) -> Iterator[Path]:
    """Yield the drafts of one file, whoever made them."""
    begin, end = f"{path.name}.", ".tmp"
    for name in os.listdir(path.parent):
        if name.startswith(begin) and name.endswith(end) and name[len(begin) : -len(end)].isdigit():
            yield path.with_name(name)


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
            with suppress(OSError):  # a child forked meanwhile would hold the finished file
                fcntl.flock(file.fileno(), fcntl.LOCK_UN)
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
