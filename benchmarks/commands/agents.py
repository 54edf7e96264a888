"""Speed of several agents."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from dcqcn_gym.runs.options import ScenarioOption

__all__ = ["agents"]


def agents(
    scenario: ScenarioOption = "mini-fb-hadoop",
    kinds: Annotated[
        str, typer.Option("--agents", help="Kinds of agents: switch, port, nic.")
    ] = "switch,port,nic",
    steps: Annotated[int, typer.Option(min=1, help="Steps per measurement.")] = 200,
    decision_us: Annotated[
        float | None, typer.Option(help="Microseconds per step; default: the monitor interval.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Steps per second and core with random actions of all agents, and what the engine takes."""
    from dcqcn_gym.benchmarks.speed.agents import agents_speed
    from dcqcn_gym.runs.table import Table, print_tables

    names = [name.strip() for name in kinds.split(",") if name.strip()]
    found = [agents_speed(scenario, kind, steps, decision_us) for kind in names]
    if as_json:
        derived = ("per_cpu_s", "outside_share")
        rows = [{**asdict(f), **{name: getattr(f, name) for name in derived}} for f in found]
        typer.echo(json.dumps(rows, indent=2))
        return
    columns = ("agents", "number", "steps", "steps/s and core", "outside the engine")
    lines = [
        (f.kind, f"{f.agents}", f"{f.steps}", f"{f.per_cpu_s:.0f}", f"{f.outside_share:.1%}")
        for f in found
    ]
    print_tables([Table(columns, lines, words=1)])
