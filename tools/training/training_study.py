"""How fast do environments step behind SB3? ``python tools/training/training_study.py``."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.options import ScenarioOption

app = typer.Typer(add_completion=False)


@app.command()
def env(
    scenario: ScenarioOption = "mini-fb-hadoop",
    envs: Annotated[int, typer.Option(min=1, help="Environments side by side.")] = 2,
    steps: Annotated[int, typer.Option(min=1, help="Steps per measurement.")] = 1_000,
    vec: Annotated[
        str, typer.Option(help="Vector interfaces: threads, dummy, subproc.")
    ] = "threads,dummy,subproc",
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Measure each algorithm's training as well.")
    ] = True,
    train_steps: Annotated[int, typer.Option(min=1, help="Steps per training.")] = 2_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Environment steps per second and core through Stable-Baselines3 (extra: rl).

    Random actions in episodes of 50 intervals, resets included; CPU time is the process's.
    """
    from rich.console import Console
    from training_speed import env_speed, train_speed

    kinds = [kind.strip() for kind in vec.split(",") if kind.strip()]
    if not kinds:
        raise ConfigError("--vec names no interface; expected threads, dummy or subproc")
    with Console(stderr=True).status("random actions"):
        speeds = [env_speed(scenario, envs, steps, kind).as_dict() for kind in kinds]
    with Console(stderr=True).status("training"):
        found = train_speed(scenario, envs, train_steps) if train else []
    rates = [row.as_dict() for row in found]
    if as_json:
        typer.echo(json.dumps({"environment": speeds, "training": rates}, indent=2))
        return
    rows = [(row["kind"], "random actions", row) for row in speeds]
    _show(rows + [("threads", row["algo"], row) for row in rates])


def _show(rows: list[tuple[str, str, dict[str, Any]]]) -> None:
    from dcqcn_gym.runs.table import Table, print_tables

    columns = ("interface", "what", "steps", "steps/s", "steps/s and core", "outside the engine")
    lines = [
        (
            kind, what, f"{row['steps']}", f"{row['per_s']:.0f}",
            f"{row['per_cpu_s']:.0f}" if row.get("per_cpu_s") is not None else "",
            f"{row['outside_share']:.1%}" if row.get("outside_share") is not None else "",
        )
        for kind, what, row in rows
    ]  # fmt: skip
    print_tables([Table(columns, lines, words=2)])


if __name__ == "__main__":
    run_command(app, sys.argv[1:])
