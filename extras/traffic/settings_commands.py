"""``dcqcn-gym settings``: the setting in service, from what devices say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Your setting in service: mlxconfig, sysfs, SONiC's config_db.json.")


@app.callback()
def _group() -> None:
    """Your setting in service: mlxconfig, sysfs, SONiC's config_db.json."""


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(help="`mlxconfig query`, `show ecn`, config_db.json, or folders of sysfs."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="A TOML file for it; default: print only.")
    ] = None,
) -> None:
    """Print the setting that dumps of devices hold as [initial] of a scenario.

    Example: `dcqcn-gym settings import config_db.json mlxconfig.txt`
    """
    from dcqcn_gym.core.toml_text import toml_text
    from dcqcn_gym.extras.traffic.device_state import read_device_state
    from dcqcn_gym.runs.whole_file import write_atomically

    state = read_device_state(files)
    text = toml_text({"initial": state.initial()})
    if out is not None:
        write_atomically(out, text.encode())
    typer.echo(text, nl=False)
    for line in state.tally.lines():
        typer.echo(f"  {line}", err=True)
    if out is not None:
        typer.echo(f"{out}: put it into a scenario, or in place of its [initial]", err=True)
