"""``dcqcn-gym study``: a file of cases, entries and tables is carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import ForceOption, JobsOption, OptionalSeeds, OutOption, QuietOption


def study(
    name: Annotated[
        str, typer.Argument(help="A study of the package, such as recommended, or a TOML file.")
    ],
    out: OutOption,
    seeds: OptionalSeeds = None,
    intervals: Annotated[int | None, typer.Option(min=1, help="Intervals of a run.")] = None,
    jobs: JobsOption = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the tables into this Markdown file.")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Carry out a study: entries on cases with every seed; print its tables.

    Studies are files of configs/studies: recommended, alpha, acc, jobs, jobs-1024, fleet-safety,
    fleet-devices and fleet-collectors. Writes OUT/results.json and one event log per run. The same
    command continues what is unfinished in OUT; more seeds, cases and entries add to it.

    Example: `dcqcn-gym study my-study.toml --out runs/study`
    """
    from dcqcn_gym.comparison.plan import check, load_plan
    from dcqcn_gym.comparison.tables import markdown, tables_of, write_results_of
    from dcqcn_gym.report.markdown_page import check_page, insert
    from dcqcn_gym.runs.campaign import raise_failures
    from dcqcn_gym.runs.study import open_study
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.runs.trials import carry_out

    plan = load_plan(name).changed(seeds=seeds, intervals=intervals)
    mark = f"study {Path(name).stem}"
    check_page(write, mark)
    trials = plan.trials(out)
    check(trials)
    made = plan.study("study", trials)
    with open_study(made, out, force=force, quiet=quiet) as progress:
        raise_failures(carry_out(made.jobs.values(), jobs, progress))
        write_results_of(plan, trials, out)
    tables = tables_of(plan, trials)
    if write is not None:
        insert(write, mark, markdown(plan, name, tables))
    print_tables(tables)
