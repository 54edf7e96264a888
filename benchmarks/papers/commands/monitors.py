"""Accuracy and cost of the flow-size monitors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import ForceOption, JobsOption, OutOption, QuietOption


def monitors(
    out: OutOption,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A TOML file of a smaller or other plan."),
    ] = None,
    monitor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A monitor in Python to judge as well; repeatable."),
    ] = None,
    jobs: JobsOption = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the tables into this Markdown file.")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Judge what each monitor says of the flow sizes (PARALEON, section IV-C).

    All monitors see the same packets, under the scenario's initial setting. Writes
    OUT/monitor.html. The same command continues what is unfinished in OUT; more loads and seeds add
    to it. FILE has keys such as loads, intervals_ms, seeds and scenario, see Plan in
    benchmarks/papers/monitor_study/study.py.
    """
    from dcqcn_gym.benchmarks.papers.monitor_study.gates import gates
    from dcqcn_gym.benchmarks.papers.monitor_study.page import build_page, markdown
    from dcqcn_gym.benchmarks.papers.monitor_study.study import Plan, results_of, study_of
    from dcqcn_gym.core.config import load_toml
    from dcqcn_gym.report.markdown_page import check_page, insert
    from dcqcn_gym.runs.campaign import carry_out, raise_failures
    from dcqcn_gym.runs.study import open_study

    check_page(write, "monitor")
    plan = Plan() if file is None else load_toml(file, Plan)
    plan = plan.model_copy(update={"own": (*plan.own, *(monitor or ()))})
    study = study_of(plan.traffic(), out, plan)
    with open_study(study, out, force=force, quiet=quiet) as progress:
        raise_failures(carry_out(study.jobs.values(), workers=jobs, progress=progress))
        page = build_page(plan, study, out)
    table = results_of(study)
    if write is not None:
        insert(write, "monitor", markdown(plan, table))
    for gate in gates(table):
        typer.echo(f"{'holds' if gate.holds else 'FAILS'}  {gate.worst:+.3f}  {gate.what}")
    typer.echo(page)
