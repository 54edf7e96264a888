"""``dcqcn-gym bench run|resume|shard|merge|report|site``: the leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard

__all__ = ["merge", "report", "resume", "run", "shard", "site", "status", "suites"]

Out = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a leaderboard.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one per CPU.")]
Dask = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
]
Slow = Annotated[
    str, typer.Option(help="Entries that need more than 20 ms a decision: fewer runs, no rank.")
]
Repetitions = Annotated[
    int | None, typer.Option(min=1, max=999, help="Runs per scenario; default: the suite's.")
]
Tuners = Annotated[str, typer.Option(help="Entries: TUNER or TUNER@SCHEME, separated by commas.")]
SuiteName = Annotated[str, typer.Argument(help="A suite's name, see bench suites, or its folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def run(
    suite: SuiteName,
    tuners: Tuners,
    out: Annotated[Path, typer.Option(help="Folder for logs and results; it takes more entries.")],
    slow: Slow = "",
    repetitions: Repetitions = None,
    jobs: Jobs = None,
    dask: Dask = None,
    force: Annotated[bool, typer.Option("--force", help="Remove the runs in OUT first.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run tuners on a suite, beside the default setting, and print the ranking.

    Every entry meets the same traffic. An interrupted run is continued by bench resume DIR.
    """
    from dcqcn_gym.benchmarks.leaderboard.protocol import start_leaderboard
    from dcqcn_gym.benchmarks.leaderboard.ranking import need_scipy
    from dcqcn_gym.runs.claim import claim

    need_scipy()
    with claim(out, "bench run"):
        board = start_leaderboard(
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
    """Make one share of the runs, on a machine that sees no other; bench merge joins them.

    Every share is given the same suite, entries and repetitions.
    """
    from dcqcn_gym.benchmarks.leaderboard.protocol import start_leaderboard
    from dcqcn_gym.runs.claim import claim

    if index >= count:
        raise typer.BadParameter(f"--index {index}: the last of {count} shares is {count - 1}")
    with claim(out, "bench run"):
        board = start_leaderboard(
            suite, _words(tuners), out, slow=_words(slow), repetitions=repetitions,
            share=(index, count),
        )  # fmt: skip
        _carry_out(board, jobs, quiet)


def merge(
    shares: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of shares.")],
    out: Annotated[
        Path, typer.Option(help="Folder for the whole leaderboard; it takes more shares.")
    ],
) -> None:
    """Join shares of a leaderboard in one folder and print the ranking.

    What is missing or unfinished in all of them is made by bench resume OUT.
    """
    from dcqcn_gym.benchmarks.leaderboard.ranking import need_scipy
    from dcqcn_gym.benchmarks.leaderboard.shards import merge_leaderboards
    from dcqcn_gym.runs.claim import claim

    need_scipy()
    with claim(out, "bench run"):
        _print(merge_leaderboards(shares, out))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def resume(out: Out, jobs: Jobs = None, dask: Dask = None, quiet: Quiet = False) -> None:
    """Make the runs of a leaderboard that are missing or unfinished, and print the ranking."""
    from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
    from dcqcn_gym.benchmarks.leaderboard.ranking import need_scipy
    from dcqcn_gym.runs.claim import claim

    board = open_leaderboard(out)
    if board.share == (0, 1):
        need_scipy()
    with claim(out, "bench run"):
        _carry_out(board, jobs, quiet, dask)


def _carry_out(board: Leaderboard, jobs: int | None, quiet: bool, dask: str | None = None) -> None:
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
        typer.echo(f"error: {len(failed)} runs failed; their entries are incomplete", err=True)
        raise typer.Exit(2)


def status(
    out: Out,
    cost: Annotated[
        bool, typer.Option("--cost", help="CPU minutes instead; writes DIR/cost.json.")
    ] = False,
    serial: Annotated[
        Path | None,
        typer.Option(help="With --cost: the same leaderboard by one worker, for the efficiency."),
    ] = None,
) -> None:
    """Say how many runs of a leaderboard are finished, entry by entry, or what they cost."""
    from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard

    board = open_leaderboard(out)
    if cost or serial is not None:
        _print_cost(board, serial)
    else:
        _print_progress(board)


def _print_progress(board: Leaderboard) -> None:
    from dcqcn_gym.benchmarks.leaderboard.results import progress_table
    from dcqcn_gym.runs.table import print_tables

    print_tables([progress_table(board)])


def _print_cost(board: Leaderboard, serial: Path | None) -> None:
    from dcqcn_gym.benchmarks.leaderboard.cost import (
        campaigns,
        committed_cost,
        cost_tables,
        efficiency,
        write_cost,
    )
    from dcqcn_gym.runs.table import print_tables

    print_tables(cost_tables(committed_cost(board) or write_cost(board), campaigns(board.out)))
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
    """Print the ranking; write DIR/results.json and DIR/leaderboard.md from the logs.

    What was read of a log is kept in DIR/read, so that only new logs are read the next time.
    """
    from dcqcn_gym.benchmarks.leaderboard.committed import RUNS_FILE
    from dcqcn_gym.benchmarks.leaderboard.protocol import cut, open_leaderboard
    from dcqcn_gym.core.errors import RunError
    from dcqcn_gym.core.packed import PACKED

    if not (out / "runs").is_dir() and (out / (RUNS_FILE + PACKED)).exists():
        raise RunError(
            f"{out} holds a leaderboard without its logs, as bench keep writes it; its ranking is "
            f"{out / 'leaderboard.md'}, and bench site {out} makes the pages"
        )
    _print(cut(open_leaderboard(out), repetitions), jobs)


def _print(board: Leaderboard, jobs: int | None = None) -> None:
    from dcqcn_gym.benchmarks.leaderboard.results import write_results
    from dcqcn_gym.runs.table import print_tables

    tables, notes = write_results(board, jobs)
    print_tables(tables)
    for note in notes:
        typer.echo(note, err=True)
    typer.echo(
        f"results: {board.out / 'results.json'}\ntable: {board.out / 'leaderboard.md'}", err=True
    )


def site(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of leaderboards, or of submissions."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the pages.")],
    day: Annotated[
        str | None,
        typer.Option(help="Day for the changelog of entries, YYYY-MM-DD; default: today."),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The maintainers' verdicts on submissions; default: all are self-reported.",
        ),
    ] = None,
) -> None:
    """Write the static site of some leaderboards from their results.json alone.

    Leaderboards of one suite become one ranking; a submission at fault is left out. The folder
    remembers its entries: what a later build adds, changes or leaves out is listed in the changelog
    of entries.
    """
    from datetime import datetime, timezone

    from dcqcn_gym.benchmarks.leaderboard.site.pages import write_site
    from dcqcn_gym.benchmarks.leaderboard.verification import checked_date

    today = datetime.now(timezone.utc).date().isoformat()
    page = write_site(
        results, out, today if day is None else checked_date(day), verdicts,
        lambda why: typer.echo(f"left out: {why}", err=True),
    )  # fmt: skip
    typer.echo(f"site: {page}", err=True)


def suites() -> None:
    """List the suites: scenarios, repetitions, budget, digest."""
    from dcqcn_gym.benchmarks.leaderboard.suite import load_suite, suite_names
    from dcqcn_gym.runs.table import Table, print_tables

    entries = []
    for suite in map(load_suite, suite_names()):
        file = suite.file
        size = f"{len(file.scenarios)} x {file.repetitions} x {file.intervals}"
        entries.append((file.name, size, suite.digest[:12], file.description))
    columns = ("suite", "scenarios x repetitions x intervals", "digest", "what it is for")
    print_tables([Table(columns, entries, "suites", words=4)])
