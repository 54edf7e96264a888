"""`dcqcn-gym report`: rebuild the page of a run from its logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import BinsOption, CurvesOption


def report(
    directory: Annotated[Path, typer.Argument(help="Directory of a `tune` run.", metavar="DIR")],
    bins: BinsOption = None,
    fct_cdf: CurvesOption = False,
) -> None:
    """Rebuild DIR/report.html from the event log, however far the run came."""
    from dcqcn_gym.core.statistics import paper_bins
    from dcqcn_gym.report import build_report

    if bins is not None:
        paper_bins(bins)
    typer.echo(build_report(directory, bins=bins, curves=fct_cdf))
