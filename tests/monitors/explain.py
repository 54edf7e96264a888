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

from dcqcn_gym.benchmarks.papers.monitor_study.study import Plan, study_of
from dcqcn_gym.report.markdown_page import check_page, insert
from dcqcn_gym.runs.campaign import carry_out, raise_failures
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.options import JobsOption, ScenarioOption
from dcqcn_gym.runs.study import open_study

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
    study = study_of([*network_jobs(plan), *histories], out, plan)
    with open_study(study, out) as progress:
        raise_failures(carry_out(study.jobs.values(), workers=jobs, progress=progress))
    text = explanation(plan, accounts(study))
    found = [job.result() for names, job in study.jobs.items() if names[0].startswith("history")]
    text += "\n" + history_table(plan, found)
    if write is not None:
        insert(write, "monitor explained", text)
    typer.echo(text, nl=False)


if __name__ == "__main__":
    run_command(app, sys.argv[1:])
