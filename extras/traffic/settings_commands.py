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
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", "-s", help="Write this scenario with the setting as its own."),
    ] = None,
    queue_bytes: Annotated[
        float | None,
        typer.Option("--queue-bytes", min=1, help="A queue's buffer, of which Junos has shares."),
    ] = None,
) -> None:
    """Print the setting that dumps hold as [initial], [switch] and [[classes]] of a scenario.

    The curve of the lossless queues is [initial]; a priority with another one is a class.

    Example: `dcqcn-gym settings import config_db.json mlxconfig.txt`
    """
    from dcqcn_gym.core.toml_text import toml_text
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.extras.traffic.device_state import read_device_state
    from dcqcn_gym.extras.traffic.scenario import buffer_of, changed_text
    from dcqcn_gym.runs.atomic_file import write_atomically

    state = read_device_state(files, queue_bytes)
    found = state.tables()
    if scenario is None:
        text = toml_text(found)
    else:
        base = load_scenario(scenario)
        if state.pool_bytes:
            whole = buffer_of(base, found, state.pool_bytes)
            found.setdefault("switch", {})["buffer_bytes"] = whole
        text = changed_text(base, found)
    if out is not None:
        write_atomically(out, text.encode())
    typer.echo(toml_text(found), nl=False)
    for line in state.tally.lines():
        typer.echo(f"  {line}", err=True)
    if out is not None:
        then = "put it into a scenario, in place of its own"
        typer.echo(f"{out}: {then if scenario is None else 'a scenario'}", err=True)


@app.command()
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="config_db.json, `rdma statistic`, `ethtool -S`, `mlnx_qos`, folders of sysfs."
        ),
    ],
) -> None:
    """Say what is wrong with a setting in service, each with the line that shows it.

    Exit status 1 where something is. What the files have no figures for is named as not checked.

    Example: `dcqcn-gym settings check config_db.json rdma.txt`
    """
    from dcqcn_gym.extras.traffic.diagnosis import CHECKS, diagnose
    from dcqcn_gym.extras.traffic.dumps import read_dumps

    dumps = read_dumps(files)
    found, undone = diagnose(dumps)
    for number, one in enumerate(found, start=1):
        typer.echo(f"{number}. {one.what}")
        for line in one.shown_by:
            typer.echo(f"   shown by: {line}")
        typer.echo(f"   do: {one.do}")
    done = len(CHECKS) - len(undone)
    typer.echo(f"{len(found) or 'nothing'} found by {done} of {len(CHECKS)} checks")
    if undone:
        typer.echo(f"not checked, no figures: {', '.join(undone)}")
    for line in dumps.tally.lines():
        typer.echo(f"  {line}", err=True)
    if found:
        raise typer.Exit(1)
