"""The program and its words, as a test's runner takes them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

import pytest
import typer

from dcqcn_gym.cli import app, main
from dcqcn_gym.core.errors import DEBUG_VARIABLE


@contextmanager
def runs_in_threads() -> Iterator[None]:
    """Carry out runs in threads, which begin at once: a worker process takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("campaign", "session"):
            patch.setattr(f"dcqcn_gym.runs.{module}.worker_pool", ThreadPoolExecutor)
        yield


def called(*words: object) -> CompletedProcess[str]:
    """Return how a command line ends and what it prints, called in this process with threads."""
    given, out, err = [str(word) for word in words], io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.argv", ["dcqcn-gym", *given])
        patch.setenv(DEBUG_VARIABLE, "")  # so that what --debug sets is gone afterwards
        with runs_in_threads(), pytest.raises(SystemExit) as end:
            main()
    return CompletedProcess(given, int(end.value.code or 0), out.getvalue(), err.getvalue())


def program_of(words: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """Return the command and its words."""
    return app, list(words)
