"""The program and its words, as a test's runner takes them."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from dcqcn_gym.cli import app


def program_of(words: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """Return the command and its words."""
    return app, list(words)
