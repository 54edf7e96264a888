"""Read files of others safely: ordinary files of a bounded size, and strict JSON."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, NoReturn

from dcqcn_gym.core.errors import ConfigError, quote

MOST_BYTES = 2**30
"""Larger files are refused: 1 GiB, a flow list of about 40 million lines."""

_GZIP = b"\x1f\x8b"

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_file(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of an ordinary file; raise :class:`ConfigError` that begins with its path.

    A directory, a device (which may never end) or a pipe (which may never begin) is refused.
    """
    try:
        status = path.stat()
        problem = _problem(status.st_mode, status.st_size, most)
        data = b"" if problem else path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError:  # a zero byte in the path
        raise ConfigError(f"{quote(str(path))} cannot be read: it is not a path") from None
    if problem:
        raise ConfigError(f"{path}: cannot be read: it {problem}")
    return data


def _problem(mode: int, size: int, most: int) -> str:
    if kind := other_kind(mode):
        return f"is {kind}; expected a file"
    return f"has {size} bytes; expected at most {most}" if size > most else ""


def other_kind(mode: int) -> str:
    """Return what a ``st_mode`` is if it is no ordinary file, such as "a pipe"; else nothing."""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return an ordinary file's text, UTF-8 with or without a byte order mark; raise ConfigError.

    Line ends become ``\\n``, as Python reads any text file.
    """
    data = read_file(path, most)
    if data.startswith(_GZIP):
        raise ConfigError(f"{path}: is compressed (gzip); expected text, so unpack it first")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read as a text file ({error})") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ValueError also for NaN and for endless nesting."""
    try:
        return json.loads(text, parse_constant=_not_json, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        if "set_int_max_str_digits" in str(error):  # advice for programmers
            raise ValueError("a number has thousands of digits") from None
        raise


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number is beyond the largest that there is")
    return value
