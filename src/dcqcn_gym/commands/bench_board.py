"""``dcqcn-gym bench run``, ``resume``, ``shard``, ``merge``, ``report``, ``site``: the board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.commands.interrupt import interruptible

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.board.protocol import Board

__all__ = ["merge", "report", "resume", "run", "shard", "site", "status", "suites"]

Out = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a board.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one per CPU.")]
Dask = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
]
Slow = Annotated[
    str, typer.Option(help="Rows that need more than 20 ms a decision: fewer runs, no rank.")
]
Repetitions = Annotated[
    int | None, typer.Option(min=1, max=999, help="Runs per scenario; default: the suite's.")
]
Tuners = Annotated[str, typer.Option(help="Rows: TUNER or TUNER@SCHEME, separated by commas.")]
SuiteName = Annotated[str, typer.Argument(help="A suite's name, see bench suites, or its folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def run(
    suite: SuiteName,
    tuners: Tuners,
    out: Annotated[Path, typer.Option(help="Folder for logs and results; it takes more rows.")],
    slow: Slow = "",
    repetitions: Repetitions = None,
    jobs: Jobs = None,
    dask: Dask = None,
    force: Annotated[bool, typer.Option("--force", help="Remove the runs in OUT first.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run tuners on a suite, beside the default setting, and print the ranking.

    Every row meets the same traffic. An interrupted run is continued by bench resume DIR.
    """
    from dcqcn_gym.benchmarks.board.protocol import start_board
    from dcqcn_gym.runs.claim import claim

    with claim(out, "bench run"):
        board = start_board(
            suite, _words(tuners), out, slow=_words(slow), repetitions=repetitions, force=force
        )
        _carry_out(board, jobs, quiet, dask)


