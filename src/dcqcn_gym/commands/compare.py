"""``dcqcn-gym compare``: tuners on the same traffic, in parallel, as a table and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.interrupt import interruptible, same_command
from dcqcn_gym.runs.options import (
    SCENARIO,
    SEEDS,
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
)

if TYPE_CHECKING:
    from dcqcn_gym.comparison.plan import Plan


@dataclass(frozen=True)
class Shown:
    """What is shown beside the usual: the sizes of a paper, curves of completion times."""

    bins: str | None = None
    curves: bool = False


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
        typer.Option(min=1, max=999, help="Fresh seeds for what a run recommends; default: 2."),
    ] = None,
    eval_intervals: Annotated[
        int | None, typer.Option(min=1, help="Intervals per fresh seed; default: 25.")
    ] = None,
    jobs: JobsOption = None,
    backend: OptionalBackend = None,
    tuner_deadline: DeadlineOption = None,
    bins: BinsOption = None,
    fct_cdf: CurvesOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run tuners on the same traffic and compare them.

    Writes OUT/table.md and .tex, OUT/seeds.csv (.parquet), OUT/compare.html, OUT/results.json,
    OUT/plots and one event log per run.
    The same command continues what is unfinished in OUT. What is given adds to the comparison that
    is there, so that dcqcn-gym compare --out OUT is enough to go on.
    """
    from dcqcn_gym.comparison.plan import PLAN_FILE, added, all_tuners, stored_plan
    from dcqcn_gym.core.statistics import paper_bins

    if bins is not None:
        paper_bins(bins)
    everything = tuners == "all"
    named = None if tuners is None or everything else _names(tuners, "--tuners")

    given = {
        "scenarios": None if scenario is None else _names(scenario, "--scenario"),
        "tuners": all_tuners() if everything else named,
        "everything": None if tuners is None else everything,
        "seeds": seeds,
        "intervals": intervals,
        "eval_seeds": eval_seeds,
        "eval_intervals": eval_intervals,
        "backend": backend,
        "deadline_s": tuner_deadline,
    }
    chosen: dict[str, Any] = {k: value for k, value in given.items() if value is not None}
    with claim(out, "compare", force=force):
        resume = (out / PLAN_FILE).exists() and not force
        plan = added(stored_plan(out), chosen) if resume else _plan(chosen)
        shown = Shown(bins, curves=fct_cdf)
        _carry_out(plan, out, jobs, shown, resume=resume, force=force, quiet=quiet)


def _carry_out(
    wanted: Plan,
    out: Path,
    workers: int | None,
    shown: Shown,
    *,
    resume: bool,
    force: bool,
    quiet: bool,
) -> None:
    import dcqcn_gym.comparison.plan as bench
    from dcqcn_gym.comparison.extra import write_fct_curves
    from dcqcn_gym.comparison.page import write_results
    from dcqcn_gym.comparison.results import rows
    from dcqcn_gym.comparison.text import headline
    from dcqcn_gym.comparison.text import tables as tables_of
    from dcqcn_gym.runs.progress import open_progress
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.runs.trials import carry_out

    plan, notes = bench.prepare(wanted, out, resume=resume, force=force)
    for note in notes:
        typer.echo(note, err=True)
    todo = bench.jobs(plan, out)
    go_on = f"{out} holds every finished interval: {same_command(force)} continues it"
    with interruptible(go_on), open_progress(quiet=quiet) as progress:
        failed = carry_out(todo, workers, progress)
    tables = rows(todo, failed)
    page = write_results(plan, tables, notes, out, shown.bins)
    if shown.curves:
        typer.echo(f"curves: {write_fct_curves(todo, out, shown.bins)}", err=True)
    for name, found in tables.items():
        print_tables(tables_of(name, found, shown.bins))
        typer.echo(f"{headline(name, found)}\n")
    typer.echo(f"table: {out / 'table.md'}\npage: {page}", err=True)
    if failed:
        typer.echo(f"error: {len(failed)} of {len(todo)} runs failed; see the table", err=True)
        raise typer.Exit(2)


def _plan(given: Mapping[str, Any]) -> Plan:
    """Return the plan of a new comparison: what was given, the rest by default."""
    from dcqcn_gym.comparison.plan import Plan, all_tuners
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    scenarios = given.get("scenarios", (SCENARIO,))
    whole = {
        "scenarios": scenarios,
        "tuners": all_tuners(),
        "everything": "tuners" not in given,
        "seeds": SEEDS,
        "intervals": None,
        **given,
    }
    if whole["intervals"] is None:
        whole["intervals"] = load_scenario(scenarios[0]).intervals
    return Plan(**whole)


def _names(text: str, option: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise ConfigError(f"{option} {quote(text)}: expected names separated by commas, none empty")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{option}: {', '.join(twice)} is given twice")
    return names
