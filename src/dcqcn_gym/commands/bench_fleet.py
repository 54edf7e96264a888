"""``dcqcn-gym bench fleet``: what safety, devices and collectors cost on a real network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.commands.interrupt import interruptible

__all__ = ["fleet"]


def fleet(
    study: Annotated[str, typer.Argument(help="safety, devices, collectors, same or bytes.")],
    out: Annotated[Path, typer.Option(help="The logs; the same command continues them.")],
    scenario: Annotated[str, typer.Option(help="The scenario.")] = "mini-fb-hadoop",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, from 1 on.")] = 5,
    intervals: Annotated[int, typer.Option(min=2, help="Intervals of a tuning run.")] = 100,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the table into this Markdown file.")
    ] = None,
) -> None:
    """Tune under safety rules, behind devices' rounding or by collectors; what each one costs.

    `same` compares a run over the digital fabric with the engine's own, byte by byte; `bytes`
    measures what a fleet's control carries. Both take one seed. Prints the table as Markdown.
    """
    from dcqcn_gym.benchmarks.fleet import STUDIES, FleetPlan, markdown, produce
    from dcqcn_gym.benchmarks.markdown_page import insert
    from dcqcn_gym.core.errors import UnknownNameError
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress

    if study not in (*STUDIES, *_ON_THE_FABRIC):
        raise UnknownNameError("study", study, [*STUDIES, *_ON_THE_FABRIC])
    mark = f"fleet {study}"
    kept = f"{out} holds every finished run: the same command continues it"
    with claim(out, "bench fleet"), interruptible(kept), open_progress() as progress:
        if study in _ON_THE_FABRIC:
            mark += f" {scenario}"
            text = _ON_THE_FABRIC[study](out, scenario, intervals)
        else:
            plan = FleetPlan(study, out, scenario, seeds, intervals)
            produce(plan, workers, progress)
            text = markdown(plan)
    if write is not None:
        insert(write, mark, text)
    typer.echo(text, nl=False)


def _same(out: Path, scenario: str, intervals: int) -> str:
    from dcqcn_gym.benchmarks.fleet_same import SamePlan, markdown, produce

    plan = SamePlan(out, scenario, intervals)
    return markdown(plan, produce(plan))


def _bytes(out: Path, scenario: str, intervals: int) -> str:
    from dcqcn_gym.benchmarks.fleet_bytes import markdown, produce
    from dcqcn_gym.benchmarks.fleet_same import SamePlan

    plan = SamePlan(out, scenario, intervals)
    return markdown(plan, produce(plan))


_ON_THE_FABRIC: dict[str, Callable[[Path, str, int], str]] = {"same": _same, "bytes": _bytes}
