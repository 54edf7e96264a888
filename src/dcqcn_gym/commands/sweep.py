"""``dcqcn-gym sweep``: one or two knobs over their values, as table, CSV, JSON and picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs.options import (
    SCENARIO,
    SEEDS,
    BackendOption,
    ForceOption,
    JobsOption,
    OutOption,
    QuietOption,
    ScenarioOption,
    SeedsOption,
)

if TYPE_CHECKING:
    from dcqcn_gym.comparison.grid import Grid


def sweep(
    out: OutOption,
    knob: Annotated[
        list[str],
        typer.Option(
            metavar="KNOB[=VALUES]",
            help="One or two: KNOB, KNOB=1,2,3 or KNOB=LOW..HIGH, in NVIDIA's units.",
        ),
    ],
    scenario: ScenarioOption = SCENARIO,
    assign: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KNOB=VALUE", help="Set a knob for all points; repeatable."),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="What is shown, separated by commas; the files hold all.")
    ] = "throughput,rtt",
    points: Annotated[
        int, typer.Option(min=2, max=1000, help="Values of a knob without a list of them.")
    ] = 8,
    seeds: SeedsOption = SEEDS,
    intervals: Annotated[int, typer.Option(min=1, help="Monitor intervals of each run.")] = 20,
    jobs: JobsOption = None,
    backend: BackendOption = "native",
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Sweep one or two knobs over their values, all points on the same traffic.

    Writes OUT/sweep.csv, OUT/results.json, OUT/sweep.svg and one event log per run. The same
    command continues what is unfinished in OUT; more values add to it.

    Example: `dcqcn-gym sweep --knob rp_ai_rate=10,50,100 --out runs/sweep`
    """
    from dcqcn_gym.comparison.plan import check
    from dcqcn_gym.comparison.sweep_output import table_of, write_all
    from dcqcn_gym.report.metrics import metric as known
    from dcqcn_gym.runs.campaign import raise_failures
    from dcqcn_gym.runs.study import open_study
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.runs.trials import carry_out

    names = [name.strip() for name in metric.split(",")]
    for name in names:
        known(name)
    grid = _grid(scenario, knob, assign or [], points)
    plan = grid.plan(seeds, intervals, backend)
    check(plan.trials(out))
    study = grid.study(plan, out)
    with open_study(study, out, force=force, quiet=quiet) as progress:
        raise_failures(carry_out(study.jobs.values(), jobs, progress))
        found = grid.metrics(study)
        files = write_all(grid, plan, found, names, out)
    print_tables([table_of(grid, plan, found, names)])
    for path in files:
        typer.echo(path, err=True)


def _grid(scenario: str, knobs: list[str], assign: list[str], points: int) -> Grid:
    from dcqcn_gym.comparison.grid import Grid, parse_axis
    from dcqcn_gym.comparison.plan import Case
    from dcqcn_gym.core.knobs import Setting
    from dcqcn_gym.simulation.run import parse_assignments

    if len(knobs) > 2:
        raise ConfigError(f"--knob is given {len(knobs)} times; a sweep has one or two knobs")
    case = Case(scenario=scenario)
    chosen = case.loaded
    base = parse_assignments(assign, chosen.initial_setting(), chosen.line_rate_bps)
    if not isinstance(base, Setting):
        raise ConfigError("--set: a sweep holds one setting for all devices; leave the group out")
    axes = [parse_axis(text, chosen, points) for text in knobs]
    if len({axis.knob.name for axis in axes}) < len(axes):
        raise ConfigError(f"--knob names {axes[0].knob.name} twice; give two knobs")
    return Grid(case, base, axes)
