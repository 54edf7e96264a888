"""``dcqcn-gym scenarios | tuners | knobs | config validate``: tables to read, files to check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["config", "knobs", "scenarios", "tuners"]

config = typer.Typer(help="Check configuration files.", no_args_is_help=True)


def _print(table: Table) -> None:
    from rich.console import Console

    table.columns[0].no_wrap = True
    console = Console()
    if not console.is_terminal:  # a pipe gets whole rows instead of folded cells
        console = Console(width=300)
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(*columns, title=title, title_justify="left", box=box.SIMPLE_HEAD)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def scenarios() -> None:
    """List the scenarios: name, size, budget and what they are."""
    from rich.markup import escape

    from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names

    table = _table("scenarios", "name", "hosts", "Gb/s", "intervals", "weights", "what it is")
    for name in scenario_names():
        one = load_scenario(name)
        weights = f"{one.weights.tp:g}/{one.weights.rtt:g}/{one.weights.pfc:g}"
        rate = f"{one.line_rate_bps / 1e9:g}"
        row = (name, str(one.n_hosts), rate, str(one.intervals), weights, one.description)
        table.add_row(*map(escape, row))
    _print(table)


def tuners() -> None:
    """List the tuners, installed plug-ins included, with their arguments."""
    from rich.markup import escape

    from dcqcn_gym.core.errors import DcqcnGymError, printable
    from dcqcn_gym.tuners import TUNERS

    table = _table("tuners", "name", "what it does", "arguments (default)")
    for name in TUNERS.names():
        try:
            found = TUNERS.load(name)
        except DcqcnGymError as error:  # a broken plug-in must not hide the others
            table.add_row(escape(name), escape(printable(f"cannot be loaded: {error}")), "")
            continue
        fields = found.Settings.model_fields
        shown = [f"{key} ({_short(field.default)})" for key, field in fields.items()]
        arguments = "any knob" if name == "fixed" else ", ".join(shown)
        table.add_row(*(escape(printable(str(x))) for x in (name, found.summary, arguments)))
    _print(table)


def knobs() -> None:
    """List the knobs: unit, default, ranges, step, direction and names on devices."""
    from dcqcn_gym.core.knobs import KNOBS

    table = _table(
        "knobs at 100 Gb/s (* = tuned by default; throughput: direction that favours it)",
        *("knob", "unit", "default", "legal", "tuned", "step", "throughput", "mlxconfig / SONiC"),
        "what it is",
    )
    for row in KNOBS.values():
        low, high = row.legal_at(100e9)
        tuned_low, tuned_high = row.tuned_at(100e9)
        table.add_row(
            f"{row.name}{' *' if row.tuned_by_default else ''}",
            row.unit,
            f"{row.default:g}",
            f"{low:g}..{high:g}",
            f"{tuned_low:g}..{tuned_high:g}",
            f"{row.step_at(100e9):g}",
            "up" if row.direction > 0 else "down",
            row.mlxconfig or row.sonic or "",
            row.help,
        )
    _print(table)


@config.callback()
def _config() -> None:
    """Check configuration files."""


@config.command("validate")
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scenario TOML files.")],
) -> None:
    """Check scenario files; say OK, or in one sentence what is wrong."""
    from dcqcn_gym.envs.scenario.compile import compile_scenario
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    for path in files:
        named = path.suffix == ".toml" or path.is_absolute()  # never a scenario of the package
        compile_scenario(load_scenario(path if named else f"./{path}"))
        typer.echo(f"{path}: OK")
