"""What each scheme costs in a NIC and on the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.core.errors import UnknownNameError

__all__ = ["cost"]


def cost(
    scheme: Annotated[
        list[str] | None, typer.Option(help="Only this scheme; repeatable. Default: all.")
    ] = None,
    instructions: Annotated[
        bool,
        typer.Option("--instructions/--no-instructions", help="Count them too, with valgrind."),
    ] = True,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the table into this Markdown file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Bytes per flow, connection and port, control bytes per second, instructions per packet.

    In an incast of 64 flows without an end, 8 senders to one receiver at 100 Gb/s.
    """
    from dataclasses import asdict

    from rich.console import Console

    from dcqcn_gym.benchmarks.markdown_page import insert
    from dcqcn_gym.benchmarks.speed.cost import SCHEMES, cost_of, markdown

    for name in scheme or ():
        if name not in SCHEMES:
            raise UnknownNameError("scheme", name, SCHEMES)
    costs = []
    with Console(stderr=True).status("measuring") as status:
        for name in scheme or SCHEMES:
            status.update(name)
            costs.append(cost_of(name, instructions))
    if as_json:
        typer.echo(json.dumps([asdict(c) for c in costs], indent=2))
    elif write is not None:
        insert(write, "cost", markdown(costs))
        typer.echo(write)
    else:
        typer.echo(markdown(costs))