def shard(
    suite: SuiteName,
    tuners: Tuners,
    index: Annotated[int, typer.Option(min=0, help="Which share, from 0 on.")],
    count: Annotated[int, typer.Option(min=1, help="How many shares there are.")],
    out: Annotated[Path, typer.Option(help="Folder of this share, no other's.")],
    slow: Slow = "",
    repetitions: Repetitions = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Make one share of a board's runs, on a machine that sees no other; bench merge joins them.

    Every share is given the same suite, rows and repetitions.
    """
    from dcqcn_gym.benchmarks.board.protocol import start_board
    from dcqcn_gym.runs.claim import claim

    if index >= count:
        raise typer.BadParameter(f"--index {index}: the last of {count} shares is {count - 1}")
    with claim(out, "bench run"):
        board = start_board(
            suite, _words(tuners), out, slow=_words(slow), repetitions=repetitions,
            share=(index, count),
        )  # fmt: skip
        _carry_out(board, jobs, quiet)


def merge(
    shares: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of shares.")],
    out: Annotated[Path, typer.Option(help="Folder for the whole board; it takes more shares.")],
) -> None:
    """Join shares of a board in one folder and print the ranking.

    What is missing or unfinished in all of them is made by bench resume OUT.
    """
    from dcqcn_gym.benchmarks.board.shards import merge_boards
    from dcqcn_gym.runs.claim import claim

    with claim(out, "bench run"):
        _print(merge_boards(shares, out))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def resume(out: Out, jobs: Jobs = None, dask: Dask = None, quiet: Quiet = False) -> None:
    """Make the runs of a board that are missing or unfinished, and print the ranking."""
    from dcqcn_gym.benchmarks.board.protocol import open_board
    from dcqcn_gym.runs.claim import claim

    board = open_board(out)
    with claim(out, "bench run"):
        _carry_out(board, jobs, quiet, dask)


def _carry_out(board: Board, jobs: int | None, quiet: bool, dask: str | None = None) -> None:
    from dcqcn_gym.runs.progress import open_progress

    go_on = f"finished runs are kept: dcqcn-gym bench resume {board.out} continues"
    with interruptible(go_on), open_progress(quiet=quiet) as progress:
        if dask is None:
            failed = board.carry_out(workers=jobs, progress=progress)
        else:
            from dcqcn_gym.runs.dask_workers import dask_executor

            with dask_executor(dask, board.out) as (executor, at_once):
                failed = board.carry_out(workers=at_once, executor=executor, progress=progress)
    for path, error in failed.items():
        typer.echo(f"{path.parent.parent.name} on {path.parent.name}: {error}", err=True)
    if board.share == (0, 1):
        _print(board, jobs)
    else:
        _print_progress(board)
    if failed:
        typer.echo(f"error: {len(failed)} runs failed; their rows are incomplete", err=True)
        raise typer.Exit(2)


def status(
    out: Out,
    cost: Annotated[
        bool, typer.Option("--cost", help="CPU minutes instead; writes DIR/cost.json.")
    ] = False,
    serial: Annotated[
        Path | None,
        typer.Option(help="With --cost: the same board by one worker, for the efficiency."),
    ] = None,
) -> None:
    """Say how many runs of a board are finished, row by row, or what they cost."""
    from dcqcn_gym.benchmarks.board.protocol import open_board

    board = open_board(out)
    if cost or serial is not None:
        _print_cost(board, serial)
    else:
        _print_progress(board)


def _print_progress(board: Board) -> None:
    from dcqcn_gym.benchmarks.board.results import progress_table
    from dcqcn_gym.runs.table import print_tables

    print_tables([progress_table(board)])


def _print_cost(board: Board, serial: Path | None) -> None:
    from dcqcn_gym.benchmarks.board.cost import (
        campaigns,
        cost_tables,
        efficiency,
        kept_cost,
        write_cost,
    )
    from dcqcn_gym.runs.table import print_tables

    print_tables(cost_tables(kept_cost(board) or write_cost(board), campaigns(board.out)))
    if serial is not None:
        typer.echo(f"parallel efficiency: {efficiency(board.out, serial):.2f}")


def report(
    out: Out,
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many of every scenario; default: all."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Print a board's ranking and write DIR/results.json and DIR/board.md from its logs.

    What was read of a log is kept in DIR/read, so that only new logs are read the next time.
    """
    from dcqcn_gym.benchmarks.board.kept import RUNS_FILE
    from dcqcn_gym.benchmarks.board.protocol import cut, open_board
    from dcqcn_gym.core.errors import RunError

    if not (out / "runs").is_dir() and (out / RUNS_FILE).exists():
        raise RunError(
            f"{out} holds a board without its logs, as bench keep writes it; its ranking is "
            f"{out / 'board.md'}, and bench site {out} makes the pages"
        )
    _print(cut(open_board(out), repetitions), jobs)


def _print(board: Board, jobs: int | None = None) -> None:
    from dcqcn_gym.benchmarks.board.results import write_results
    from dcqcn_gym.runs.table import print_tables

    tables, notes = write_results(board, jobs)
    print_tables(tables)
    for note in notes:
        typer.echo(note, err=True)
    typer.echo(f"results: {board.out / 'results.json'}\ntable: {board.out / 'board.md'}", err=True)


def site(
    results: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of boards, or of submissions.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the pages.")],
    day: Annotated[
        str | None, typer.Option(help="Day for the changelog of rows, YYYY-MM-DD; default: today.")
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The maintainers' verdicts on submissions; default: all are self-reported.",
        ),
    ] = None,
) -> None:
    """Write the static site of some boards from their results.json alone.

    Boards of one suite become one ranking. The folder remembers its rows: what a later build adds,
    changes or leaves out is listed in the changelog of rows.
    """
    from datetime import datetime, timezone

    from dcqcn_gym.benchmarks.board.site.pages import write_site
    from dcqcn_gym.benchmarks.board.verification import checked_date

    today = datetime.now(timezone.utc).date().isoformat()
    page = write_site(results, out, today if day is None else checked_date(day), verdicts)
    typer.echo(f"site: {page}", err=True)


def suites() -> None:
    """List the suites: scenarios, repetitions, budget, digest."""
    from dcqcn_gym.benchmarks.board.suite import load_suite, suite_names
    from dcqcn_gym.runs.table import Table, print_tables

    rows = []
    for suite in map(load_suite, suite_names()):
        file = suite.file
        size = f"{len(file.scenarios)} x {file.repetitions} x {file.intervals}"
        rows.append((file.name, size, suite.digest[:12], file.description))
    columns = ("suite", "scenarios x repetitions x intervals", "digest", "what it is for")
    print_tables([Table(columns, rows, "suites", words=4)])
