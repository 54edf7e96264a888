"""What a command says when Ctrl-C ends it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer

_ENDS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """End the command with status 130 on Ctrl-C, in one sentence: what is kept, how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted; {advice}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Take no second Ctrl-C or kill while what the first one ends is put away."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def same_command(force: bool) -> str:
    """Return what continues a command that was given with --force, or without."""
    return "the same command without --force" if force else "the same command"
