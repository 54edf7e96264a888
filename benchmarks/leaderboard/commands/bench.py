"""`dcqcn-gym bench ...`: suites of scenarios, the leaderboard, and entries of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import DeadlineOption, ForceOption, JobsOption, OutOption, QuietOption
from dcqcn_gym.runs.tracking import TrackOption, check_trackers, track

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
    from dcqcn_gym.benchmarks.leaderboard.verification import Verification


app = typer.Typer(name="bench", help="Run tuners on a suite of scenarios, and rank them.",
                  no_args_is_help=True)  # fmt: skip

_SaltFile = Annotated[
    Path, typer.Option(help="The file of the salt; keep it out of the repository.")
]
_Board = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a leaderboard.")]


@app.command()
def run(
    out: OutOption,
    suite: Annotated[
        str | None, typer.Argument(help="A suite's name, see bench suites, or its folder.")
    ] = None,
    tuners: Annotated[
        str | None, typer.Option(help="Entries: TUNER or TUNER@SCHEME, separated by commas.")
    ] = None,
    slow: Annotated[
        str,
        typer.Option(help="Entries that need more than 20 ms a decision: fewer runs, no rank."),
    ] = "",
    repetitions: Annotated[
        int | None, typer.Option(min=1, max=999, help="Runs per scenario; default: the suite's.")
    ] = None,
    jobs: JobsOption = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    trackers: TrackOption = None,
) -> None:
    """Run tuners on a suite, beside the default setting, and print the ranking.

    Every entry meets the same traffic. The same command continues what is unfinished in OUT, other
    tuners are added to it, and without SUITE and --tuners the entries that are there go on.

    Example: `dcqcn-gym bench run smoke --tuners keeper --out runs/smoke`
    """
    from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard, start_leaderboard

    if (suite is None) != (tuners is None) or (suite is None and (slow or repetitions or force)):
        raise ConfigError(
            "give SUITE and --tuners; or neither, and no option of them, to continue the "
            f"leaderboard in {out}"
        )
    check_trackers(trackers)
    _need_logs(out, "give another --out")
    with claim(out, "bench run"):
        if suite is None or tuners is None:
            board = open_leaderboard(out).check_code()
        else:
            board = start_leaderboard(
                suite, _words(tuners), out, slow=_words(slow), repetitions=repetitions, force=force,
            )  # fmt: skip
        _carry_out(board, jobs, quiet, dask)
    track(out, trackers)


def _words(text: str) -> list[str]:
    found = [word.strip() for word in text.split(",") if word.strip()]
    for word in found:
        if found.count(word) > 1:
            raise ConfigError(f"{word!r} stands twice in {text!r}; an entry runs once")
    return found


def _need_logs(folder: Path, advice: str) -> None:
    """Raise RunError for a leaderboard without its logs, as it is committed."""
    from dcqcn_gym.benchmarks.leaderboard.committed import RUNS_FILE
    from dcqcn_gym.core.compressed_files import packed_beside

    if not (folder / "runs").is_dir() and packed_beside(folder / RUNS_FILE):
        raise RunError(
            f"{folder} holds a leaderboard without its logs, as it is committed; {advice}"
        )


def _carry_out(board: Leaderboard, jobs: int | None, quiet: bool, dask: str | None = None) -> None:
    from dcqcn_gym.runs.progress import open_progress

    go_on = f"finished runs are stored: dcqcn-gym bench run --out {board.out} continues"
    with interruptible(go_on), open_progress(quiet=quiet) as progress:
        if dask is None:
            failed = board.carry_out(workers=jobs, progress=progress)
        else:
            from dcqcn_gym.benchmarks.leaderboard.dask_workers import dask_executor

            with dask_executor(dask, board.out) as (executor, at_once):
                failed = board.carry_out(workers=at_once, executor=executor, progress=progress)
    for path, error in failed.items():
        typer.echo(f"{path.parent.parent.name} on {path.parent.name}: {error}", err=True)
    _print(board, jobs)
    if failed:
        typer.echo(f"error: {len(failed)} runs failed; their entries are incomplete", err=True)
        raise typer.Exit(2)


@app.command()
def status(board: _Board) -> None:
    """Say how many runs of a leaderboard are finished, entry by entry.

    Example: `dcqcn-gym bench status runs/smoke`
    """
    from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
    from dcqcn_gym.benchmarks.leaderboard.results import progress_table
    from dcqcn_gym.runs.table import print_tables

    print_tables([progress_table(open_leaderboard(board))])


@app.command()
def report(
    board: _Board,
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first so many of every scenario; default: all."),
    ] = None,
    jobs: JobsOption = None,
) -> None:
    """Print the ranking; write DIR/results.json and DIR/leaderboard.md from the logs.

    What was read of a log is stored in DIR/read, so that only new logs are read the next time.

    Example: `dcqcn-gym bench report runs/smoke`
    """
    from dcqcn_gym.benchmarks.leaderboard.protocol import cut, open_leaderboard

    ranking = board / "leaderboard.md"
    _need_logs(board, f"its ranking is {ranking}, and bench site {board} makes the pages")
    _print(cut(open_leaderboard(board), repetitions), jobs)


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
    day: Annotated[
        str | None,
        typer.Option(help="Day for the changelog of entries, YYYY-MM-DD; default: today."),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Verdicts of bench verify on submissions; default: all are self-reported.",
        ),
    ] = None,
) -> None:
    """Write the static site of some leaderboards from their results.json alone.

    Leaderboards of one suite become one ranking; a submission at fault is left out. The folder
    remembers its entries: what a later build adds, changes or leaves out is listed in the changelog
    of entries.

    Example: `dcqcn-gym bench site runs/smoke --out site`
    """
    from datetime import datetime, timezone

    from dcqcn_gym.benchmarks.leaderboard.site.pages import write_site
    from dcqcn_gym.benchmarks.leaderboard.verification import checked_date

    if verdicts is not None and not verdicts.is_dir():
        raise ConfigError(f"--verdicts {verdicts}: no such folder")
    today = datetime.now(timezone.utc).date().isoformat()
    page = write_site(
        results, out, today if day is None else checked_date(day), verdicts,
        lambda why: typer.echo(f"left out: {why}", err=True),
    )  # fmt: skip
    typer.echo(f"site: {page}", err=True)


@app.command()
def suites() -> None:
    """List the suites: scenarios, repetitions, budget, digest.

    Example: `dcqcn-gym bench suites`
    """
    from dcqcn_gym.benchmarks.leaderboard.suite import load_suite, suite_names
    from dcqcn_gym.runs.table import Table, print_tables

    entries = []
    for suite in map(load_suite, suite_names()):
        file = suite.file
        size = f"{len(file.scenarios)} x {file.repetitions} x {file.intervals}"
        entries.append((file.name, size, suite.digest[:12], file.description))
    columns = ("suite", "scenarios x repetitions x intervals", "digest", "what it is for")
    print_tables([Table(columns, entries, "suites", words=4)])


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder; its name counts.")],
) -> None:
    """Write a package with a tuner that works, its test and the way to the leaderboard.

    Example: `dcqcn-gym bench init my-entry`
    """
    from dcqcn_gym.benchmarks.leaderboard.new_entry import write_entry
    from dcqcn_gym.benchmarks.leaderboard.tuner_host import sandbox_problem

    if (problem := sandbox_problem()) is not None:
        typer.echo(f"{problem}; bench verify will say self-reported", err=True)
    for path in write_entry(folder):
        typer.echo(f"written: {path}", err=True)


@app.command()
def submit(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a finished leaderboard.")
    ],
    tuner: Annotated[str, typer.Option(help="The entry: its name, or its tuner's.")],
    out: OutOption,
    author: Annotated[list[str], typer.Option(help="Who made it; repeatable.")],
    licence: Annotated[str, typer.Option(help="Licence of the code, such as MIT.")],
    category: Annotated[str, typer.Option(help="static, online, pre-trained or oracle.")],
    link: Annotated[str, typer.Option(help="Where the code lives: https://...")] = "",
    training_intervals: Annotated[
        int, typer.Option(min=0, help="Monitor intervals that it learned for before.")
    ] = 0,
    training_data: Annotated[str, typer.Option(help="What it learned from.")] = "none",
    wheel: Annotated[
        Path | None, typer.Option(help="The package's wheel, where it is installed as editable.")
    ] = None,
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
    from dcqcn_gym.benchmarks.leaderboard.submit import Author, submit

    words = Author(author, licence, category, link, training_intervals, training_data)
    folder = submit(open_leaderboard(run), tuner, out, words, wheel=wheel, include=include or ())
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

    from dcqcn_gym.benchmarks.leaderboard.season import check_salt
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
    for name, score in found.scores.items():
        typer.echo(f"S {name}: {score['value']:+.3f} [{score['low']:+.3f}, {score['high']:+.3f}]")
    for name, of in found.beside.items():
        typer.echo(f"beside, on fresh seeds: {name} S {of['value']:+.3f}, harm {of['harm']:.0%}")
    for one in found.findings:
        typer.echo(f"{one.name}: {one.text}")
    stored = (
        "not stored; --verdicts FOLDER does, for bench site"
        if verdicts is None
        else f"stored in {verdicts}"
    )
    typer.echo(f"verdict: {stored}", err=True)


@app.command()
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

    Example: `dcqcn-gym bench keep runs/smoke --out kept`
    """
    from dcqcn_gym.benchmarks.leaderboard.committed import ranking_text, write_committed
    from dcqcn_gym.benchmarks.leaderboard.protocol import cut, open_leaderboard
    from dcqcn_gym.report.markdown_page import insert

    for name in write_committed(cut(open_leaderboard(board), repetitions), out, jobs):
        typer.echo(f"left out, runs are missing: {name}", err=True)
    if write is not None:
        insert(write, f"leaderboard {open_leaderboard(out).suite.file.name}", ranking_text(out))
    typer.echo(f"kept: {out}", err=True)


