"""``dcqcn-gym scenarios | tuners | knobs | config validate``: tables to read, files to check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["config", "knobs", "scenarios", "tuners"]

config = typer.Typer(help="Check configuration files.", no_args_is_help=True)


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from dcqcn_gym.runs.table import Table, print_tables

    print_tables([Table(columns, rows, title, words=len(columns))])


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def scenarios() -> None:
    """List the scenarios: name, size, budget and what they are."""
    from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names

    rows = []
    for name in scenario_names():
        one = load_scenario(name)
        weights = f"{one.weights.tp:g}/{one.weights.rtt:g}/{one.weights.pfc:g}"
        rate = f"{one.line_rate_bps / 1e9:g}"
        rows.append((name, str(one.n_hosts), rate, str(one.intervals), weights, one.description))
    _print("scenarios", ("name", "hosts", "Gb/s", "intervals", "weights", "what it is"), rows)


def tuners() -> None:
    """List the tuners, installed plug-ins included, with their arguments."""
    from dcqcn_gym.core.errors import DcqcnGymError
    from dcqcn_gym.tuners import TUNERS

    rows = []
    for name in TUNERS.names():
        try:
            found = TUNERS.load(name)
        except DcqcnGymError as error:  # a broken plug-in must not hide the others
            rows.append((name, f"cannot be loaded: {error}", ""))
            continue
        fields = found.Settings.model_fields
        shown = [f"{key} ({_short(field.default)})" for key, field in fields.items()]
        arguments = "any knob" if name == "fixed" else ", ".join(shown)
        extra = found.missing_extra()
        lacks = f"not available: pip install 'dcqcn-gym[{extra}]'; " if extra else ""
        rows.append((name, f"{lacks}{found.summary}", arguments))
    _print("tuners", ("name", "what it does", "arguments (default)"), rows)


def knobs(
    scheme: Annotated[str, typer.Option(metavar="NAME", help="Whose knobs.")] = "dcqcn",
) -> None:
    """List the knobs: unit, default, ranges, step, direction and names on devices."""
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
    """Check scenario files; say OK, or in one sentence what is wrong."""
    from dcqcn_gym.envs.scenario.compile import compile_scenario
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    for path in files:
        named = path.suffix == ".toml" or path.is_absolute()  # never a scenario of the package
        compile_scenario(load_scenario(path if named else f"./{path}"))
        typer.echo(f"{path}: OK")
