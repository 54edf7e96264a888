"""What goes over the pipe: one JSON object a line, a question each way answered by one answer.

A question is ``{"id": N, "call": NAME, ...}``, its answer ``{"id": N, "cpu_s": S}`` with either
``"value"`` or ``"error": {"kind", "message", "trace"}``. Numbers are JSON's: a float has as many
digits as give it back to the bit; NaN and infinity do not exist. Nothing is ever unpickled. The
near end trusts nothing that it reads: :func:`parse_answer` checks every field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from dcqcn_gym.core.errors import (
    ConfigError,
    DcqcnGymError,
    MissingExtraError,
    StateError,
    TunerError,
    printable,
    quote,
)

VERSION = 2
"""Rises when a field changes; the far end refuses another one."""

MOST_ANSWER_BYTES = 2**24
"""A longer answer ends the tuner: a setting for every port of 10,000 switches is shorter."""

PIPE_CLOSED = 71
"""Exit status of a far end that has no pipe any more."""

_MOST_MESSAGE = 2_000
_MOST_TRACE = 100_000
_KINDS: Mapping[str, type[DcqcnGymError]] = {
    kind.__name__: kind for kind in (ConfigError, StateError, TunerError)
}


class BadAnswerError(ValueError):
    """What came over the pipe is no answer to the question."""


class _MissingExtraError(MissingExtraError):
    """A missing package, as the far end has worded it."""

    def __init__(self, message: str) -> None:
        ImportError.__init__(self, message)


@dataclass(frozen=True)
class Reply:
    """One answer: a value, or an error with the far end's traceback. ``cpu_s`` is the tuner's."""

    id: int
    cpu_s: float
    value: Any = None
    error: DcqcnGymError | None = None
    trace: str = ""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return one line; ValueError for NaN and infinity, TypeError for what JSON cannot hold."""
    text = json.dumps(message, separators=(",", ":"), allow_nan=False, default=_plain)
    return text.encode("ascii") + b"\n"


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no JSON value")


def parse_question(line: bytes) -> dict[str, Any]:
    """Return a question; the far end trusts whoever started it."""
    return dict(json.loads(line))


def parse_answer(line: bytes) -> Reply:
    """Return an answer; raise :class:`BadAnswerError` for anything that is none."""
    try:
        found = json.loads(line, parse_constant=_refuse)
        if not isinstance(found, dict):
            raise BadAnswerError("no object")
        number, cpu_s = found.get("id"), found.get("cpu_s", 0.0)
        if type(number) is not int:
            raise BadAnswerError("no id")
        if not isinstance(cpu_s, int | float) or not 0 <= cpu_s < math.inf:
            raise BadAnswerError("no CPU seconds")
        if "error" in found:
            error, trace = _error(found["error"])
            return Reply(number, float(cpu_s), error=error, trace=trace)
        return Reply(number, float(cpu_s), found["value"])
    except BadAnswerError:
        raise
    except (ValueError, KeyError, RecursionError, OverflowError):
        raise BadAnswerError("no answer") from None


def _refuse(text: str) -> NoReturn:
    raise BadAnswerError(f"{text} is no number of JSON")


def _error(found: object) -> tuple[DcqcnGymError, str]:
    if not isinstance(found, dict) or not isinstance(found.get("message"), str):
        raise BadAnswerError("an error without a message")
    message = printable(" ".join(found["message"][:_MOST_MESSAGE].split()))
    trace = printable(str(found.get("trace", ""))[:_MOST_TRACE])
    if found.get("kind") == MissingExtraError.__name__:
        return _MissingExtraError(message), trace
    return _KINDS.get(str(found.get("kind")), TunerError)(message), trace


def error_of(error: DcqcnGymError, trace: str) -> dict[str, str]:
    """Return an error as an answer holds it: the nearest class that the near end knows."""
    names = [kind.__name__ for kind in type(error).__mro__]
    known = (*_KINDS, MissingExtraError.__name__)
    kind = next((name for name in names if name in known), TunerError.__name__)
    return {"kind": kind, "message": str(error), "trace": trace}


def shown(line: bytes) -> str:
    """Return the beginning of what came, for a message."""
    return quote(line[:200].decode("utf-8", "replace"))
