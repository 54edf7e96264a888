"""The leaderboard as it is committed, its cost, entries taken back, and the final draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import JobsOption, OutFileOption, OutOption, QuietOption

_Board = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a leaderboard.")]
_SaltFile = Annotated[
    Path, typer.Option(help="The file of the salt; keep it out of the repository.")
]


def keep(
    board: _Board,
    out: OutOption,
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many of every scenario; default: all."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Put the ranking into this Markdown file as well."),
    ] = None,
    jobs: JobsOption = None,
) -> None:
    """Write what is committed: results, settings and digests of the runs, without logs.

    What OUT holds is replaced. Entries with runs missing are left out and named.
    """
    from dcqcn_gym.benchmarks.leaderboard.committed import ranking_text, write_committed
    from dcqcn_gym.benchmarks.leaderboard.protocol import cut, open_leaderboard
    from dcqcn_gym.benchmarks.markdown_page import insert

    for name in write_committed(cut(open_leaderboard(board), repetitions), out, jobs):
        typer.echo(f"left out, runs are missing: {name}", err=True)
    if write is not None:
        insert(write, f"leaderboard {open_leaderboard(out).suite.file.name}", ranking_text(out))
    typer.echo(f"kept: {out}", err=True)


def rerun(
    kept: Annotated[Path, typer.Argument(metavar="DIR", help="A committed leaderboard.")],
    entry: Annotated[
        str | None, typer.Option(help="Its name; default: one that the version draws.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="The first so many.")] = 1,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Make runs of a committed leaderboard again and compare them with it, byte for byte.

    Exit status 2 if one differs: dynamics have changed, and the leaderboard has to be made anew.
    """
    import tempfile

    from dcqcn_gym.benchmarks.leaderboard.committed import open_committed, rerun
    from dcqcn_gym.runs.progress import open_progress

    found = open_committed(kept)
    with (
        tempfile.TemporaryDirectory() as place,
        interruptible("nothing was written"),
        open_progress(quiet=quiet) as progress,
    ):
        name, runs, differing = rerun(
            found, Path(place), entry, repetitions, workers=jobs, progress=progress
        )
    for words in differing[:10]:
        typer.echo(words)
    if differing:
        typer.echo(f"{name}: {len(differing)} of {2 * runs} logs differ", err=True)
        raise typer.Exit(2)
    typer.echo(f"{name}: {2 * runs} logs are those that were kept")


def cost(
    board: _Board,
    serial: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The same leaderboard by one worker, for the parallel efficiency."
        ),
    ] = None,
) -> None:
    """Print the CPU minutes of a leaderboard, entry by entry; writes DIR/cost.json."""
    from dcqcn_gym.benchmarks.leaderboard.cost import (
        campaigns,
        committed_cost,
        cost_tables,
        efficiency,
        write_cost,
    )
    from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
    from dcqcn_gym.runs.table import print_tables

    found = open_leaderboard(board)
    print_tables(cost_tables(committed_cost(found) or write_cost(found), campaigns(board)))
    if serial is not None:
        typer.echo(f"parallel efficiency: {efficiency(board, serial):.2f}")


def withdraw(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a submission.")],
    date: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="Date of the verdict.")],
    reason: Annotated[str, typer.Option(help="One sentence that the leaderboard shows.")],
    verdicts: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the verdicts.")],
) -> None:
    """Take an entry back: its folder stays, its status becomes withdrawn."""
    from dcqcn_gym.benchmarks.leaderboard.verification import STATUSES
    from dcqcn_gym.benchmarks.leaderboard.verify import withdraw

    found = withdraw(folder, verdicts, date, reason)
    typer.echo(f"{found.status}: {STATUSES[found.status]}")
    typer.echo(f"verdict: kept in {verdicts}", err=True)


def commit(salt_file: _SaltFile, out: OutFileOption) -> None:
    """Choose the secret salt of a final draw; write the commitment to it, to be published."""
    from dcqcn_gym.benchmarks.leaderboard.final import commit

    found = commit(salt_file, out)
    typer.echo(f"salt, secret: {salt_file}", err=True)
    typer.echo(f"commitment, to be published: {out} (SHA-256 {found.salt_sha256})", err=True)


def reveal(
    commitment: Annotated[Path, typer.Argument(help="The published file.")],
    salt_file: _SaltFile,
    out: OutOption,
) -> None:
    """Check a salt against its commitment and write the suite of the final draw."""
    from dcqcn_gym.benchmarks.leaderboard.final import reveal

    typer.echo(f"suite: {reveal(commitment, salt_file, out)}", err=True)