@app.command()
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

    Example: `dcqcn-gym bench rerun kept`
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


@app.command()
def freeze(
    suite: Annotated[str, typer.Argument(help="A suite, by name or folder.")],
    tuners: Annotated[str, typer.Option(help="Built-in entries, separated by commas.")],
    salt_file: _SaltFile,
    out: OutOption,
    submission: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="An entry of others; repeatable.")
    ] = None,
    slow: Annotated[str, typer.Option(help="Entries that run less often, without a rank.")] = "",
    repetitions: Annotated[int | None, typer.Option(min=1, help="Default: the suite's.")] = None,
) -> None:
    """Freeze the entries of a season; draw its salt and write the SHA-256, to be published.

    Example: `dcqcn-gym bench freeze smoke --tuners keeper --salt-file salt.txt --out season`
    """
    from dcqcn_gym.benchmarks.leaderboard.season import SEASON_FILE, freeze

    found = freeze(suite, _words(tuners), submission or [], out, salt_file, slow=_words(slow),
                   repetitions=repetitions)  # fmt: skip
    typer.echo(f"salt, secret: {salt_file}", err=True)
    typer.echo(f"to be published: {out / SEASON_FILE} (SHA-256 {found.salt_sha256})", err=True)


@app.command()
def season(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A frozen season.")],
    salt_file: _SaltFile,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Open a season: run every entry on the traffic of its salt, rank them, publish the salt.

    The same command goes on after an interruption.

    Example: `dcqcn-gym bench season season --salt-file salt.txt`
    """
    from dcqcn_gym.benchmarks.leaderboard.season import run_season
    from dcqcn_gym.runs.progress import open_progress
    from dcqcn_gym.runs.table import print_tables

    with (
        claim(folder, "season"),
        interruptible("finished runs are stored: the same command goes on"),
        open_progress(quiet=quiet) as progress,
    ):
        tables, remarks = run_season(folder, salt_file, jobs, progress=progress)
    print_tables(tables)
    for remark in remarks:
        typer.echo(remark, err=True)
