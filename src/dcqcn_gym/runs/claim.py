"""One command at a time in an output folder, and the files of one command only.

A lock of the kernel on a small file in the folder, which also says who holds it. It goes with its
process, however that ends; the file itself goes when the command does.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dcqcn_gym.core.errors import RunError, printable

LOCK_FILE = ".dcqcn-gym.lock"

STUDY_FILE = "study.json"
OWNERS = {
    "run.jsonl": "tune",
    "train.json": "train",
    "summary.json": "simulate",
}
"""The file by which a folder shows which command it belongs to; a study's says it itself."""


def check_place(out: Path) -> None:
    """Raise RunError unless ``out`` is, or can become, a directory that may be written."""
    for part in (out, *out.parents):
        if part.exists():
            if not part.is_dir():
                raise RunError(f"--out {out}: {part} is a file; give a directory")
            if not os.access(part, os.W_OK | os.X_OK):
                raise RunError(f"--out {out}: {part} is not writable")
            return


@contextmanager
def claim(out: Path, command: str, *, force: bool = False) -> Iterator[None]:
    """Hold ``out`` for ``command`` while the context lasts; make the folder if need be.

    Raises RunError if another process holds it, naming that, and if the folder has files of
    another command, unless ``force`` asks for both in one. A folder that was made here and stays
    empty is removed again.
    """
    check_place(out)
    made = [part for part in (out, *out.parents) if not part.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        handle = _locked(out)
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
    try:
        if not force:
            _check_owner(out, command)
        yield
    finally:
        # unlinked while it is still locked: whoever opened it meanwhile sees that it is another one
        (out / LOCK_FILE).unlink(missing_ok=True)
        os.close(handle)
        for folder in made:
            with suppress(OSError):  # something is in it
                folder.rmdir()


def _locked(out: Path) -> int:
    """Return the locked file, which says who we are; RunError if somebody else has it."""
    path = out / LOCK_FILE
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise RunError(f"--out {out} is in use{_holder(path)}") from None
        except OSError:  # a file system without locks cannot protect us
            return handle
        if _same(handle, path):
            break
        os.close(handle)  # its holder has just ended and removed it
    since = time.strftime("%Y-%m-%d %H:%M:%S %z")
    words = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    text = json.dumps({"pid": os.getpid(), "command": words, "since": since})
    os.ftruncate(handle, 0)
    os.write(handle, text.encode() + b"\n")
    return handle


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    advice = "wait until it ends, or give another --out"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        pid, since, command = int(found["pid"]), str(found["since"]), str(found["command"])
    except (OSError, ValueError, KeyError, TypeError):  # it has not written it yet, or has ended
        return f" by another process; {advice}"
    words = printable(command if len(command) <= 200 else command[:197] + "...")
    return f" by process {pid} since {printable(since)} ({words}); {advice}"


def _check_owner(out: Path, command: str) -> None:
    for name, owner in {STUDY_FILE: _kind_of_study(out), **OWNERS}.items():
        if owner and owner != command and (out / name).exists():
            raise RunError(
                f"--out {out} already holds what `{owner}` made ({name}); give `{command}` "
                "another --out"
            )


def _kind_of_study(out: Path) -> str:
    """Return the command that a study belongs to; empty for none, or a file that is damaged."""
    try:
        return str(json.loads((out / STUDY_FILE).read_bytes())["kind"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
