"""``dcqcn-gym emit``: what a run recommends, as commands for NICs and switches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["emit"]


def emit(
    directory: Annotated[Path, typer.Argument(help="Directory of a `tune` run.", metavar="DIR")],
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="mlxconfig, debugfs, sonic, or all.")
    ] = "all",
    changed_only: Annotated[
        bool,
        typer.Option("--changed-only", help="Only knobs that differ from before the run."),
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option("--rollback", help="The way back instead: to the setting before the run."),
    ] = False,
) -> None:
    """Print the recommended setting of DIR as shell commands; nothing runs again."""
    from dcqcn_gym.core.errors import RunError
    from dcqcn_gym.runs.commands import commands
    from dcqcn_gym.runs.log import RunDir, read_run

    log = RunDir(directory).log
    if not log.is_file():
        raise RunError(f"{directory} holds no run: expected the event log {log}")
    text = commands(read_run(log), form, changed_only=changed_only, rollback=rollback)
    typer.echo(text, nl=False)
