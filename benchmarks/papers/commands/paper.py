"""``dcqcn-gym paper``: figures of papers measured again, and the accuracy of monitors."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from dcqcn_gym.benchmarks.papers.commands.monitors import monitors
from dcqcn_gym.runs.options import ForceOption, JobsOption, OptionalOut, QuietOption

app = typer.Typer(
    name="paper", help="Measure figures and tables of the papers again.", no_args_is_help=True
)


@app.command("list")
def list_rows() -> None:
    """List every figure and table of the papers, what came out, and which can be run.

    Example: `dcqcn-gym paper list`
    """
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


@app.command()
def run(
    figure: Annotated[str, typer.Argument(help="A figure's name, see paper list.")],
    size: Annotated[str, typer.Option(help="smoke, quick or full.")] = "quick",
    out: OptionalOut = None,
    acks: Annotated[
        Literal["control", "data"],
        typer.Option(help="The class of ACKs and CNPs at switches: their own, or their data's."),
    ] = "control",
    jobs: JobsOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a figure, print its table and its verdicts, and draw it.

    OUT is runs/papers/FIGURE/SIZE[-acks] by default. The same command continues what is unfinished
    there.

    Example: `dcqcn-gym paper run fig7 --out runs/fig7`
    """
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


@app.command()
def rerun(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIGURE", help="Default: the two cheapest of each paper."),
    ] = None,
    size: Annotated[str, typer.Option(help="smoke, quick or full.")] = "quick",
    keep: Annotated[
        Path | None, typer.Option(help="Committed results; default: the package's.")
    ] = None,
    out: OptionalOut = None,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Measure figures again and compare with the committed results, byte for byte.

    Exit status 2 if one differs: dynamics have changed, and its results have to be made anew. With
    OUT the same command continues what is unfinished there; without it, all is measured.

    Example: `dcqcn-gym paper rerun fig7 --size quick`
    """
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
            with open_study(study, folder, quiet=quiet) as progress:
                finish(study, folder, workers=jobs, progress=progress)
            found.append(of.compared(folder / RESULTS_FILE, path))
    print_tables([of.table_of_reruns(found)])
    differing = [f"{one.figure}: {cell}" for one in found for cell in one.differing]
    for words in differing[:10]:
        typer.echo(f"differs: {words}", err=True)
    if differing:
        raise typer.Exit(2)


app.command()(monitors)
