"""``dcqcn-gym show``: the workbench over a folder of runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer


def show(
    folder: Annotated[Path, typer.Argument(help="Folder that holds runs.", metavar="DIR")],
    every: Annotated[
        int,
        typer.Option(
            "--every", min=0, metavar="S", help="Write it anew every S seconds; it loads itself."
        ),
    ] = 0,
) -> None:
    """Write DIR/index.html: everything below DIR, to sort, tick and compare; it works offline.

    Example: `dcqcn-gym show runs`
    """
    from dcqcn_gym.extras.workbench.page import write_workbench
    from dcqcn_gym.extras.workbench.runs import Reader
    from dcqcn_gym.runs.interrupt import interruptible
    from dcqcn_gym.runs.table import count_of

    reader = Reader()
    with interruptible("the page is as it was last written"):
        while True:
            path, count = write_workbench(folder, every, reader)
            typer.echo(f"{path}: {count_of(count, 'run')}")
            if not every:
                return
            time.sleep(every)
