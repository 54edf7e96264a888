"""``dcqcn-gym show``: a front page over a folder of runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer


def show(
    folder: Annotated[Path, typer.Argument(help="Folder that holds runs.", metavar="DIR")],
    every: Annotated[
        int, typer.Option("--every", min=0, metavar="S", help="Write it anew every S seconds.")
    ] = 0,
) -> None:
    """Write DIR/index.html: every run, comparison, sweep and simulation below DIR, with filters.

    Example: `dcqcn-gym show runs`
    """
    from dcqcn_gym.report.front import write_front
    from dcqcn_gym.runs.interrupt import interruptible

    with interruptible("the page is as it was last written"):
        while True:
            path, count = write_front(folder)
            typer.echo(f"{path}: {count} runs")
            if not every:
                return
            time.sleep(every)
