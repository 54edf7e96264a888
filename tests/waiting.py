"""Waiting for another process or thread: by what it does, never for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

LONG_S = 120.0
"""After that long a test gives up; on no machine that works does it decide an outcome."""


def wait_for(happened: Callable[[], object], what: str) -> None:
    """Return once ``happened`` is true; AssertionError with ``what`` if it never is."""
    until = time.monotonic() + LONG_S
    while not happened():
        assert time.monotonic() < until, f"never: {what}"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has asked about yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
