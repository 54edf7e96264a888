"""``dcqcn-gym compare``: tuners on the same traffic, in parallel, as a table and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.commands.interrupt import interruptible, resume_words

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.comparison.plan import Plan

__all__ = ["compare"]


def compare(
    out: Annotated[Path, typer.Option(help="Directory for logs, table, plots and page.")],
    scenario: Annotated[
        str, typer.Option(help="Scenarios, separated by commas.")
    ] = "mini-fb-hadoop",
    tuners: Annotated[
        str, typer.Option(help="Tuners, separated by commas; all: every registered one.")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, max=999, help="Traffic seeds 1..N.")] = 5,
    intervals: Annotated[
        int | None, typer.Option(min=1, help="Budget of each run; default: the first scenario's.")
    ] = None,
    eval_seeds: Annotated[
        int, typer.Option(min=1, max=999, help="Fresh seeds per run for what it recommends.")
    ] = 2,
    eval_intervals: Annotated[int, typer.Option(min=1, help="Intervals per fresh seed.")] = 25,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; default: one per CPU.")
    ] = None,
    backend: Annotated[str, typer.Option(help="native, or fake for a quick look.")] = "native",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the comparison in OUT, or add to it.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the comparison in OUT.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Run tuners on the same traffic and compare them.

    Writes OUT/table.md, OUT/compare.html, OUT/results.json, OUT/plots and one event log per run.
    An interrupted comparison is continued by the same command with --resume.
    """
    import dcqcn_gym.benchmarks.comparison.plan as bench
    from dcqcn_gym.benchmarks.comparison.page import write_results
    from dcqcn_gym.benchmarks.comparison.results import rows
    from dcqcn_gym.benchmarks.comparison.text import headline
    from dcqcn_gym.benchmarks.comparison.text import tables as tables_of
    from dcqcn_gym.runs.pool import cpu_count
    from dcqcn_gym.runs.progress import open_progress
    from dcqcn_gym.runs.table import print_tables

    plan, notes = bench.prepare(
        _plan(scenario, tuners, seeds, intervals, eval_seeds, eval_intervals, backend),
        out,
        resume=resume,
        force=force,
    )
    todo = bench.jobs(plan, out)
    held = f"{out} holds every finished interval: the same command with {resume_words(force)}"
    with interruptible(f"{held} continues it"), open_progress(quiet=quiet) as progress:
        failed = bench.carry_out(todo, jobs or cpu_count(), progress)
    tables = rows(todo, failed)
    page = write_results(plan, tables, notes, out)
    for name, found in tables.items():
        print_tables(tables_of(name, found))
        typer.echo(f"{headline(name, found)}\n")
    for note in notes:
        typer.echo(note, err=True)
    typer.echo(f"table: {out / 'table.md'}\npage: {page}", err=True)
    if failed:
        typer.echo(f"error: {len(failed)} of {len(todo)} runs failed; see the table", err=True)
        raise typer.Exit(2)


def _plan(
    scenario: str,
    tuners: str,
    seeds: int,
    intervals: int | None,
    eval_seeds: int,
    eval_intervals: int,
    backend: str,
) -> Plan:
    from dcqcn_gym.benchmarks.comparison.plan import Plan, all_tuners
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    scenarios = _names(scenario, "--scenario")
    everything = tuners == "all"
    chosen = all_tuners() if everything else _names(tuners, "--tuners")
    budget = load_scenario(scenarios[0]).intervals if intervals is None else intervals
    return Plan(scenarios, chosen, seeds, budget, eval_seeds, eval_intervals, backend, everything)


def _names(text: str, option: str) -> tuple[str, ...]:
    from dcqcn_gym.core.errors import ConfigError, quote

    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise ConfigError(f"{option} {quote(text)}: expected names separated by commas, none empty")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{option}: {', '.join(twice)} is given twice")
    return names
