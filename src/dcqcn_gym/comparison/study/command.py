"""The runs and the tables of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible


def study(
    name: Annotated[
        str, typer.Argument(help="A study of the package, such as recommended, or a TOML file.")
    ],
    out: Annotated[Path, typer.Option(help="The logs; the same command continues them.")],
    seeds: Annotated[int | None, typer.Option(min=1, max=999, help="Fewer or more seeds.")] = None,
    intervals: Annotated[int | None, typer.Option(min=1, help="Intervals of a run.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; default: one per CPU.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the tables into this Markdown file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Carry out a study: entries on cases with every seed; print its tables.

    Studies are files of configs/studies: recommended, alpha, acc, jobs, jobs-1024, fleet-safety,
    fleet-devices and fleet-collectors. Writes OUT/study.json and OUT/results.json.
    """
    from dcqcn_gym.benchmarks.markdown_page import check_page, insert
    from dcqcn_gym.comparison.study.plan import load_study, produce
    from dcqcn_gym.comparison.study.tables import markdown, tables_of, write_study
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress
    from dcqcn_gym.runs.table import print_tables

    plan = load_study(name).changed(seeds=seeds, intervals=intervals)
    mark = f"study {Path(name).stem}"
    check_page(write, mark)
    kept = f"{out} holds every finished interval: the same command continues it"
    with claim(out, "study"), interruptible(kept), open_progress(quiet=quiet) as progress:
        trials = produce(plan, out, jobs, progress)
        write_study(plan, trials, out)
    tables = tables_of(plan, trials)
    if write is not None:
        insert(write, mark, markdown(plan, name, tables))
    print_tables(tables)
