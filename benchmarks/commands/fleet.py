"""Tuning through agents and devices, against the engine's own run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import ScenarioOption

__all__ = ["fleet"]


def fleet(
    study: Annotated[str, typer.Argument(help="same or bytes.")],
    out: Annotated[Path, typer.Option(help="The logs; the same command continues them.")],
    scenario: ScenarioOption = "mini-fb-hadoop",
    intervals: Annotated[int, typer.Option(min=2, help="Intervals of a tuning run.")] = 100,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the table into this Markdown file.")
    ] = None,
) -> None:
    """Tune through the agents and devices of a digital fabric, with one seed.

    `same` compares the run with the engine's own, byte by byte; `bytes` measures what a fleet's
    control carries. Prints the table as Markdown.
    """
    from dcqcn_gym.benchmarks.markdown_page import insert
    from dcqcn_gym.core.errors import UnknownNameError
    from dcqcn_gym.runs.claim import claim

    if study not in _ON_THE_FABRIC:
        raise UnknownNameError("study", study, _ON_THE_FABRIC)
    kept = f"{out} holds every finished run: the same command continues it"
    with claim(out, "fleet"), interruptible(kept):
        text = _ON_THE_FABRIC[study](out, scenario, intervals)
    if write is not None:
        insert(write, f"fleet {study} {scenario}", text)
    typer.echo(text, nl=False)


def _same(out: Path, scenario: str, intervals: int) -> str:
    from dcqcn_gym.benchmarks.fleet_same import markdown, produce
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    return markdown(scenario, intervals, produce(out, load_scenario(scenario), intervals))


def _bytes(out: Path, scenario: str, intervals: int) -> str:
    from dcqcn_gym.benchmarks.fleet_bytes import markdown, produce
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    return markdown(scenario, intervals, produce(out, load_scenario(scenario), intervals))


_ON_THE_FABRIC: dict[str, Callable[[Path, str, int], str]] = {"same": _same, "bytes": _bytes}
