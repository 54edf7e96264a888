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
from dcqcn_gym.benchmarks.papers.commands.maintain import acc, confirm, pages
from dcqcn_gym.benchmarks.papers.commands.maintain import rerun as papers_rerun
from dcqcn_gym.benchmarks.papers.commands.monitor import monitor
from dcqcn_gym.runs.command_line import run_command

app = typer.Typer(help="What maintainers measure.", no_args_is_help=True, add_completion=False)
app.command()(monitor)
papers = typer.Typer(name="papers", help="Results of the papers' figures.", no_args_is_help=True)
for one in (papers_rerun, pages, confirm, acc):
    papers.command()(one)
app.add_typer(papers)
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
