"""The ``dcqcn-gym`` command: puts the commands together."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from dcqcn_gym import __version__
from dcqcn_gym.benchmarks.leaderboard.commands.bench import app as bench
from dcqcn_gym.benchmarks.papers.commands.paper import app as paper
from dcqcn_gym.commands.advise import advise
from dcqcn_gym.commands.compare import compare
from dcqcn_gym.commands.emit import emit
from dcqcn_gym.commands.report import report
from dcqcn_gym.commands.show import show
from dcqcn_gym.commands.simulate import simulate
from dcqcn_gym.commands.study import study
from dcqcn_gym.commands.sweep import sweep
from dcqcn_gym.commands.tables import config, knobs, scenarios, tuners
from dcqcn_gym.commands.tune import tune
from dcqcn_gym.core.errors import DEBUG_VARIABLE
from dcqcn_gym.extras.jobs.commands import app as jobs
from dcqcn_gym.extras.learn.commands import evaluate, train
from dcqcn_gym.extras.ns3.commands import app as ns3
from dcqcn_gym.extras.traffic.commands import app as traffic
from dcqcn_gym.extras.traffic.network.commands import app as network
from dcqcn_gym.hw.commands.app import app as hw
from dcqcn_gym.runs.command_line import run_command

app = typer.Typer(
    name="dcqcn-gym",
    help="Tune the congestion control of RDMA networks, over an exact packet engine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dcqcn-gym {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error, a plug-in's included.")
    ] = False,
) -> None:
    """Tune the congestion control of RDMA networks, over an exact packet engine."""
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"  # worker processes show theirs as well


for command in (tune, report, show, emit, advise, simulate, compare, sweep, study, train, evaluate):
    app.command()(command)
app.add_typer(scenarios, name="scenarios")
app.command()(tuners)
app.command()(knobs)
app.add_typer(network, name="network")
app.add_typer(traffic, name="traffic")
app.add_typer(jobs, name="jobs")
app.add_typer(config, name="config")
app.add_typer(ns3, name="ns3")
app.add_typer(hw, name="hw")
app.add_typer(bench)
app.add_typer(paper)


def main() -> None:
    """Run the command line; ``--debug`` may stand anywhere, also behind the command."""
    words = sys.argv[1:]
    given = [word for word in words if word == "--debug"][:1]
    run_command(app, given + [word for word in words if word != "--debug"])


if __name__ == "__main__":
    main()
