"""`dcqcn-gym bench ...`: suites of scenarios, the leaderboard, and entries of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import (
    DeadlineOption,
    ForceOption,
    JobsOption,
    OptionalOut,
    OutOption,
    QuietOption,
    names_in,
)
from dcqcn_gym.runs.tracking import TrackOption, check_trackers, track

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
    from dcqcn_gym.benchmarks.leaderboard.verification import Verification


app = typer.Typer(name="bench", help="Run tuners on a suite of scenarios, and rank them.",
                  no_args_is_help=True)  # fmt: skip


@app.command()
def run(
    suite: Annotated[
        str | None, typer.Argument(help="A suite's name, or its folder: configs/suites.")
    ] = None,
    out: OptionalOut = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Run an entry of the committed leaderboard DIR again, and compare."
        ),
    ] = None,
    tuners: Annotated[
        str | None, typer.Option(help="Entries: TUNER or TUNER@SCHEME, separated by commas.")
    ] = None,
    slow: Annotated[
        str,
        typer.Option(help="Entries that need more than 20 ms a decision: fewer runs, no rank."),
    ] = "",
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, max=999, help="Runs per scenario; default: OUT's, or the suite's."),
    ] = None,
    salt_file: Annotated[
        Path | None,
        typer.Option(help="A season: traffic that follows from this file's salt, drawn if new."),
    ] = None,
    scenarios: Annotated[
        int | None,
        typer.Option(min=12, max=999, help="The salt draws so many into SUITE, a new folder."),
    ] = None,
    submission: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="An entry of others, in the sandbox; repeatable."),
    ] = None,
    jobs: JobsOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    trackers: TrackOption = None,
) -> None:
    """Run tuners on a suite, beside the default setting, and print the ranking.

    Every entry meets the same traffic. The same command continues what is unfinished in OUT, other
    tuners and more repetitions are added to it, and without SUITE and --tuners what is there goes
    on. Ranks come from seasons alone: the salt stands in the results afterwards. With --scenarios
    nobody knew its scenarios either; of those on which held settings change nothing, others are
    drawn.

    With --check, the first repetition of an entry of a committed leaderboard is made again
    (--tuners names it; default: one that the version draws). Exit status 2 if a log differs by a
    byte: dynamics have changed, and the leaderboard has to be made anew.

    Example: `dcqcn-gym bench run smoke --tuners keeper --out runs/smoke`
    """
    from dcqcn_gym.benchmarks.leaderboard.protocol import copy_code, open_leaderboard, planned
    from dcqcn_gym.benchmarks.leaderboard.salted_choices import salt_in
    from dcqcn_gym.benchmarks.leaderboard.season import season_suite
    from dcqcn_gym.runs.study import open_study

    others = submission or []
    if (out is None) == (check is None):
        raise ConfigError("expected --out OUT, the leaderboard's folder, or --check DIR")
    if check is not None:
        if suite or slow or repetitions or salt_file or scenarios or others or force or trackers:
            raise ConfigError("--check takes --tuners, --jobs and --quiet alone")
        _rerun(check, tuners, jobs, quiet=quiet)
        return
    assert out is not None
    more = slow or repetitions or force or salt_file or scenarios or others
    if (suite is None) != (tuners is None) or (suite is None and more):
        raise ConfigError(
            "give SUITE and --tuners; or neither, and no option of them, to continue the "
            f"leaderboard in {out}"
        )
    check_trackers(trackers)
    _need_logs(out, "give another --out")
    if suite is None or tuners is None:
        board = open_leaderboard(out)
    else:
        salt = "" if salt_file is None else salt_in(salt_file)
        if scenarios is not None:
            season_suite(Path(suite), salt, scenarios, quiet=quiet)
        board = planned(
            suite, names_in(tuners, "--tuners"), out,
            slow=names_in(slow, "--slow") if slow else (), repetitions=repetitions,
            salt=salt, submissions=others, force=force,
        )  # fmt: skip
    with open_study(board.study(), out, force=force, quiet=quiet) as progress:
        copy_code(board, others)
        failed = board.carry_out(workers=jobs, progress=progress)
        for path, error in failed.items():
            typer.echo(f"{path.parent.parent.name} on {path.parent.name}: {error}", err=True)
        _print(board, jobs)
    track(out, trackers)
    if failed:
        typer.echo(f"error: {len(failed)} runs failed; their entries are incomplete", err=True)
        raise typer.Exit(2)


def _need_logs(folder: Path, advice: str) -> None:
    """Raise RunError for a leaderboard without its logs, as it is committed."""
    from dcqcn_gym.benchmarks.leaderboard.committed import RUNS_FILE
    from dcqcn_gym.core.compressed_files import packed_beside

    if not (folder / "runs").is_dir() and packed_beside(folder / RUNS_FILE):
        raise RunError(
            f"{folder} holds a leaderboard without its logs, as it is committed; {advice}"
        )


@app.command()
def report(
    board: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a leaderboard.")],
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many of every scenario; default: all."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write what is committed there; replaces what it has."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --keep: the ranking goes into this page as well."),
    ] = None,
    jobs: JobsOption = None,
) -> None:
    """Print the ranking and the runs that are missing; write it from the logs into DIR.

    The files are results.json, leaderboard.md and runs.csv. What --keep writes are results,
    settings and digests of the runs, without logs; entries with runs missing are left out and
    named.

    Example: `dcqcn-gym bench report runs/smoke --keep kept`
    """
    from dcqcn_gym.benchmarks.leaderboard.committed import ranking_text, write_committed
    from dcqcn_gym.benchmarks.leaderboard.protocol import cut, open_leaderboard
    from dcqcn_gym.report.markdown_page import insert

    if write is not None and keep is None:
        raise ConfigError("--write FILE needs --keep FOLDER, whose ranking it takes")
    ranking = board / "leaderboard.md"
    _need_logs(board, f"its ranking is {ranking}, and bench site {board} makes the pages")
    found = cut(open_leaderboard(board), repetitions)
    if keep is None:
        _print(found, jobs)
        return
    for name in write_committed(found, keep, jobs):
        typer.echo(f"left out, runs are missing: {name}", err=True)
    if write is not None:
        insert(write, f"leaderboard {found.suite.file.name}", ranking_text(keep))
    typer.echo(f"kept: {keep}", err=True)


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


@app.command()
def site(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of leaderboards, or of submissions."),
    ],
    out: OutOption,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Verdicts of bench verify on submissions, which need one.",
        ),
    ] = None,
) -> None:
    """Write the static site of some leaderboards from their results.json alone.

    A submission stands beside the leaderboard of its suite; without a verdict it is left out.

    Example: `dcqcn-gym bench site runs/smoke --out site`
    """
    from dcqcn_gym.benchmarks.leaderboard.site.pages import write_site

    if verdicts is not None and not verdicts.is_dir():
        raise ConfigError(f"--verdicts {verdicts}: no such folder")
    page = write_site(results, out, verdicts, lambda why: typer.echo(f"left out: {why}", err=True))
    typer.echo(f"site: {page}", err=True)


@app.command()
def submit(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a finished leaderboard.")
    ],
    tuner: Annotated[str, typer.Option(help="The entry: its name, or its tuner's.")],
    out: OutOption,
    author: Annotated[list[str], typer.Option(help="Who made it; repeatable.")],
    licence: Annotated[str, typer.Option(help="Licence of the code, such as MIT.")],
    category: Annotated[
        str, typer.Option(help="static, online, pre-trained, simulating or oracle.")
    ],
    link: Annotated[str, typer.Option(help="Where the code lives: https://...")] = "",
    training_intervals: Annotated[
        int, typer.Option(min=0, help="Monitor intervals that it learned for before.")
    ] = 0,
    training_data: Annotated[str, typer.Option(help="What it learned from.")] = "none",
    include: Annotated[
        list[Path] | None,
        typer.Option(help="File that the plug-in reads; repeatable."),
    ] = None,
) -> None:
    """Write a finished entry as a folder to hand in: code, logs, result, hashes.

    Example: `dcqcn-gym bench submit runs/smoke --tuner keeper --category online --author me
    --licence MIT --out x`
    """
    from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
    from dcqcn_gym.benchmarks.leaderboard.submit import submit

    folder = submit(
        open_leaderboard(run), tuner, out, include=include or (), authors=author, licence=licence,
        category=category, link=link,
        training={"intervals": training_intervals, "data": training_data},
    )  # fmt: skip
    typer.echo(f"submission: {folder}", err=True)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a submission.")],
    date: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="Date of the verdict.")],
    salt: Annotated[
        str | None, typer.Option(help="What fresh seeds follow from; default: a new secret.")
    ] = None,
    fresh: Annotated[int, typer.Option(min=1, max=99, help="Repetitions on fresh seeds.")] = 3,
    suite: Annotated[
        str | None, typer.Option(help="Folder of the suite, if it is not one of the package.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder for the runs, to go on later; default: a new one.")
    ] = None,
    tuner_deadline: DeadlineOption = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the verdict, which bench site reads; default: print it only.",
        ),
    ] = None,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Check a submission, replay its logs, run its plug-in again in a sandbox; give a verdict.

    Exit status 0 for a verified one, 2 for everything else.

    Example: `dcqcn-gym bench verify my-entry --date 2026-01-31`
    """
    import secrets
    import tempfile
    from contextlib import nullcontext

    from dcqcn_gym.benchmarks.leaderboard.salted_choices import check_salt
    from dcqcn_gym.benchmarks.leaderboard.tuner_host import sandbox_problem
    from dcqcn_gym.benchmarks.leaderboard.verify import Verifier
    from dcqcn_gym.runs.pool import worker_pool
    from dcqcn_gym.runs.progress import open_progress

    if (problem := sandbox_problem()) is not None:
        typer.echo(f"{problem}; the verdict on a plug-in will be self-reported", err=True)
    place = tempfile.TemporaryDirectory() if work is None else nullcontext(str(work))
    again = (
        "nothing was written" if work is None else f"the same command with --work {work} goes on"
    )
    with (
        place as used,
        interruptible(again),
        open_progress(quiet=quiet) as progress,
        worker_pool(jobs) as pool,
    ):
        verifier = Verifier(
            Path(used), date, check_salt(salt or secrets.token_hex(16)), fresh, suite,
            60.0 if tuner_deadline is None else tuner_deadline, jobs,
            pool, progress, verdicts=verdicts,
        )  # fmt: skip
        found = verifier.verify(folder)
    _print_verdict(found, verdicts)
    if found.status != "verified":
        raise typer.Exit(2)


