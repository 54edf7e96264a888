"""Keep results of ``paper run``, and write the pages of all papers from what is kept. ::

python tools/paper_pages.py runs/papers/NAME/quick --readme README.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.benchmarks.papers.committed import (
    commit_results,
    committed_checks,
    committed_results,
)
from dcqcn_gym.benchmarks.papers.page import by_paper, write_pages
from dcqcn_gym.benchmarks.papers.ten_minutes import write_ten_minutes
from dcqcn_gym.report.markdown_page import insert
from dcqcn_gym.runs.command_line import run_command


def main(
    results: Annotated[list[Path] | None, typer.Argument(help="Folders of paper run.")] = None,
    keep: Annotated[Path, typer.Option(help="Where results are kept.")] = Path(
        "benchmarks/papers/results"
    ),
    docs: Annotated[Path, typer.Option(help="Where the pages are.")] = Path("docs/measured/papers"),
    readme: Annotated[
        Path | None, typer.Option(help="A page whose table of all papers is written too.")
    ] = None,
) -> None:
    """Keep results, and write the page of every paper."""
    for folder in results or ():
        typer.echo(commit_results(folder, keep))
    found = committed_results(keep)
    checks = committed_checks(keep)
    for path in write_pages(docs, found, checks):
        typer.echo(path)
    path, stale = write_ten_minutes(docs, found, checks)
    typer.echo(path)
    for words in stale:
        typer.echo(f"{path}: the prose is out of date: {words}", err=True)
    if readme is not None:
        insert(readme, "papers", by_paper(found, docs.as_posix()).markdown())
        typer.echo(readme)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    app.command()(main)
    run_command(app, sys.argv[1:])
