"""Results of the papers' figures: measured again, kept, and confirmed on ns-3."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import JobsOption, QuietOption

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.papers.rerun import Rerun


def rerun(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIGURE", help="Default: the two cheapest of each paper."),
    ] = None,
    size: Annotated[str, typer.Option(help="smoke, quick or full.")] = "quick",
    keep: Annotated[Path | None, typer.Option(help="Default: what the package keeps.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the new results, so that an interrupted rerun goes on with what is "
            "there; default: none, all is measured."
        ),
    ] = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the table into this Markdown file.")
    ] = None,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Measure figures again and compare with what is kept, byte for byte.

    Exit status 2 if one differs: dynamics have changed, and its results have to be made anew.
    """
    from dcqcn_gym.benchmarks.papers.catalog import results_folder
    from dcqcn_gym.benchmarks.papers.rerun import cheapest, table_of_reruns
    from dcqcn_gym.report.markdown_page import check_page, insert
    from dcqcn_gym.runs.table import print_tables

    check_page(write, "papers rerun")
    kept = results_folder() if keep is None else keep
    found = _again(figures or cheapest(kept, size), size, kept, out, jobs, quiet)
    table = table_of_reruns(found)
    print_tables([table])
    if _tell_what_differs(found):
        raise typer.Exit(2)
    if write is not None:
        insert(write, "papers rerun", f"{table.title}:\n\n{table.markdown()}")
        typer.echo(write, err=True)


def _tell_what_differs(found: list[Rerun]) -> bool:
    """Name the first ten cells whose results differ; return whether there are any."""
    differing = [f"{one.figure}: {cell}" for one in found for cell in one.differing]
    for words in differing[:10]:
        typer.echo(f"differs: {words}", err=True)
    return bool(differing)


def _again(
    names: list[str], size: str, kept: Path, out: Path | None, jobs: int | None, quiet: bool
) -> list[Rerun]:
    """Run figures again in ``out``, or in a folder that goes."""
    from dcqcn_gym.benchmarks.papers.rerun import rerun
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress

    go_on = "nothing was written; with --out a folder keeps what is finished"
    if out is not None:
        go_on = f"{out} holds what is finished: the same command continues it"
    with (
        tempfile.TemporaryDirectory() as place,
        claim(out or Path(place), "paper rerun"),
        interruptible(go_on),
        open_progress(quiet=quiet) as progress,
    ):
        folder = out or Path(place)
        return [
            rerun(name, size, kept, folder / name, workers=jobs, progress=progress)
            for name in names
        ]


def acc(
    networks: Annotated[
        list[str],
        typer.Argument(metavar="NETWORK", help="Trainings' folders, files, or shipped names."),
    ],
    out: Annotated[Path, typer.Option(help="What was run; the same command continues it.")],
    jobs: JobsOption = None,
) -> None:
    """Choose a network of ACC on held-out traffic; judge it beside SECN1, SECN2 and a curve.

    The rule is in benchmarks/papers/acc_choice.py.
    """
    from dcqcn_gym.benchmarks.papers.acc_choice import choose
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.table import print_tables

    kept = f"{out} holds what is finished: the same command continues it"
    with claim(out, "papers acc"), interruptible(kept):
        tables = choose(networks, out, jobs)
    print_tables(tables)


def pages(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders of paper run whose results are to be kept."),
    ] = None,
    keep: Annotated[
        Path, typer.Option(help="Where results are kept, in a checkout of the project.")
    ] = Path("benchmarks/papers/results"),
    docs: Annotated[Path, typer.Option(help="Where the pages are.")] = Path("docs/papers"),
    readme: Annotated[
        Path | None, typer.Option(help="A page whose table of all papers is written too.")
    ] = None,
) -> None:
    """Keep results, and write the page of every paper from all that are kept."""
    from dcqcn_gym.benchmarks.papers.keep import keep_results, kept_checks, kept_results
    from dcqcn_gym.benchmarks.papers.page import by_paper, write_pages
    from dcqcn_gym.benchmarks.papers.ten_minutes import write_ten_minutes
    from dcqcn_gym.report.markdown_page import insert

    for folder in results or ():
        typer.echo(keep_results(folder, keep))
    found = kept_results(keep)
    checks = kept_checks(keep)
    for path in write_pages(docs, found, checks):
        typer.echo(path)
    path, stale = write_ten_minutes(docs, found, checks)
    typer.echo(path)
    for words in stale:
        typer.echo(f"{path}: the prose is out of date: {words}", err=True)
    if readme is not None:
        insert(readme, "papers", by_paper(found, docs.as_posix()).markdown())
        typer.echo(readme)


def confirm(
    papers: Annotated[
        list[str] | None, typer.Argument(metavar="PAPER", help="Papers; default: all five.")
    ] = None,
    against: Annotated[str, typer.Option(help="The other backend.")] = "ns3",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what was found here, as JSON.")
    ] = None,
) -> None:
    """Run a scaled case of each paper on the native engine and on ns-3; exit 1 if they differ.

    The tuner is in the loop on both, so equal means equal figures and equal decisions.
    """
    from rich.console import Console

    from dcqcn_gym.benchmarks.papers.checks import confirmed_table
    from dcqcn_gym.benchmarks.papers.confirm import CASES, case, write_confirmed
    from dcqcn_gym.benchmarks.papers.confirm import confirm as compared
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.runs.whole_file import check_writable

    if out is not None:
        check_writable(out)
    chosen = [case(paper) for paper in papers] if papers else list(CASES)
    found = []
    with Console(stderr=True).status("") as status:
        for one in chosen:
            status.update(f"{one.paper}: {one.what}, on native and {against}")
            found.append(compared(one, against))
    print_tables([confirmed_table(found)])
    if out is not None:
        write_confirmed(out, found, against)
        typer.echo(out)
    if not all(one.holds for one in found):
        raise typer.Exit(1)
