"""The one error tree: every message says what was given, what was expected and what to do."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DEBUG_VARIABLE = "DCQCN_GYM_DEBUG"
"""Environment variable that ``--debug`` sets: tracebacks are shown, in worker processes too."""

QUOTED = 80
"""An error quotes at most so many characters of what was given."""


class DcqcnGymError(Exception):
    """Base of every error that this package raises on purpose; the CLI prints it and exits 2."""


class ConfigError(DcqcnGymError, ValueError):
    """A value from a person is not acceptable; the message names file, key or line."""


class UnknownNameError(ConfigError):
    """A name is not registered; the message offers near matches and the known names.

    ``aliases`` are other names of known ones: a near match there is offered as the known name.
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"unknown {kind} {quote(name)}{did_you_mean(name, known, aliases)}")


class StateError(DcqcnGymError, RuntimeError):
    """A call came out of order; the message names the call that is missing."""


class BackendError(DcqcnGymError, RuntimeError):
    """The backend of the environment failed (crash, time-out, lost device)."""


class DeviceError(DcqcnGymError, RuntimeError):
    """A device, its driver or its agent refused or failed; the message names which one."""


class TunerError(DcqcnGymError, RuntimeError):
    """A tuner raised, or proposed something that is not a setting."""


class MonitorError(DcqcnGymError, RuntimeError):
    """A monitor in Python raised, or said what is not a distribution."""


class RunError(DcqcnGymError):
    """A run directory or its event log cannot be used as asked."""


class MissingExtraError(DcqcnGymError, ImportError):
    """An optional package is needed; the message holds the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        cause = sys.exc_info()[1]
        if isinstance(cause, ImportError) and not isinstance(cause, ModuleNotFoundError):
            words = f"which are installed and cannot be loaded ({in_one_line(cause)})"
        else:
            words = f"install them with: {install_command(extra)}"
        super().__init__(f"{what} needs optional packages; {words}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra from where this package came."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        said = json.loads(distribution("dcqcn-gym").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        said = {}
    url = str(said.get("url", ""))
    if said.get("dir_info", {}).get("editable"):
        return f"pip install -e '{unquote(urlsplit(url).path)}[{extra}]'"
    return f"pip install 'dcqcn-gym[{extra}]{' @ ' if url else ''}{url}'"


def did_you_mean(name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """Return ``"; did you mean ...? known: ..."`` for the end of a message about ``name``."""
    names = sorted(known)
    if not names:
        return "; there is none"
    meant = {**(aliases or {}), **{n: n for n in names}}
    found = difflib.get_close_matches(name[:QUOTED], meant, n=3, cutoff=0.5)
    near = dict.fromkeys(meant[match] for match in found)
    hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    return f"{hint} (known: {', '.join(names)})"


def quote(value: Any) -> str:
    """Return ``value`` as Python writes it, in at most 80 characters and one printable line."""
    if isinstance(value, str | bytes) and len(value) > QUOTED:
        value = value[:QUOTED]  # the rest would be cut anyway, and may be gigabytes
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length()} bits"  # Python refuses to write the longest
    try:
        text = printable(repr(value))
    except Exception:  # a repr of somebody else, or one nested too deep
        text = f"<{type(value).__name__}>"
    return text if len(text) < QUOTED else text[: QUOTED - 3] + "..."


HARMLESS = "\n\u00a0\u202f"
"""What Python calls unprintable although it only moves on: the line feed and two spaces."""


def printable(text: str) -> str:
    """Return ``text`` with everything that could steer a terminal written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in HARMLESS else repr(c)[1:-1] for c in text)


def in_one_line(error: BaseException) -> str:
    """Return ``Type: message`` of somebody else's error in one line of at most 400 characters."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # its __str__ is somebody else's as well
        text = ""
    if isinstance(error, SyntaxError) and error.lineno:
        text = f"{error.msg} (line {error.lineno})"
    text = printable(text if len(text) <= 400 else text[:397] + "...")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def line_in(error: BaseException, file: str) -> int | None:
    """Return the last line of ``file`` that a traceback went through; None if it did not."""
    found, step = None, error.__traceback__
    while step is not None:
        if _same_file(step.tb_frame.f_code.co_filename, file):
            found = step.tb_lineno
        step = step.tb_next
    return found


def _same_file(one: str, other: str) -> bool:
    return one == other or Path(one).absolute() == Path(other).absolute()
