"""The far end: reads questions from file descriptor 0, asks the tuner, writes answers there.

It needs nothing but this socket: a sandbox may start it with no network and nothing writable. What
the tuner prints goes to the standard output and error that it was given. The tuner is supervised
here as it would be at home, so that its mistakes have the same words.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.tuner_host.protocol import (
    PIPE_CLOSED,
    VERSION,
    encode,
    error_of,
    parse_question,
)
from dcqcn_gym.benchmarks.leaderboard.tuner_host.values import (
    context_from,
    outcome_from,
    proposal_plain,
)
from dcqcn_gym.core.errors import (
    ConfigError,
    DcqcnGymError,
    TunerError,
    in_one_line,
    printable,
    quote,
)
from dcqcn_gym.runs.plugin_host import plugins_of
from dcqcn_gym.tuners import TUNERS, make_tuner
from dcqcn_gym.tuners.guard import GuardedTuner, place_of

_PR_SET_PDEATHSIG = 1


class Server:
    """One tuner and the questions about it; :meth:`answer` returns what goes back."""

    def __init__(self) -> None:
        self._name = ""
        self._arguments: dict[str, Any] = {}
        self._guard: GuardedTuner | None = None
        self._calls: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
            "open": self._open,
            "start": self._start,
            "ask": lambda _: proposal_plain(self._tuner.ask()),
            "tell": lambda question: self._tuner.tell(outcome_from(question["outcome"])),
            "recommend": lambda _: proposal_plain(self._tuner.recommend()),
            "tuning": lambda _: self._tuner.tuning,
            "state": lambda _: shown_state(self._tuner.state()),
            "decisions": lambda _: self._tuner.decisions(),
        }

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one question; whatever the tuner does becomes one."""
        answer: dict[str, Any] = {"id": question["id"]}
        try:
            answer["value"] = self._calls[question["call"]](question)
        except BaseException as error:  # plug-ins end in every way there is
            known = error if isinstance(error, DcqcnGymError) else self._failed(error)
            answer["error"] = error_of(self._placed(known), _traceback(error))
        answer["cpu_s"] = 0.0 if self._guard is None else self._guard.cpu_s
        return answer

    @property
    def _tuner(self) -> GuardedTuner:
        if self._guard is None:
            raise TunerError("the tuner was not opened; open comes first")
        return self._guard

    def _open(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Load and make the tuner; return its arguments as a log holds them."""
        if question["version"] != VERSION:
            raise ConfigError(
                f"the tuner's side speaks version {VERSION} of the protocol, this one "
                f"{quote(question['version'])}; install the same dcqcn-gym on both"
            )
        self._name, self._arguments = question["tuner"], question["arguments"]
        tuner = make_tuner(self._name, self._arguments)
        self._guard = GuardedTuner(self._name, tuner)
        return dict(tuner.settings.model_dump(mode="json", exclude_unset=True))

    def _start(self, question: Mapping[str, Any]) -> None:
        self._tuner.start(context_from(question["context"]), frozenset(question["offers"]))

    def _failed(self, error: BaseException) -> TunerError:
        return TunerError(f"tuner {self._name!r} failed: {in_one_line(error)}")

    def _placed(self, error: DcqcnGymError) -> DcqcnGymError:
        """Return an error with the failing line of a plug-in that is inside a built-in tuner.

        The supervision knows the line of the outer tuner's own file alone.
        """
        cause = error.__cause__
        if not isinstance(error, TunerError) or cause is None or self._name not in TUNERS.builtin:
            return error
        for name in plugins_of(self._name, self._arguments):
            with suppress(DcqcnGymError):  # its file may be gone by now
                if place := place_of(cause, TUNERS.load(name)):
                    return TunerError(f"{place}{error}")
        return error


def shown_state(value: object) -> Any:
    """Return figures for a display as JSON values; what is none of them is quoted."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else quote(key): shown_state(v)
                for key, v in value.items()}  # fmt: skip
    if isinstance(value, list | tuple):
        return [shown_state(item) for item in value]
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    return quote(value)


def _traceback(error: BaseException) -> str:
    try:
        return printable("".join(traceback.format_exception(error)))
    except Exception:  # its __str__ is somebody else's
        return ""


def _serve(connection: socket.socket) -> None:
    """Answer until the near end stops asking or is gone."""
    server, own = Server(), os.getpid()
    with connection, connection.makefile("rb") as questions:
        for line in questions:
            question = parse_question(line)
            if question["call"] == "stop":
                return
            data = encode(server.answer(question))
            if os.getpid() != own:  # the tuner forked in there, and its copy came back
                copy = TunerError("its process forked and the copy answered as well")
                connection.sendall(encode({"id": -1, "error": error_of(copy, "")}))
                os._exit(1)
            connection.sendall(data)


def main() -> None:
    """Serve file descriptor 0 and end with whoever is at its other end."""
    if sys.platform == "linux":  # a tuner that never returns must not outlive its run
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        _serve(connection)
    except (BrokenPipeError, ConnectionResetError):  # the near end is gone: nobody to tell
        return
    except OSError:  # the tuner has closed what was not its own
        os._exit(PIPE_CLOSED)
