"""Files that a process keeps for the way back, where others have taken all that it may open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class ReservedFiles:
    """A few open files that nobody reads: closed for whoever must open some, and taken again."""

    def __init__(self, count: int = 8) -> None:
        self._count = count
        self._held: list[int] = []
        self._take()

    def _take(self) -> None:
        with suppress(OSError):  # none left: at the next way back
            while len(self._held) < self._count:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    @contextmanager
    def given(self) -> Iterator[None]:
        """Make room for these files until the block ends."""
        while self._held:
            with suppress(IndexError):  # another thread's
                os.close(self._held.pop())
        try:
            yield
        finally:
            self._take()


RESERVED = ReservedFiles()
"""Those of this process."""
