"""Why the monitors are less accurate here than on a fluid: ``python tests/monitors/explain.py``.

What exact counters make of the same flows at 1 ms, in other networks and as a fluid, and with
histories of other lengths. The same command continues what is unfinished in ``--out``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from histories import history_jobs, history_table
from other_networks import LOADS, accounts, explanation, network_jobs

from dcqcn_gym.benchmarks.papers.monitor_study.study import Plan, produce, results
from dcqcn_gym.report.markdown_page import check_page, insert
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import JobsOption, ScenarioOption
from dcqcn_gym.runs.progress import open_progress

__all__ = ["app"]

app = typer.Typer(add_completion=False)


@app.command()
def explain(
    out: Annotated[Path, typer.Option(help="Directory for the results; a rerun continues it.")],
    scenario: ScenarioOption = "fb-hadoop",
    load: Annotated[
        list[int] | None, typer.Option(help="Host load in %; repeatable. Default: 20, 30.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Seeds, from 1 on.")] = 3,
    warmup: Annotated[int, typer.Option(min=1, help="Warm-up in ms.")] = 10,
    length: Annotated[int, typer.Option(min=1, help="Measured time in ms.")] = 40,
    jobs: JobsOption = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the tables into this Markdown file.")
    ] = None,
) -> None:
    """Print what other networks and other histories make of the same flows."""
    check_page(write, "monitor explained")
    plan = Plan(
        loads=tuple(load or LOADS),
        seeds=tuple(range(1, seeds + 1)),
        warmup_ms=warmup,
        length_ms=length,
        scenario=scenario,
    )
    histories = history_jobs(plan)
    kept = f"{out} holds every finished result: the same command continues it"
    with claim(out, "benchmarks monitor"), interruptible(kept), open_progress() as progress:
        produce([*network_jobs(plan), *histories], out, jobs, progress)
    text = explanation(plan, accounts(plan, out))
    text += "\n" + history_table(plan, list(results(histories, out)))
    if write is not None:
        insert(write, "monitor explained", text)
    typer.echo(text, nl=False)


if __name__ == "__main__":
    run_command(app, sys.argv[1:])
