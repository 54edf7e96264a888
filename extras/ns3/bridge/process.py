"""Start, watch and end one simulation process, so that none is ever left running."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

ALIVE_FD_VARIABLE = "DCQCN_GYM_ALIVE_FD"
"""Environment variable of the child: a pipe whose end-of-file means that the parent is gone."""
PARENT_VARIABLE = "DCQCN_GYM_PARENT"
"""Environment variable of the child: the process id of its parent."""
FOLDER_VARIABLE = "DCQCN_GYM_FOLDER"
"""Environment variable of the child: its private folder, to remove if the parent is gone."""

_TAIL_BYTES, _TAIL_LINES = 16384, 50
_FILES = ("stdout.log", "stderr.log", "scenario.json", "link.sock")
"""What lies in the folder of a process that could not be started."""


class SimulationProcess:
    """A child process in its own session and private folder (mode 0700), logs in files.

    ``folder`` holds the socket, the scenario, ``stdout.log`` and ``stderr.log``; it goes away
    with :meth:`stop`, which is safe to call twice, at interpreter exit, and from a fork (where
    it does nothing, for the process belongs to the one who started it).
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dcqcn-gym-"))
        self.command: tuple[str, ...] = ()
        self._popen: subprocess.Popen[bytes] | None = None
        self._finalizer = weakref.finalize(self, _remove, os.getpid(), self.folder, None, None)

    def start(self, command: Sequence[str], environment: dict[str, str]) -> None:
        """Launch ``command`` with the given extra environment; no shell, no change of folder."""
        self.command = tuple(command)
        alive_read, alive_write = os.pipe()
        try:
            with (
                open(self.folder / "stdout.log", "wb") as out,
                open(self.folder / "stderr.log", "wb") as err,
            ):
                self._popen = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    pass_fds=(alive_read,),
                    env={
                        **os.environ,
                        **environment,
                        ALIVE_FD_VARIABLE: str(alive_read),
                        PARENT_VARIABLE: str(os.getpid()),
                        FOLDER_VARIABLE: str(self.folder),
                    },
                )
        except BaseException:
            os.close(alive_write)
            raise
        finally:
            os.close(alive_read)
        self._finalizer.detach()
        self._finalizer = weakref.finalize(
            self, _remove, os.getpid(), self.folder, self._popen, alive_write
        )

    @property
    def pid(self) -> int:
        """The process id, 0 before the start."""
        return self._popen.pid if self._popen else 0

    def status(self) -> int | None:
        """Return the exit status (negative: a signal), or None while the process lives."""
        return self._popen.poll() if self._popen else None

    def wait(self, seconds: float) -> int | None:
        """Wait for the end at most so long; return the status or None."""
        assert self._popen is not None
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """End the process if it lives (SIGTERM, then SIGKILL to its group); remove the folder."""
        self._finalizer()

    def last_words(self) -> str:
        """Return the end of stderr, at most 50 lines."""
        try:
            with open(self.folder / "stderr.log", "rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _TAIL_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-_TAIL_LINES:])

    def activity(self) -> str:
        """Say whether the process lives and computes; looks for a fifth of a second."""
        before = _cpu_seconds(self.pid)
        time.sleep(0.2)
        after = _cpu_seconds(self.pid)
        if self.status() is not None:
            return "the simulation process has ended"
        if before is None or after is None:
            return "the simulation process is alive"
        doing = "is computing" if after > before else "is not using the CPU"
        return f"the simulation process {self.pid} is alive and {doing}"


def describe_status(status: int) -> str:
    """Return ``exit status 3`` or ``signal 9 (SIGKILL)``."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


def _cpu_seconds(pid: int) -> float | None:
    """Return user + system time of a process so far, None where /proc does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def _remove(
    owner: int, folder: Path, popen: subprocess.Popen[bytes] | None, alive_write: int | None
) -> None:
    """End the process and remove its folder, if we are the process that made them."""
    if os.getpid() != owner:
        return
    if alive_write is not None:
        with contextlib.suppress(OSError):
            os.close(alive_write)
    for end in (signal.SIGTERM, signal.SIGKILL):
        if popen is None or popen.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, end)
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(2.0)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # rmtree opens the folder; at the limit of open files there is only this
        for name in _FILES:
            (folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours in this Python."""
    return [sys.executable, "-m", module, *arguments]
