"""`dcqcn-gym report`: rebuild the page of a run from its logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import BinsOption, CurvesOption


def report(
    directories: Annotated[
        list[Path], typer.Argument(help="Directory of a `tune` run, or of several.", metavar="DIR")
    ],
    bins: BinsOption = None,
    fct_cdf: CurvesOption = False,
) -> None:
    """Rebuild DIR/report.html from the event log, however far the run came.

    Several runs on the same traffic are then shown in one table.

    Example: `dcqcn-gym report runs/keeper`
    """
    from dcqcn_gym.core.statistics import paper_bins
    from dcqcn_gym.report import build_report
    from dcqcn_gym.report.data import load_report_data
    from dcqcn_gym.report.runs_table import runs_table
    from dcqcn_gym.runs.table import print_tables

    if bins is not None:
        paper_bins(bins)
    pages = [build_report(directory, bins=bins, curves=fct_cdf) for directory in directories]
    if len(directories) > 1:
        print_tables([runs_table([load_report_data(one) for one in directories])])
    typer.echo("\n".join(map(str, pages)))
