"""The program and its words, as a test's runner takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import typer

from dcqcn_gym.cli import app


@contextmanager
def runs_in_threads() -> Iterator[None]:
    """Carry out runs in threads, which begin at once: a worker process takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("campaign", "session"):
            patch.setattr(f"dcqcn_gym.runs.{module}.worker_pool", ThreadPoolExecutor)
        yield


def program_of(words: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """Return the command and its words."""
    return app, list(words)
