"""`dcqcn-gym bench ...`: suites of scenarios, and the leaderboard."""

from __future__ import annotations

import typer

from dcqcn_gym.commands.bench_keep import keep, rerun
from dcqcn_gym.commands.bench_leaderboard import (
    merge,
    report,
    resume,
    run,
    shard,
    site,
    status,
    suites,
)
from dcqcn_gym.commands.bench_submit import final, submit, verify, withdraw

__all__ = ["app"]

app = typer.Typer(name="bench", help="Run tuners on a suite of scenarios, and rank them.",
                  no_args_is_help=True)  # fmt: skip
for command in (run, resume, shard, merge, status, report, site, suites, submit, verify, withdraw,
                keep, rerun):  # fmt: skip
    app.command()(command)
app.add_typer(final)
