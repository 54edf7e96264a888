"""``dcqcn-gym bench agents`` and ``bench acc``: speed of several agents, what ACC is worth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.commands.interrupt import interruptible

if TYPE_CHECKING:
    from dcqcn_gym.runs.table import Table

__all__ = ["acc", "acc_sensitivity", "agents", "alpha"]


def agents(
    scenario: Annotated[str, typer.Option(help="The scenario.")] = "mini-fb-hadoop",
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


def acc(
    out: Annotated[Path, typer.Option(help="The logs; the same command continues them.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of fresh traffic.")] = 5,
    intervals: Annotated[int, typer.Option(min=1, help="Intervals of 500 us per run.")] = 50,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: one per CPU.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """ACC beside static curves, drawn ones and an untrained network, also on loads held out.

    A cell is the mean utility while acting, then the difference to secn1, paired by seed.
    """
    from dcqcn_gym.benchmarks.acc_rows import AccPlan, measure
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress

    kept = f"the same command continues {out}"
    with claim(out, "bench acc"), interruptible(kept), open_progress() as progress:
        tables = measure(AccPlan(out, seeds, intervals), jobs, progress)
    _show(tables, markdown)


def _show(tables: list[Table], markdown: bool) -> None:
    from dcqcn_gym.runs.table import print_tables

    if markdown:
        typer.echo("\n\n".join(table.markdown() for table in tables))
    else:
        print_tables(tables)


def alpha(
    out: Annotated[Path, typer.Option(help="The logs; the same command continues them.")],
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of fresh traffic.")] = 5,
    intervals: Annotated[int, typer.Option(min=1, help="Monitor intervals per run.")] = 50,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: one per CPU.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Rank tuners under PFC alphas from 1/16 to 1/2, and under the computed one.

    A cell is the mean utility while acting and the place; the last line is Spearman's correlation.
    """
    from dcqcn_gym.benchmarks.alpha_rows import AlphaPlan, measure
    from dcqcn_gym.runs.progress import open_progress

    kept = f"the same command continues {out}"
    with interruptible(kept), open_progress() as progress:
        tables = measure(AlphaPlan(out, seeds=seeds, intervals=intervals), jobs, progress)
    _show(tables, markdown)


def acc_sensitivity(
    trainings: Annotated[int, typer.Option(min=2, help="Trainings per row.")] = 5,
    decisions: Annotated[int, typer.Option(min=1, help="Decisions of a training.")] = 400,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """What ACC's paper leaves open, one choice changed at a time: state, templates, D(L), w1.

    A cell is the mean utility with greedy agents, then the difference to the shipped choices.
    """
    from dcqcn_gym.training.acc_sensitivity import Sensitivity, measure

    with interruptible("nothing was written"):
        table = measure(
            Sensitivity(trainings, decisions), told=lambda name: typer.echo(name, err=True)
        )
    _show([table], markdown)
