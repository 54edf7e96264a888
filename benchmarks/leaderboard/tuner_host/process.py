"""The near end: starts the far one, asks with a deadline, and gives every ending a name."""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from dcqcn_gym.benchmarks.leaderboard.tuner_host.protocol import (
    MOST_ANSWER_BYTES,
    PIPE_CLOSED,
    BadAnswerError,
    encode,
    parse_answer,
    shown,
)
from dcqcn_gym.core.errors import TunerError
from dcqcn_gym.core.sums import count

_GRACE_S = 1.0
"""How long a tuner's process may take to end by itself."""
_CHUNK = 2**16
_LOOK_S = 0.5
"""How often a tuner that thinks is looked at: within this time it can take no machine."""
MOST_CPU_S = 600.0
"""CPU seconds of a tuner with a limit, over its run, with everything that it starts."""
MOST_TASKS = 256
"""Its processes and threads; libraries start one a CPU."""
MOST_RESIDENT = 2**33
"""Bytes of memory of all of them; a page that two of them share counts twice."""


class PluginTraceback(Exception):  # noqa: N818 - the cause of an error, shown by --debug
    """The traceback of an error at the far end."""


def python_command(path: Sequence[str] | None = None, before: str = "") -> list[str]:
    """Return the command of a far end in this very environment.

    Modules are looked for in ``path`` (default: where this program looks for them); ``before`` is
    code that runs first.
    """
    if path is None:
        path = [entry for entry in sys.path if entry]  # without the current directory's shadow
    code = f"{before}import sys; sys.path[:] = {list(path)!r}\n"
    code += "from dcqcn_gym.benchmarks.leaderboard.tuner_host.server import main; main()"
    return [sys.executable, "-c", code]


class Usage(NamedTuple):
    """What a process and its living descendants take, by the kernel; CPU of ended ones, too."""

    cpu_s: float
    tasks: int
    resident: int


def _usage(pid: int) -> Usage:
    children: list[bytes] = []
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            values = file.read().rpartition(b")")[2].split()
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended
        return Usage(0.0, 0, 0)
    for thread in threads:
        # one that ends in between hides nothing of the others
        with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            children += file.read().split()
    below = [_usage(int(child)) for child in children]
    return Usage(
        math.fsum(map(int, values[11:15])) / os.sysconf("SC_CLK_TCK")
        + math.fsum(one.cpu_s for one in below),
        len(threads) + count(one.tasks for one in below),
        int(values[21]) * os.sysconf("SC_PAGE_SIZE") + count(one.resident for one in below),
    )


