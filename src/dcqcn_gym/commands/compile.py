"""``dcqcn-gym scenarios [compile NAME]``: list the scenarios, or write one as the flat text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.runs.options import OptionalOutFile

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

app = typer.Typer(help="List the scenarios: name, size, budget and what they are.")


@app.callback(invoke_without_command=True)
def scenarios(context: typer.Context) -> None:
    """List the scenarios: name, size, budget and what they are."""
    if context.invoked_subcommand is None:
        from dcqcn_gym.commands import tables

        tables.scenarios()


@app.command("compile")
def compile_one(
    scenario: Annotated[str, typer.Argument(help="A scenario's name, or a TOML file.")],
    out: OptionalOutFile = None,
) -> None:
    """Print a scenario as the flat text that the engines and the program dcqcn-ns3 read."""
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
