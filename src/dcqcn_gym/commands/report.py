"""`dcqcn-gym report`: rebuild the page of a run from its logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    directory: Annotated[Path, typer.Argument(help="Directory of a `tune` run.", metavar="DIR")],
) -> None:
    """Rebuild DIR/report.html from the event log, however far the run came."""
    from dcqcn_gym.report import build_report

    typer.echo(build_report(directory))