class HostProcess:
    """One process that holds one tuner, called ``name``.

    ``command`` starts it; its standard input is one end of a socket pair and its only way to speak
    with us. It leads a session of its own: Ctrl-C goes to this program alone, which ends it. Every
    call raises TunerError if it takes longer than ``deadline_s`` seconds, all calls together longer
    than ``run_s``, if the process ends or says what is no answer; the process is ended then. With
    ``run_s`` its CPU time, threads and memory are limited, too. A ``bare`` one gets no environment,
    begins in ``/``, and what it prints goes nowhere.
    """

    def __init__(
        self,
        name: str,
        deadline_s: float,
        command: Sequence[str] | None = None,
        *,
        bare: bool = False,
        run_s: float = math.inf,
    ) -> None:
        self.name = name
        self.cpu_s = 0.0
        self._run_s = self._left_s = run_s
        self._deadline_s = deadline_s
        self._asked = 0
        self._unread = b""
        self._socket, theirs = socket.socketpair()
        start = python_command() if command is None else command
        prints = subprocess.DEVNULL if bare else None
        try:
            self._process = subprocess.Popen(
                start, stdin=theirs.fileno(), stdout=prints, stderr=prints, start_new_session=True,
                env={} if bare else None, cwd="/" if bare else None,
            )  # fmt: skip
        except OSError as error:
            self._socket.close()
            raise TunerError(
                f"tuner {name!r}: its process cannot be started: {error.strerror}"
            ) from error
        finally:
            theirs.close()

    def call(self, call: str, **fields: Any) -> Any:
        """Return the value of one answer; raise the error that it holds instead."""
        self._asked += 1
        self._look()
        begun = time.monotonic()
        given_s = min(self._deadline_s, self._left_s)
        self._socket.settimeout(max(given_s, 1e-3))
        self._until = begun + given_s
        try:
            self._socket.sendall(encode({"id": self._asked, "call": call, **fields}))
            line = self._line(call)
        except TimeoutError:
            if given_s < self._deadline_s:
                self._end(f"took more than {self._run_s:g} s over all its calls and was stopped")
            self._end(
                f"gave no answer to {call}() within {self._deadline_s:g} s and was stopped; "
                "--tuner-deadline gives it longer"
            )
        except (BrokenPipeError, ConnectionResetError):
            self._died(call)
        except BaseException:  # Ctrl-C between question and answer: they would no longer match
            self.close(grace_s=0.0)
            raise
        self._left_s -= time.monotonic() - begun
        return self._value(call, line)

    def used_cpu_s(self) -> float:
        """Return the CPU seconds of the process and whatever it has started, by the kernel.

        The far end may say less than it took. 0 where there is no ``/proc``.
        """
        return _usage(self._process.pid).cpu_s

    def close(self, grace_s: float = _GRACE_S) -> None:
        """End the process and whatever it has started; allowed more than once."""
        if self._process.returncode is not None:
            return
        with suppress(OSError):
            self._socket.settimeout(grace_s)
            self._socket.sendall(encode({"id": 0, "call": "stop"}))
            until = time.monotonic() + grace_s
            while grace_s and self._socket.recv(_CHUNK) and time.monotonic() < until:
                pass  # a copy of it still speaks; nobody listens any more
        with suppress(ProcessLookupError):  # it has not been waited for, so its number is its own
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._socket.close()

    def _line(self, call: str) -> bytes:
        """Return the next line, without its end."""
        while b"\n" not in self._unread:
            if len(self._unread) > MOST_ANSWER_BYTES:
                self._end(f"answered {call}() with more than {MOST_ANSWER_BYTES} bytes")
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(min(left, _LOOK_S))
            try:
                data = self._socket.recv(_CHUNK)
            except TimeoutError:
                self._look()
                continue
            if not data:
                self._died(call)
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _look(self) -> None:
        """End the process if it takes more than a run may."""
        if math.isinf(self._run_s):
            return
        taken = _usage(self._process.pid)
        if taken.cpu_s > MOST_CPU_S:
            self._end(f"took more than {MOST_CPU_S:g} CPU seconds over its run and was stopped")
        if taken.tasks > MOST_TASKS:
            self._end(f"had {taken.tasks} processes and threads, more than {MOST_TASKS}")
        if taken.resident > MOST_RESIDENT:
            self._end(f"took {taken.resident} bytes of memory, more than {MOST_RESIDENT}")

    def _value(self, call: str, line: bytes) -> Any:
        try:
            answer = parse_answer(line)
        except BadAnswerError as error:
            self._end(f"sent what is no answer to {call}() ({error}): {shown(line)}")
        if answer.id != self._asked:
            self._end(
                f"answered something else than {call}(), or answered twice: a tuner that forks has "
                "to end its copies"
            )
        self.cpu_s = answer.cpu_s
        if answer.error is not None:
            raise answer.error from (PluginTraceback(answer.trace) if answer.trace else None)
        return answer.value

    def _died(self, call: str) -> NoReturn:
        """Say how it ended; what it has started ends with it."""
        until, ended = time.monotonic() + _GRACE_S, None
        while ended is None and time.monotonic() < until:
            ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            time.sleep(0.0 if ended else 0.01)
        self.close(grace_s=0.0)
        if ended is None or self._process.returncode == PIPE_CLOSED:
            raise TunerError(f"tuner {self.name!r} closed its pipe in {call}()")
        code = self._process.returncode
        ending = f"with exit status {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        raise TunerError(f"tuner {self.name!r}: its process ended in {call}() {ending}")

    def _end(self, what: str) -> NoReturn:
        self.close(grace_s=0.0)
        raise TunerError(f"tuner {self.name!r} {what}")