def _print_verdict(found: Verification, verdicts: Path | None) -> None:
    from dcqcn_gym.benchmarks.leaderboard.verification import STATUSES

    typer.echo(f"{found.status}: {STATUSES[found.status]}")
    for name, risk in found.risks.items():
        typer.echo(f"R {name}: {risk}")
    for name, of in found.beside.items():
        typer.echo(f"beside, on fresh seeds: {name} R {of.value:+.3f}, harm {of.harm:.0%}")
    for one in found.findings:
        typer.echo(f"{one.name}: {one.text}")
    stored = (
        "not stored; --verdicts FOLDER does, for bench site"
        if verdicts is None
        else f"stored in {verdicts}"
    )
    typer.echo(f"verdict: {stored}", err=True)


def _rerun(kept: Path, tuners: str | None, jobs: int | None, *, quiet: bool) -> None:
    """Make runs of a committed leaderboard again and compare them, byte for byte."""
    import tempfile

    from dcqcn_gym.benchmarks.leaderboard.committed import open_committed, rerun
    from dcqcn_gym.runs.progress import open_progress

    found = open_committed(kept)
    with (
        tempfile.TemporaryDirectory() as place,
        interruptible("nothing was written"),
        open_progress(quiet=quiet) as progress,
    ):
        name, runs, differing = rerun(found, Path(place), tuners, workers=jobs, progress=progress)
    for words in differing[:10]:
        typer.echo(words)
    if differing:
        typer.echo(f"{name}: {len(differing)} of {2 * runs} logs differ", err=True)
        raise typer.Exit(2)
    typer.echo(f"{name}: {2 * runs} logs are those that were kept")
