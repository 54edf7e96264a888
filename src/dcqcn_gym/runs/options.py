"""Options that mean the same in every command: one name, one text, one default."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["SCENARIO", "SEEDS", "BackendOption", "JobsOption", "QuietOption", "ScenarioOption"]

SCENARIO = "mini-fb-hadoop"
"""The scenario of a command that was given none."""
SEEDS = 5
"""Traffic seeds, from 1 on, of a command that was given no number of them."""

ScenarioOption = Annotated[
    str,
    typer.Option("--scenario", "-s", help="A name from `dcqcn-gym scenarios`, or a TOML file."),
]
BackendOption = Annotated[str, typer.Option(help="native, or fake for a quick look.")]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Worker processes; default: one per CPU.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
