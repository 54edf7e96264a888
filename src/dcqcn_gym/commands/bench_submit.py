"""``dcqcn-gym bench submit`` and ``verify``: entries of others on the leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import DeadlineOption, JobsOption, OutOption, QuietOption

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.leaderboard.verification import Verification


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
    """Write a finished entry as a folder to hand in: code, logs, result, hashes."""
    from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
    from dcqcn_gym.benchmarks.leaderboard.submit import Author, submit

    words = Author(author, licence, category, link, training_intervals, training_data)
    folder = submit(open_leaderboard(run), tuner, out, words, wheel=wheel, include=include or ())
    typer.echo(f"submission: {folder}", err=True)


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
    final: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="A final draw to run on as well.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder for the runs, to go on later; default: a new one.")
    ] = None,
    tuner_deadline: DeadlineOption = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the maintainers' verdicts, to keep this one; default: print it.",
        ),
    ] = None,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Check a submission, replay its logs, run its plug-in again in a sandbox; give a verdict.

    Exit status 0 for a verified one, 2 for everything else.
    """
    import secrets
    import tempfile
    from contextlib import nullcontext

    from dcqcn_gym.benchmarks.leaderboard.verify import Verifier
    from dcqcn_gym.runs.pool import worker_pool
    from dcqcn_gym.runs.progress import open_progress

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
            Path(used), date, salt or secrets.token_hex(16), fresh, suite, final,
            60.0 if tuner_deadline is None else tuner_deadline, jobs,
            pool, progress, verdicts=verdicts,
        )  # fmt: skip
        found = verifier.verify(folder)
    _print(found, verdicts)
    if found.status != "verified":
        raise typer.Exit(2)


def _print(found: Verification, verdicts: Path | None) -> None:
    from dcqcn_gym.benchmarks.leaderboard.verification import STATUSES

    typer.echo(f"{found.status}: {STATUSES[found.status]}")
    for name, score in found.scores.items():
        typer.echo(f"S {name}: {score['value']:+.3f} [{score['low']:+.3f}, {score['high']:+.3f}]")
    for one in found.findings:
        typer.echo(f"{one.name}: {one.text}")
    kept = "not kept; maintainers give --verdicts" if verdicts is None else f"kept in {verdicts}"
    typer.echo(f"verdict: {kept}", err=True)
