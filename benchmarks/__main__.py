"""``python -m dcqcn_gym.benchmarks``: what maintainers measure, and the tables of the docs."""

from __future__ import annotations

import sys

import typer

from dcqcn_gym.benchmarks.leaderboard.commands.maintain import (
    commit,
    freeze,
    keep,
    operating,
    pick,
    rerun,
    reveal,
    season,
    withdraw,
)
from dcqcn_gym.benchmarks.leaderboard.commands.maintain import cost as leaderboard_cost
from dcqcn_gym.runs.command_line import run_command

app = typer.Typer(help="What maintainers measure.", no_args_is_help=True, add_completion=False)
leaderboard = typer.Typer(
    name="leaderboard",
    help="Seasons, the committed leaderboard, entries taken back, the final draw.",
    no_args_is_help=True,
)
for each in (
    freeze, season, keep, rerun, leaderboard_cost, withdraw, commit, reveal, pick, operating,
):  # fmt: skip
    leaderboard.command()(each)
app.add_typer(leaderboard)

if __name__ == "__main__":
    run_command(app, sys.argv[1:])
