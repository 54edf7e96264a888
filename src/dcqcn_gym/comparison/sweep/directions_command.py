"""Which way every knob moves throughput and delay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import JobsOption, ScenarioOption


def directions(
    out: Annotated[Path, typer.Option(help="The logs; the same command continues them.")],
    scenario: ScenarioOption = "mini-llm-alltoall",
    points: Annotated[int, typer.Option(min=2, help="Values of each knob.")] = 6,
    seeds: Annotated[int, typer.Option(min=2, help="Traffic seeds 1..N.")] = 5,
    intervals: Annotated[int, typer.Option(min=1, help="Monitor intervals of each run.")] = 20,
    jobs: JobsOption = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the measurement, a line per run.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the table into this Markdown file.")
    ] = None,
) -> None:
    """Sweep every knob alone; say which way it moves throughput and the round trip.

    The last column compares with the direction of the knob table.
    """
    from dcqcn_gym.benchmarks.markdown_page import check_page, insert
    from dcqcn_gym.comparison.study.plan import Case
    from dcqcn_gym.comparison.sweep import directions as bench
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.runs.whole_file import check_writable

    check_page(write, "directions")
    if keep is not None:
        check_writable(keep)
    grids = bench.grids_of(Case(scenario=scenario), points)
    kept = f"{out} holds every finished interval: the same command continues it"
    with claim(out, "bench directions"), interruptible(kept), open_progress() as progress:
        lines = bench.measure_directions(grids, seeds, intervals, out, jobs, progress)
    if keep is not None:
        bench.write_lines(keep, lines)
    table = bench.directions_table(bench.directions(lines))
    if write is not None:
        insert(write, "directions", table.markdown() + "\n")
    print_tables([table])
