"""Which program a test's words are for: the command, or ``python -m dcqcn_gym.benchmarks``."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from dcqcn_gym.benchmarks.__main__ import app as benchmarks
from dcqcn_gym.cli import app

__all__ = ["program_of"]

PROGRAMS = {"benchmarks": benchmarks}


def program_of(words: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """Return the program and its words; the first one may name a program of maintainers."""
    if words and words[0] in PROGRAMS:
        return PROGRAMS[words[0]], list(words[1:])
    return app, list(words)
