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

    All monitors see the same packets, under the scenario's initial setting. Writes OUT/results.json
    and two figures. The same command continues what is unfinished in OUT; more loads and seeds add
    to it. FILE has keys such as loads, intervals_ms, seeds and scenario, see Plan in
    benchmarks/papers/monitor_study/study.py.

    Example: `dcqcn-gym paper monitors --out runs/monitors`
    """
    from dcqcn_gym.benchmarks.papers.monitor_study.study import MonitorStudy, results_of, study_of
    from dcqcn_gym.benchmarks.papers.monitor_study.tables import markdown, write_all
    from dcqcn_gym.core.config import load_toml
    from dcqcn_gym.report.markdown_page import check_page, insert
    from dcqcn_gym.runs.campaign import carry_out, raise_failures
    from dcqcn_gym.runs.study import open_study
    from dcqcn_gym.runs.table import print_tables

    check_page(write, "monitor")
    plan = MonitorStudy() if file is None else load_toml(file, MonitorStudy)
    plan = plan.model_copy(update={"own": (*plan.own, *(monitor or ()))})
    study = study_of(plan, out)
    with open_study(study, out, force=force, quiet=quiet) as progress:
        raise_failures(carry_out(study.jobs.values(), workers=jobs, progress=progress))
        tables = write_all(plan, study, out)
    if write is not None:
        insert(write, "monitor", markdown(plan, results_of(study)))
    print_tables(tables)
