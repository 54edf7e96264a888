"""``dcqcn-gym hw load ...``: traffic on a real fleet, through agents that permit it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dcqcn_gym.commands.hw_fleet import open_fleet
from dcqcn_gym.hw.extra import require_grpc

__all__ = ["app"]

app = typer.Typer(help="Start, show and stop load: perftest and nccl-tests.", no_args_is_help=True)

_Fleet = Annotated[Path, typer.Option("--fleet", help="The fleet's file (TOML).")]
_Device = Annotated[str, typer.Option("--device", help="The device whose agent runs it.")]


@app.command()
def start(
    program: Annotated[str, typer.Argument(help="As ib_write_bw; the agent's file permits some.")],
    fleet: _Fleet,
    device: _Device,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="As bytes=4096; repeatable.")
    ] = None,
) -> None:
    """Start a program on a device; without the option peer, perftest waits for one."""
    from dcqcn_gym.core.errors import ConfigError
    from dcqcn_gym.hw.load.jobs import command

    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    pairs = [text.partition("=") for text in option or []]
    bad = [name for name, equals, _ in pairs if not equals]
    if bad:
        raise ConfigError(f"--option {bad[0]}: expected NAME=VALUE")
    options = {name: value for name, _, value in pairs}
    words = command(program, options)
    state = _ask(fleet, device, "StartLoad", pb.LoadJob(program=program, options=options))
    typer.echo(f"{device} runs {' '.join(words)}" if state.running else state.output)


@app.command()
def show(fleet: _Fleet, device: _Device) -> None:
    """Show whether load runs on a device, and the figures that it printed at its end."""
    from rich.console import Console

    from dcqcn_gym.hw.load.jobs import results
    from dcqcn_gym.runs.table import Table, number

    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    state = _ask(fleet, device, "Load", pb.Nothing())
    if not state.program or state.running:
        typer.echo(f"{device}: {state.program} runs" if state.running else f"{device}: no load")
        return
    rows = [asdict(row) for row in results(state.program, state.output)]
    cells = [[number(value) for value in row.values()] for row in rows]
    columns = [name.replace("_", " ") for name in rows[0]]
    Console().print(Table(columns, cells, f"{device}: {state.program}", words=0).text())


@app.command()
def stop(fleet: _Fleet, device: _Device) -> None:
    """End the load on a device."""
    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    _ask(fleet, device, "StopLoad", pb.Nothing())
    typer.echo(f"{device}: no load")


def _ask(fleet: Path, device: str, method: str, request: Any) -> Any:
    from dcqcn_gym.core.errors import UnknownNameError

    with open_fleet(fleet) as controller:
        if device not in controller.descriptions:
            raise UnknownNameError("device", device, controller.descriptions)
        return controller.ask_all(method, request, [device])[device]
