"""`dcqcn-gym report`: rebuild the page of a run from its logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import BinsOption, CurvesOption
from dcqcn_gym.runs.tracking import TrackOption, check_trackers, track


def report(
    directories: Annotated[
        list[Path], typer.Argument(help="Directory of a `tune` run, or of several.", metavar="DIR")
    ],
    bins: BinsOption = None,
    fct_cdf: CurvesOption = False,
    trackers: TrackOption = None,
) -> None:
    """Rebuild DIR/report.html from the event log, however far the run came.

    Several runs on the same traffic are then shown in one table. --track exports every log below
    DIR; a folder of compare, train or bench run has no such page, and is exported alone.

    Example: `dcqcn-gym report runs/keeper`
    """
    from dcqcn_gym.core.statistics import paper_bins
    from dcqcn_gym.report import build_report
    from dcqcn_gym.report.data import load_report_data
    from dcqcn_gym.report.runs_table import runs_table
    from dcqcn_gym.runs.table import print_tables

    if bins is not None:
        paper_bins(bins)
    check_trackers(trackers)
    shown = [one for one in directories if not trackers or (one / "run.jsonl").exists()]
    pages = [build_report(directory, bins=bins, curves=fct_cdf) for directory in shown]
    if len(shown) > 1:
        print_tables([runs_table([load_report_data(one) for one in shown])])
    for page in pages:
        typer.echo(page)
    for directory in directories:
        track(directory, trackers)
