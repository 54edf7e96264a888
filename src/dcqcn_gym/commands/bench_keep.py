"""``dcqcn-gym bench keep`` and ``rerun``: a leaderboard as committed data, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible

__all__ = ["keep", "rerun"]

Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one per CPU.")]


def keep(
    board: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a leaderboard.")],
    out: Annotated[Path, typer.Option(help="Folder to commit; what it holds is replaced.")],
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many of every scenario; default: all."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Put the ranking into this Markdown file as well."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Write what is committed: results, settings and digests of the runs, without logs.

    Entries with runs missing are left out and named.
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
    kept: Annotated[Path, typer.Argument(metavar="DIR", help="What bench keep wrote.")],
    entry: Annotated[
        str | None, typer.Option(help="Its name; default: one that the version draws.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="The first so many.")] = 1,
    jobs: Jobs = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
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
