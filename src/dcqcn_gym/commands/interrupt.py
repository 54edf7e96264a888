"""What a command says when Ctrl-C ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["interruptible", "resume_words"]


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """End the command with status 130 on Ctrl-C, in one sentence: what is kept, how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted; {advice}", err=True)
        raise typer.Exit(130) from None


def resume_words(force: bool) -> str:
    """Return how to continue, for whoever gave --force or did not."""
    return "--resume instead of --force" if force else "--resume"
