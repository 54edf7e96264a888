"""The leaderboard as it is committed, its cost, entries taken back, and the final draw."""

from __future__ import annotations

import re
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
    from dcqcn_gym.report.markdown_page import insert

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


def freeze(
    suite: Annotated[str, typer.Argument(help="A suite of protocol 2, by name or folder.")],
    tuners: Annotated[str, typer.Option(help="Built-in entries, separated by commas.")],
    salt_file: _SaltFile,
    out: OutOption,
    submission: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="An entry of others; repeatable.")
    ] = None,
    slow: Annotated[str, typer.Option(help="Entries that run less often, without a rank.")] = "",
    repetitions: Annotated[int | None, typer.Option(min=1, help="Default: the suite's.")] = None,
) -> None:
    """Freeze the entries of a season; draw its salt and write the SHA-256, to be published."""
    from dcqcn_gym.benchmarks.leaderboard.season import SEASON_FILE, freeze

    def words(text: str) -> list[str]:
        return [word.strip() for word in text.split(",") if word.strip()]

    found = freeze(suite, words(tuners), submission or [], out, salt_file, slow=words(slow),
                   repetitions=repetitions)  # fmt: skip
    typer.echo(f"salt, secret: {salt_file}", err=True)
    typer.echo(f"to be published: {out / SEASON_FILE} (SHA-256 {found.salt_sha256})", err=True)


def season(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A frozen season.")],
    salt_file: _SaltFile,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Open a season: run every entry on the traffic of its salt, rank them, tell the salt.

    The same command goes on after an interruption.
    """
    from dcqcn_gym.benchmarks.leaderboard.ranking import need_scipy
    from dcqcn_gym.benchmarks.leaderboard.season import run_season
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress
    from dcqcn_gym.runs.table import print_tables

    need_scipy()
    with (
        claim(folder, "season"),
        interruptible("finished runs are stored: the same command goes on"),
        open_progress(quiet=quiet) as progress,
    ):
        tables, remarks = run_season(folder, salt_file, jobs, progress=progress)
    print_tables(tables)
    for remark in remarks:
        typer.echo(remark, err=True)


def pick(
    suite: Annotated[str, typer.Argument(help="The suite, whose name is its salt.")],
    candidates: Annotated[int, typer.Option(min=1, help="Scenarios that are drawn.")],
    count: Annotated[int, typer.Option(min=1, help="Scenarios that are kept.")],
    jobs: JobsOption = None,
) -> None:
    """Keep, of many drawn scenarios, those on which settings differ; the code has the rule."""
    from dcqcn_gym.benchmarks.leaderboard.picked import PICKED_FILE, write_picked
    from dcqcn_gym.runs.pool import worker_pool

    with worker_pool(jobs) as pool:
        found = write_picked(suite, candidates, count, pool)
    typer.echo(f"{found}\nwritten: {PICKED_FILE}")


def operating(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A leaderboard's results.")],
    draws: Annotated[int, typer.Option(min=10, help="Simulated leaderboards of each kind.")] = 400,
) -> None:
    """Print what ranks and tiers find, and how often they err, simulated from real runs."""
    from dcqcn_gym.benchmarks.leaderboard.operating import operating_tables
    from dcqcn_gym.runs.table import print_tables

    print_tables(operating_tables(folder, draws))


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
    commitment: Annotated[
        str, typer.Argument(help="The published file, or the SHA-256 of the salt alone.")
    ],
    salt_file: _SaltFile,
    out: OutOption,
) -> None:
    """Check a salt against its commitment and write the suite of the final draw.

    Of a SHA-256 alone: 24 scenarios of the second generation, none without differences.
    """
    from dcqcn_gym.benchmarks.leaderboard.final import reveal, reveal_by_digest

    alone = re.fullmatch("[0-9a-f]{64}", commitment) is not None
    made = (
        reveal_by_digest(commitment, salt_file, out)
        if alone
        else reveal(Path(commitment), salt_file, out)
    )
    typer.echo(f"suite: {made}", err=True)
