"""``dcqcn-gym ns3 ...``: build, check and serve the ns-3 backend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

app = typer.Typer(
    name="ns3",
    help="The ns-3 backend: build it, check what it needs.",
    no_args_is_help=True,
)

_PathOption = Annotated[
    Path | None,
    typer.Option(
        "--ns3", metavar="DIR", help="an ns-3 installation or build folder; default: the wheel"
    ),
]


@app.command()
def build(
    ns3: _PathOption = None,
    force: Annotated[bool, typer.Option("--force", help="build again from scratch")] = False,
) -> None:
    """Compile the ns-3 backend; downloads the ns3 wheel (69 MB) if no ns-3 is named."""
    from dcqcn_gym.envs.backends.ns3_bridge.build import ensure_built

    console = Console(stderr=True)
    with console.status("building the ns-3 backend") as status:

        def say(line: str) -> None:
            if line.startswith("  "):
                status.update(f"building the ns-3 backend{escape(line)}")
            else:
                console.print(escape(line))

        done = ensure_built(ns3, say=say, force=force)
    typer.echo(f"ready: ns-3 {done.ns3.version}, module {done.module}")
    typer.echo(f"program: {done.program}")


@app.command()
def check(ns3: _PathOption = None) -> None:
    """Say what the ns-3 backend needs, what is there and what is missing; changes nothing."""
    from dcqcn_gym.envs.backends.ns3_bridge.build import find_build, tools
    from dcqcn_gym.envs.backends.ns3_bridge.install import cache_dir, find_ns3
    from dcqcn_gym.errors import DcqcnGymError

    rows: list[tuple[str, str, bool]] = [
        (name, found or "missing", found is not None) for name, found in tools().items()
    ]
    try:
        install = find_ns3(ns3, say=lambda _: None, fetch=False)
        rows.append(("ns-3", f"{install.version} ({install.source}) {install.root}", True))
        built = find_build(install)
        rows.append(
            ("build", str(built.folder) if built.complete else "not built yet", built.complete)
        )
    except DcqcnGymError as error:
        rows.append(("ns-3", str(error), False))
    table = Table("part", "found", "", title=f"ns-3 backend (cache: {cache_dir()})")
    for name, found, ok in rows:
        table.add_row(name, escape(found), "ok" if ok else "missing")
    Console().print(table)
    if not all(ok for _, _, ok in rows):
        typer.echo("next: pip install 'dcqcn-gym[ns3]', then dcqcn-gym ns3 build")
        raise typer.Exit(1)
