"""``dcqcn-gym bench fleet``: what safety, devices and collectors cost on a real network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.commands.interrupt import interruptible

__all__ = ["fleet"]


def fleet(
    study: Annotated[str, typer.Argument(help="safety, devices or collectors.")],
    out: Annotated[Path, typer.Option(help="The logs; the same command continues them.")],
    scenario: Annotated[str, typer.Option(help="The scenario.")] = "mini-fb-hadoop",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, from 1 on.")] = 5,
    intervals: Annotated[int, typer.Option(min=1, help="Intervals of a tuning run.")] = 100,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the table into this Markdown file.")
    ] = None,
) -> None:
    """Tune under safety rules, behind devices' rounding or by collectors; what each one costs.

    Prints the table as Markdown.
    """
    from dcqcn_gym.benchmarks.fleet import FleetPlan, markdown, produce
    from dcqcn_gym.benchmarks.markdown_page import insert
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress

    plan = FleetPlan(study, out, scenario, seeds, intervals)
    plan.rows()
    kept = f"{out} holds every finished run: the same command continues it"
    with claim(out, "bench fleet"), interruptible(kept), open_progress() as progress:
        produce(plan, workers, progress)
    text = markdown(plan)
    if write is not None:
        insert(write, f"fleet {study}", text)
    typer.echo(text, nl=False)
