"""Journals and logs are for their owner alone: they say who changed what, and when."""

from __future__ import annotations

import os


def private(path: str, flags: int) -> int:
    """Open a file for :func:`open`; a new one is the owner's alone, whatever the umask."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
