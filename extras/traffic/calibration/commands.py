"""``dcqcn-gym calibrate``: how far a scenario is from a measured network, and less far."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import OutFileOption, ScenarioOption


def calibrate(
    scenario: ScenarioOption,
    measured: Annotated[
        list[Path],
        typer.Option(
            "--measured",
            help="nccl-tests (text, JSON), perftest, ports' counters over time, a capture of CNPs.",
        ),
    ],
    out: OutFileOption,
) -> None:
    """Fit a scenario's few unknowns to measured times; its answers carry the error that is left.

    Example: `dcqcn-gym calibrate --scenario fabric.toml --measured nccl.txt --out calibrated.toml`
    """
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.extras.traffic.calibration.measured import read_measured
    from dcqcn_gym.extras.traffic.calibration.result import (
        calibrate as fit,
    )
    from dcqcn_gym.extras.traffic.calibration.result import (
        calibrated,
        calibrated_text,
        error_table,
        fitted_table,
    )
    from dcqcn_gym.runs.atomic_file import check_writable, write_atomically
    from dcqcn_gym.runs.table import print_tables

    check_writable(out)
    base = load_scenario(scenario)
    files = read_measured(measured)
    before, after = fit(base, files)
    write_atomically(out, calibrated_text(base, after, files.sources).encode())
    print_tables([fitted_table(after), error_table(before, after)])
    for line in files.tally.lines():
        typer.echo(f"  {line}")
    typer.echo(f"{out}: {calibrated(base, after, files.sources).calibrated}")
