"""``dcqcn-gym scenarios | tuners | knobs``: what there is, and checks of scenario files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, install_command
from dcqcn_gym.runs.options import OptionalOutFile

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from dcqcn_gym.runs.table import Table, print_tables

    print_tables([Table(columns, rows, title, words=len(columns))])


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def scenarios(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Scenario files, or names.")
    ] = None,
    out: OptionalOutFile = None,
) -> None:
    """List the scenarios; check FILEs: say OK, or in one sentence what is wrong.

    With --out, the one FILE is also written as the flat text that the engines and the program
    dcqcn-ns3 read.

    Example: `dcqcn-gym scenarios my-fabric.toml`
    """
    if out is not None and len(files or []) != 1:
        raise ConfigError(f"--out {out} takes one scenario; {len(files or [])} were given")
    if not files:
        _list_scenarios()
        return
    from dcqcn_gym.envs.scenario.compile import compile_scenario
    from dcqcn_gym.envs.scenario.scenario import load_scenario

    for file in files:
        scenario = load_scenario(file)
        head, _, rest = compile_scenario(scenario).partition("\n")
        typer.echo(f"{file}: OK")
        for warning in scenario.warnings:
            typer.echo(f"{file}: warning: {warning}", err=True)
        if out is not None:
            text = "\n".join([head, *run_lines(scenario), rest])
            out.write_text(text, encoding="utf-8")
            typer.echo(f"{out}: {len(text.splitlines())} lines")


def _list_scenarios() -> None:
    from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names

    rows = []
    for name in scenario_names():
        one = load_scenario(name)
        weights = f"{one.weights.tp:g}/{one.weights.rtt:g}/{one.weights.pfc:g}"
        rate = f"{one.line_rate_bps / 1e9:g}"
        rows.append((name, str(one.n_hosts), rate, str(one.intervals), weights, one.description))
    _print("scenarios", ("name", "hosts", "Gb/s", "intervals", "weights", "what it is"), rows)


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
