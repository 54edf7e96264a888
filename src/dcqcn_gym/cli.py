"""The ``dcqcn-gym`` command: puts the commands together and turns errors into one sentence.

Exit codes: 0 done, 2 something that was given is wrong (or a run failed), 130 Ctrl-C or
SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Annotated

import typer

from dcqcn_gym import __version__
from dcqcn_gym.commands import bench, compile, hw, ns3, paper, tables
from dcqcn_gym.commands.compare import compare
from dcqcn_gym.commands.emit import emit
from dcqcn_gym.commands.parity import parity
from dcqcn_gym.commands.pretrain import pretrain
from dcqcn_gym.commands.report import report
from dcqcn_gym.commands.simulate import simulate
from dcqcn_gym.commands.sweep import sweep
from dcqcn_gym.commands.train import evaluate, train
from dcqcn_gym.commands.train_acc import train_acc
from dcqcn_gym.commands.tune import tune
from dcqcn_gym.core.errors import DEBUG_VARIABLE, DcqcnGymError, printable

__all__ = ["app", "main"]

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


app.command()(tune)
app.command()(report)
app.command()(emit)
app.command()(simulate)
app.command()(compare)
app.command()(sweep)
app.command()(parity)
app.command()(pretrain)
app.command()(train)
app.command()(train_acc)
app.command()(evaluate)
app.add_typer(compile.app, name="scenarios")
app.command()(tables.tuners)
app.command()(tables.knobs)
app.add_typer(tables.config, name="config")
app.add_typer(ns3.app, name="ns3")
app.add_typer(hw.app, name="hw")
app.add_typer(bench.app)
app.add_typer(paper.app)


def main() -> None:
    """Run the command line; every expected error is one line on standard error.

    ``--debug`` may stand anywhere, also behind the command. A kill (SIGTERM, as a batch system
    sends) ends a command as Ctrl-C does, saying what is kept.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    words = sys.argv[1:]
    given = [word for word in words if word == "--debug"][:1]
    try:
        app(given + [word for word in words if word != "--debug"])  # ends by SystemExit
    except DcqcnGymError as error:
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exception(error)
        typer.echo(f"error: {printable(str(error))}", err=True)
        sys.exit(2)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        typer.echo(f"error: {name}{error.strerror or error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
