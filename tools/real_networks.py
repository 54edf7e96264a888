"""Does it hold for real networks? ``python tools/real_networks.py [--write PAGE]``.

Published outputs of nccl-tests and perftest (``tests/data/real-networks``, each with its source)
against the network that their text describes: as it is, calibrated, and calibrated on every other
size and judged on the rest. About half a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.traffic.calibration.fitting import Fit, counts, fit, simulated
from dcqcn_gym.extras.traffic.calibration.measured import Measurement, read_measured
from dcqcn_gym.extras.traffic.calibration.replay import Replay
from dcqcn_gym.extras.traffic.calibration.result import calibrate, error_table, error_text
from dcqcn_gym.report.markdown_page import check_page, insert
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.table import Table

__all__ = ["FOLDER", "NAMES", "Published", "app", "published"]

FOLDER = Path(__file__).parents[1] / "tests/data/real-networks"
NAMES = ("gpu-operator-100g", "connectx-5", "h100-400g", "alps-2", "alps-8")
app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Published:
    """One published measurement: the scenario as it was, calibrated, and errors on other sizes."""

    name: str
    source: str
    words: str
    before: Fit
    after: Fit
    others: Sequence[float]
    """Errors of bandwidth on every other operation, calibrated on the rest."""


def published(name: str) -> Published:
    """Calibrate the network of a testbed."""
    path = FOLDER / f"{name}.txt"
    notes = dict(
        line[2:].split(": ", 1) for line in path.read_text().splitlines()[:2] if ": " in line
    )
    scenario = load_scenario(FOLDER / f"{name}.toml")
    before, after = calibrate(scenario, read_measured([path]))
    payload = scenario.wire.payload_bytes
    every = [row for row, _ in before.errors() if counts(row, payload)]
    replay, others = Replay(scenario), []
    for odd in (0, 1):
        kept = {row.what for row in every[odd::2]}
        some = fit(scenario, [row for row in before.rows if row.what in kept], replay)
        rest = [row for row in every if row.what not in kept]
        others += _errors(some, rest, replay)
    return Published(name, notes["source"], notes["testbed"], before, after, others)


def _errors(found: Fit, rows: Sequence[Measurement], replay: Replay) -> list[float]:
    there = simulated(replay.scenario, rows, replay, found.values)
    return [error for _, error in there.errors()]


def _size(errors: Sequence[float]) -> str:
    """Return the median and the worst of how far bandwidths are off, as a factor."""
    far = np.exp(np.abs(np.log1p(np.array(errors))))
    return f"{np.median(far):.2f}, {far.max():.2f}"


def _fitted(found: Fit) -> str:
    words = []
    for name, f in found.fitted.items():
        given = "".join(f", if {other} is {found.values[other]:g}" for other in f.given)
        words.append(f"{name} {f.value:.4g} ({f.low:.4g} to {f.high:.4g}{given})")
    return "; ".join(words) or "nothing"


def summary(testbeds: Sequence[Published]) -> Table:
    """Return a line a testbed."""
    rows = []
    for bed in testbeds:
        payload = [e for row, e in bed.before.errors()]
        rows.append((
            bed.name, str(len(bed.before.rows)), _size(payload),
            _size([e for _, e in bed.after.errors()]), _size(bed.others), _fitted(bed.after),
        ))  # fmt: skip
    heads = ("testbed", "times", "as it is", "calibrated", "on sizes left out", "fitted")
    return Table(heads, rows)


@app.command()
def main(
    write: Annotated[Path | None, typer.Option(help="The page to put the tables into.")] = None,
) -> None:
    """Print the tables; with --write put them into the page."""
    if write is not None:
        for part in ("summary", "sizes"):
            check_page(write, part)
    beds = [published(name) for name in NAMES]
    parts = []
    for bed in beds:
        table = error_table(bed.before, bed.after).markdown()
        error = error_text(bed.after.errors())
        parts.append(f"### {bed.name}\n\n{bed.words}.\nSource: <{bed.source}>.\n"
                     f"Calibrated: {error}.\n\n{table}")  # fmt: skip
    texts = {"summary": summary(beds).markdown(), "sizes": "\n\n".join(parts)}
    for part, text in texts.items():
        typer.echo(text)
        if write is not None:
            insert(write, part, text)


if __name__ == "__main__":
    import sys

    run_command(app, sys.argv[1:])
