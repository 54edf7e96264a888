"""``dcqcn-gym compare``: tuners on the same traffic, in parallel, as a table and a page."""

from __future__ import annotations

from typing import Annotated

import typer

from dcqcn_gym.runs.options import (
    BinsOption,
    CurvesOption,
    DeadlineOption,
    ForceOption,
    JobsOption,
    OptionalBackend,
    OptionalScenarios,
    OptionalSeeds,
    OutOption,
    QuietOption,
    WindowOption,
    names_in,
)
from dcqcn_gym.runs.tracking import TrackOption, check_trackers, track


def compare(
    out: OutOption,
    scenario: OptionalScenarios = None,
    tuners: Annotated[
        str | None,
        typer.Option(help="Tuners, separated by commas; all (default): every registered one."),
    ] = None,
    seeds: OptionalSeeds = None,
    intervals: Annotated[
        int | None, typer.Option(min=1, help="Budget of each run; default: the first scenario's.")
    ] = None,
    eval_seeds: Annotated[
        int | None,
        typer.Option(min=1, max=999, help="Held-out seeds for what a run recommends; default: 2."),
    ] = None,
    eval_intervals: Annotated[
        int | None, typer.Option(min=1, help="Intervals per held-out seed; default: 25.")
    ] = None,
    window: WindowOption = None,
    jobs: JobsOption = None,
    backend: OptionalBackend = None,
    tuner_deadline: DeadlineOption = None,
    bins: BinsOption = None,
    fct_cdf: CurvesOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
    trackers: TrackOption = None,
) -> None:
    """Run tuners on the same traffic and compare them.

    Writes OUT/table.md and .tex, OUT/seeds.csv (.parquet), OUT/compare.html, OUT/results.json,
    OUT/plots and one event log per run.
    The same command continues what is unfinished in OUT. What is given adds to the comparison that
    is there, so that dcqcn-gym compare --out OUT is enough to go on.

    Example: `dcqcn-gym compare --scenario fb-hadoop --tuners default,keeper --out runs/compare`
    """
    from rich.console import Console

    from dcqcn_gym.comparison.compare import (
        all_tuners,
        held_plan,
        plan_and_remarks,
        startable,
        study_of,
    )
    from dcqcn_gym.comparison.network_tables import write_fct_curves
    from dcqcn_gym.comparison.page import write_all
    from dcqcn_gym.comparison.results import results_of
    from dcqcn_gym.comparison.text import answers, headline
    from dcqcn_gym.comparison.text import tables as tables_of
    from dcqcn_gym.core.statistics import paper_bins
    from dcqcn_gym.runs.study import open_study
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.runs.trials import carry_out

    check_trackers(trackers)
    if bins is not None:
        paper_bins(bins)
    every = all_tuners() if tuners == "all" else None
    given = {
        "scenarios": None if scenario is None else names_in(scenario, "--scenario"),
        "tuners": every if tuners is None else every or names_in(tuners, "--tuners"),
        "seeds": seeds,
        "intervals": intervals,
        "eval_seeds": eval_seeds,
        "eval_intervals": eval_intervals,
        "backend": backend,
    }
    held = None if force else held_plan(out)
    wanted, said = plan_and_remarks(
        {k: value for k, value in given.items() if value is not None}, held, window
    )
    everything = tuners == "all" or (tuners is None and held is None)
    plan, notes = startable(wanted, everything=everything)
    study = study_of(plan, out, tuner_deadline)
    with open_study(study, out, force=force, quiet=quiet) as progress:
        for note in [*([] if quiet else said), *notes]:
            typer.echo(note, err=True)
        failed = carry_out(study.jobs.values(), jobs, progress)
        tables = results_of(study.jobs.values(), failed)
        page = write_all(plan, tables, [*said, *notes], out, bins)
        curves = write_fct_curves(study.jobs.values(), out, bins) if fct_cdf else None
    for name, found in tables.items():
        print_tables(tables_of(name, found, bins))
    for name, one in answers(plan, tables).items():
        text = f"{headline(name, tables[name], one)}.\n"
        console = Console()
        console.print(text, markup=False, highlight=False, soft_wrap=not console.is_terminal)
    if curves is not None:
        typer.echo(f"curves: {curves}", err=True)
    typer.echo(f"table: {out / 'table.md'}\npage: {page}", err=True)
    track(out, trackers)
    if failed:
        typer.echo(
            f"error: {len(failed)} of {len(study.jobs)} runs failed; see the table", err=True
        )
        raise typer.Exit(2)
