"""``dcqcn-gym bench run``, ``resume``, ``status``, ``report``, ``suites``: the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.commands.interrupt import interruptible

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.board.protocol import Board

__all__ = ["report", "resume", "run", "status", "suites"]

Out = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a board.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one per CPU.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def run(
    suite: Annotated[str, typer.Argument(help="A suite's name, see bench suites, or its folder.")],
    tuners: Annotated[str, typer.Option(help="Rows: TUNER or TUNER@SCHEME, separated by commas.")],
    out: Annotated[Path, typer.Option(help="Folder for logs and results; it takes more rows.")],
    slow: Annotated[
        str, typer.Option(help="Those rows that need more than 20 ms a decision: fewer runs.")
    ] = "",
    repetitions: Annotated[
        int | None, typer.Option(min=1, max=999, help="Runs per scenario; default: the suite's.")
    ] = None,
    jobs: Jobs = None,
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
        _carry_out(board, jobs, quiet)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def resume(out: Out, jobs: Jobs = None, quiet: Quiet = False) -> None:
    """Make the runs of a board that are missing or unfinished, and print the ranking."""
    from dcqcn_gym.benchmarks.board.protocol import open_board
    from dcqcn_gym.runs.claim import claim

    board = open_board(out)
    with claim(out, "bench run"):
        _carry_out(board, jobs, quiet)


def _carry_out(board: Board, jobs: int | None, quiet: bool) -> None:
    from dcqcn_gym.runs.progress import open_progress

    go_on = f"finished runs are kept: dcqcn-gym bench resume {board.out} continues"
    with interruptible(go_on), open_progress(quiet=quiet) as progress:
        failed = board.carry_out(workers=jobs, progress=progress)
    for path, error in failed.items():
        typer.echo(f"{path.parent.parent.name} on {path.parent.name}: {error}", err=True)
    _print(board)
    if failed:
        typer.echo(f"error: {len(failed)} runs failed; their rows are incomplete", err=True)
        raise typer.Exit(2)


def status(out: Out) -> None:
    """Say how many runs of a board are finished, row by row."""
    from dcqcn_gym.benchmarks.board.protocol import open_board
    from dcqcn_gym.benchmarks.board.results import progress_table
    from dcqcn_gym.runs.table import print_tables

    print_tables([progress_table(open_board(out))])


def report(out: Out) -> None:
    """Print a board's ranking and write DIR/results.json and DIR/board.md from its logs."""
    from dcqcn_gym.benchmarks.board.protocol import open_board

    _print(open_board(out))


def _print(board: Board) -> None:
    from dcqcn_gym.benchmarks.board.results import write_results
    from dcqcn_gym.runs.table import print_tables

    tables, notes = write_results(board)
    print_tables(tables)
    for note in notes:
        typer.echo(note, err=True)
    typer.echo(f"results: {board.out / 'results.json'}\ntable: {board.out / 'board.md'}", err=True)


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
