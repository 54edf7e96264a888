"""``dcqcn-gym scenarios | tuners | knobs | config``: what there is, and checks of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.runs.options import OptionalOutFile

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

from dcqcn_gym.core.errors import DcqcnGymError, install_command

config = typer.Typer(help="Check configuration files.", no_args_is_help=True)
scenarios = typer.Typer(help="List the scenarios: name, size, budget and what they are.")


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from dcqcn_gym.runs.table import Table, print_tables

    print_tables([Table(columns, rows, title, words=len(columns))])


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@scenarios.callback(invoke_without_command=True)
def _list_scenarios(context: typer.Context) -> None:
    """List the scenarios: name, size, budget and what they are."""
    if context.invoked_subcommand is not None:
        return
    from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names

    rows = []
    for name in scenario_names():
        one = load_scenario(name)
        weights = f"{one.weights.tp:g}/{one.weights.rtt:g}/{one.weights.pfc:g}"
        rate = f"{one.line_rate_bps / 1e9:g}"
        rows.append((name, str(one.n_hosts), rate, str(one.intervals), weights, one.description))
    _print("scenarios", ("name", "hosts", "Gb/s", "intervals", "weights", "what it is"), rows)


@scenarios.command("compile")
def compile_one(
    scenario: Annotated[str, typer.Argument(help="A scenario's name, or a TOML file.")],
    out: OptionalOutFile = None,
) -> None:
    """Print a scenario as the flat text that the engines and the program dcqcn-ns3 read.

    Example: `dcqcn-gym scenarios compile fb-hadoop --out fb-hadoop.txt`
    """
    from dcqcn_gym.envs.scenario.compile import compile_scenario
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    chosen = load_scenario(scenario)
    head, _, rest = compile_scenario(chosen).partition("\n")
    text = "\n".join([head, *run_lines(chosen), rest])
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(f"{out}: {len(text.splitlines())} lines")


def run_lines(scenario: Scenario) -> list[str]:
    """Return the lines ``#! run`` and ``#! setting`` (SI units): comments to an engine only.

    They say how the program runs the scenario: name, budget, and the initial knobs in SI.
    """
    setting = scenario.initial_setting()
    return [
        f"#! run name={scenario.name} interval_ps={scenario.monitor_interval_ps} "
        f"intervals={scenario.intervals}",
        "#! setting "
        + " ".join(f"{row.name}={row.to_si(setting[row.name])!r}" for row in setting.table.rows),
    ]


def tuners(
    name: Annotated[str | None, typer.Argument(help="Show the arguments of this one.")] = None,
) -> None:
    """List the tuners, installed plug-ins included; with NAME, its arguments.

    Example: `dcqcn-gym tuners paraleon`
    """
    from dcqcn_gym.tuners import TUNERS

    if name is not None:
        _arguments(name)
        return
    rows = []
    for known in TUNERS.names():
        try:
            found = TUNERS.load(known)
        except DcqcnGymError as error:  # a broken plug-in must not hide the others
            rows.append((known, f"cannot be loaded: {error}"))
            continue
        extra = found.missing_extra()
        lacks = f"not available: {install_command(extra)}; " if extra else ""
        rows.append((known, f"{lacks}{found.summary}"))
    _print("tuners; dcqcn-gym tuners NAME shows the arguments", ("name", "what it does"), rows)


def _arguments(name: str) -> None:
    """Print what a tuner takes as --tuner-arg."""
    from dcqcn_gym.tuners import TUNERS

    found = TUNERS.load(name)
    typer.echo(f"{name}: {found.summary}")
    fields = found.Settings.model_fields
    if name == "fixed":
        typer.echo("any knob of the scenario's scheme, see dcqcn-gym knobs")
    if fields:
        rows = [(key, _short(f.default), f.description or "") for key, f in fields.items()]
        _print("", ("argument", "default", "what it is"), rows)


def knobs(
    scheme: Annotated[str, typer.Option(metavar="NAME", help="Whose knobs.")] = "dcqcn",
) -> None:
    """List the knobs: unit, default, ranges, step, direction and names on devices.

    Example: `dcqcn-gym knobs --scheme dcqcn`
    """
    from dcqcn_gym.core.knobs import knob_table

    table = knob_table(scheme)
    title = "knobs at 100 Gb/s (* = tuned by default; throughput: direction that favours it)"
    columns = (
        "knob", "unit", "default", "legal", "tuned", "step", "throughput", "mlxconfig / SONiC",
        "what it is",
    )  # fmt: skip
    rows = [
        (
            f"{row.name}{' *' if row.tuned_by_default else ''}",
            row.unit,
            f"{row.default:g}",
            "{:g}..{:g}".format(*row.legal_at(100e9)),
            "{:g}..{:g}".format(*row.tuned_at(100e9)),
            f"{row.step_at(100e9):g}",
            "up" if row.direction > 0 else "down",
            row.mlxconfig or row.sonic or "",
            row.help,
        )
        for row in table.rows
    ]
    _print(title, columns, rows)


@config.callback()
def _config() -> None:
    """Check configuration files."""


@config.command("validate")
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scenario TOML files.")],
) -> None:
    """Check scenario files; say OK, or in one sentence what is wrong.

    Example: `dcqcn-gym config validate my-fabric.toml`
    """
    from dcqcn_gym.envs.scenario.compile import compile_scenario
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    for path in files:
        named = path.suffix == ".toml" or path.is_absolute()  # never a scenario of the package
        scenario = load_scenario(path if named else f"./{path}")
        compile_scenario(scenario)
        typer.echo(f"{path}: OK")
        for warning in scenario.warnings:
            typer.echo(f"{path}: warning: {warning}", err=True)
