"""``dcqcn-gym paper``: figures of papers measured again, and the accuracy of monitors."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from dcqcn_gym.benchmarks.papers.commands.monitors import monitors
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs.options import ForceOption, JobsOption, OptionalOut, QuietOption

app = typer.Typer(
    name="paper", help="Measure figures and tables of the papers again.", no_args_is_help=True
)


@app.command()
def run(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE", help="Default: list all.")
    ] = None,
    size: Annotated[str, typer.Option(help="smoke, quick or full.")] = "quick",
    out: OptionalOut = None,
    acks: Annotated[
        Literal["control", "data"],
        typer.Option(help="The class of ACKs and CNPs at switches: their own, or their data's."),
    ] = "control",
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare with the committed results; default: the cheapest figures."
        ),
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Of --check: committed results; default: the package's.")
    ] = None,
    jobs: JobsOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the figures of the papers and what came out; run FIGUREs, print and draw them.

    A figure is written to OUT, runs/papers/FIGURE/SIZE[-acks] by default. The same command
    continues what is unfinished there. With --check nothing is drawn, results go to OUT/FIGURE if
    OUT is given, and exit status 2 says that one differs by a byte: dynamics have changed, and its
    results have to be made anew.

    Example: `dcqcn-gym paper run fig7 --out runs/fig7`
    """
    if check:
        if acks != "control":
            raise ConfigError("--check compares figures with ACKs in their own class")
        _check(figures or [], size, keep, out, jobs, force=force, quiet=quiet)
    elif not figures:
        _list_figures()
    elif len(figures) > 1 and out is not None:
        raise ConfigError(f"--out {out} takes one figure; {len(figures)} were given")
    for figure in [] if check else figures or []:
        _run(figure, size, out, acks, jobs, force=force, quiet=quiet)


def _list_figures() -> None:
    from rich.console import Console

    from dcqcn_gym.benchmarks.papers.catalog import ROWS, built, results_folder
    from dcqcn_gym.benchmarks.papers.committed import committed_results
    from dcqcn_gym.benchmarks.papers.page import came_out, claims_by_verdict, size_and_cost
    from dcqcn_gym.runs.table import Table, print_tables

    found = committed_results(results_folder())
    rows = [
        (row.name, row.paper, row.title, ", ".join(part for part in row.files if built(part)),
         ", ".join(size_and_cost(*found[part]) for part in row.files if part in found),
         came_out(row, found))
        for row in ROWS
    ]  # fmt: skip
    columns = ("figure or table", "paper", "what it shows", "dcqcn-gym paper run",
               "stored at size (CPU s)", "what came out")  # fmt: skip
    print_tables([Table(columns, rows, words=6)])
    console = Console()
    said = f"{len(ROWS)} figures and tables. {claims_by_verdict(found)}"
    console.print(said, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def _run(
    figure: str, size: str, out: Path | None, acks: str, jobs: int | None, *, force: bool,
    quiet: bool,
) -> None:  # fmt: skip
    from dcqcn_gym.benchmarks.papers import acks as data_acks
    from dcqcn_gym.benchmarks.papers import catalog
    from dcqcn_gym.benchmarks.papers.claims import judge
    from dcqcn_gym.benchmarks.papers.committed import cost_in_words
    from dcqcn_gym.benchmarks.papers.page import claims_table, table_of, write_pictures
    from dcqcn_gym.benchmarks.papers.results import RESULTS_FILE, finish, study_of
    from dcqcn_gym.runs.study import open_study
    from dcqcn_gym.runs.table import print_tables

    found = catalog.figure(figure)
    keep = catalog.results_folder()
    if acks == "data":
        found, keep = data_acks.with_data_acks(found), keep / data_acks.FOLDER
    cost = cost_in_words(keep, found, size)
    if not quiet:
        typer.echo(cost, err=True)
    name = f"{size}-acks" if acks == "data" else size
    folder = Path("runs") / "papers" / found.name / name if out is None else out
    study = study_of(found, size, folder)
    with open_study(study, folder, force=force, quiet=quiet) as progress:
        results = finish(study, folder, workers=jobs, progress=progress)
    pictures = write_pictures(found, results, folder)
    print_tables([table_of(found, results), claims_table(judge(found.claims, results))])
    typer.echo(f"results: {folder / RESULTS_FILE}", err=True)
    for name in pictures:
        typer.echo(f"plot: {folder / name}", err=True)


def _check(
    figures: list[str], size: str, keep: Path | None, out: Path | None, jobs: int | None, *,
    force: bool, quiet: bool,
) -> None:  # fmt: skip
    from dcqcn_gym.benchmarks.papers import rerun as of
    from dcqcn_gym.benchmarks.papers.catalog import figure, results_folder
    from dcqcn_gym.benchmarks.papers.results import RESULTS_FILE, finish, study_of
    from dcqcn_gym.runs.study import open_study
    from dcqcn_gym.runs.table import print_tables

    kept = results_folder() if keep is None else keep
    paths = {name: of.committed(name, size, kept) for name in figures or of.cheapest(kept, size)}
    found = []
    with tempfile.TemporaryDirectory() as place:
        for name, path in paths.items():
            folder = (out or Path(place)) / name
            study = study_of(figure(name), size, folder)
            with open_study(study, folder, force=force, quiet=quiet) as progress:
                finish(study, folder, workers=jobs, progress=progress)
            found.append(of.compared(folder / RESULTS_FILE, path))
    print_tables([of.table_of_reruns(found)])
    differing = [f"{one.figure}: {cell}" for one in found for cell in one.differing]
    for words in differing[:10]:
        typer.echo(f"differs: {words}", err=True)
    if differing:
        raise typer.Exit(2)


app.command()(monitors)
