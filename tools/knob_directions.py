"""Which way a knob moves throughput and delay, measured for every knob of the table.

PARALEON (ICNP 2024, section III-C) gives each knob a throughput- and a delay-friendly direction,
found by experiment; the knob table holds them as ``direction``. Here every knob is swept alone over
the range that tuners reach, the others at their default, under the all-to-all traffic of the
paper's figure 5. Per seed, Spearman's rank correlation between the knob and the figure says which
way it goes; over the seeds it has an interval. ::

    python tools/knob_directions.py --out runs/directions --write docs/reference/simulate.md
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from dcqcn_gym.comparison.grid import Grid, GridAxis, values_over
from dcqcn_gym.comparison.plan import Case
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.knobs import Knob, knob_table
from dcqcn_gym.core.statistics import Estimate, estimate, paired_change, rank_agreement
from dcqcn_gym.report.markdown_page import check_page, insert
from dcqcn_gym.runs.atomic_file import check_writable, write_atomically
from dcqcn_gym.runs.campaign import raise_failures
from dcqcn_gym.runs.log import encode_line
from dcqcn_gym.runs.markdown import Marked
from dcqcn_gym.runs.study import open_study
from dcqcn_gym.runs.table import Table, print_tables, with_interval
from dcqcn_gym.runs.trials import carry_out

DATA = Path(__file__).with_suffix(".jsonl")
"""The measurement that comes with the project, a line per run."""
LEAST = 0.01
"""A figure that changes by less than this over the whole range counts as not moved."""
FIGURES = {"tp": "throughput", "rtt": "rtt"}


def grid_of(knob: Knob, case: Case, points: int = 6) -> Grid:
    """Return the sweep of one knob over the range that tuners reach."""
    base = case.loaded.default_setting()
    low, high = knob.tuned_at(case.loaded.line_rate_bps)
    if knob.name == "kmin":  # the other threshold stays where it is
        high = base["kmax"]
    if knob.name == "kmax":
        low = base["kmin"]
    return Grid(case, base, [GridAxis(knob, values_over(knob, low, high, points))])


@dataclass(frozen=True)
class Line:
    """One run: a knob's value in NVIDIA's units, and what came out in bit/s and seconds."""

    knob: str
    value: float
    seed: int
    tp: float
    rtt: float


def measure(
    grid: Grid, seeds: int, intervals: int, out: Path, workers: int | None = None
) -> list[Line]:
    """Sweep a knob; what is finished in ``out`` is not run again. RunError names failures."""
    study = grid.study(grid.plan(seeds, intervals), out)
    with open_study(study, out) as progress:
        raise_failures(carry_out(study.jobs.values(), workers, progress))
        found = sorted(grid.metrics(study).items())
    name = grid.axes[0].knob.name
    return [
        Line(name, point[0], seed, *(float(f"{one[f]:.6g}") for f in FIGURES.values()))
        for (point, seed), one in found
    ]


def grids_of(case: Case, points: int) -> list[Grid]:
    """Return the sweep of every knob that the case's scheme has."""
    return [grid_of(knob, case, points) for knob in knob_table(case.loaded.table.scheme).rows]


def write_lines(path: Path, lines: Sequence[Line]) -> None:
    """Keep a measurement, a line per run."""
    write_atomically(path, b"".join(encode_line(vars(line)) for line in lines))


def read_directions(path: Path = DATA) -> list[Line]:
    """Return a measurement that was committed; RunError for a file that holds none."""
    try:
        return [Line(**json.loads(line)) for line in path.read_bytes().splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"{path} holds no measurement of directions: {error}") from error


@dataclass(frozen=True)
class Direction:
    """What was found of one knob. Correlations are in -1..1, changes from the low to the high end.

    ``tp_moves`` and ``rtt_moves`` are False where no value differs from another by :data:`LEAST`.
    """

    knob: Knob
    tp: Estimate
    rtt: Estimate
    tp_change: Estimate
    rtt_change: Estimate
    tp_moves: bool
    rtt_moves: bool

    @property
    def tp_sign(self) -> int:
        """1 if raising the knob raises throughput, -1 if it lowers it, 0 if that is not clear."""
        return self.tp.sign if self.tp_moves else 0

    @property
    def rtt_sign(self) -> int:
        """The same of the round trip."""
        return self.rtt.sign if self.rtt_moves else 0

    @property
    def verdict(self) -> str:
        """How it stands to the table, whose direction raises throughput and the round trip."""
        if not (self.tp_moves or self.rtt_moves):
            return "no effect here"
        tp, rtt = (sign * self.knob.direction for sign in (self.tp_sign, self.rtt_sign))
        against = [name for name, sign in (("throughput", tp), ("delay", rtt)) if sign < 0]
        if against:
            return f"disagrees: {' and '.join(against)}"
        agreed = [name for name, sign in (("throughput", tp), ("delay", rtt)) if sign > 0]
        return f"agrees: {' and '.join(agreed)}" if agreed else "not clear"


def directions(lines: Sequence[Line], scheme: str = "dcqcn") -> list[Direction]:
    """Return what a measurement says of each knob, in the table's order."""
    return [
        _direction(knob, [line for line in lines if line.knob == knob.name])
        for knob in knob_table(scheme).rows
        if any(line.knob == knob.name for line in lines)
    ]


def _direction(knob: Knob, lines: Sequence[Line]) -> Direction:
    values = sorted({line.value for line in lines})
    seeds = sorted({line.seed for line in lines})
    found: dict[str, tuple[Estimate, Estimate, bool]] = {}
    for figure in FIGURES:
        by_place = {(line.value, line.seed): float(getattr(line, figure)) for line in lines}
        rows = [[by_place[value, seed] for value in values] for seed in seeds]
        moves = any(max(row) > (1 + LEAST) * min(row) for row in rows)
        ends = [row[-1] for row in rows], [row[0] for row in rows]
        correlations = [_correlation(values, row) for row in rows]
        found[figure] = _certain(correlations), paired_change(*ends, relative=True), moves
    (tp, tp_change, tp_moves), (rtt, rtt_change, rtt_moves) = found["tp"], found["rtt"]
    return Direction(knob, tp, rtt, tp_change, rtt_change, tp_moves, rtt_moves)


def _correlation(values: Sequence[float], row: Sequence[float]) -> float:
    """Return the rank correlation; 0 where the figure never changes."""
    return rank_agreement(values, row) if len(set(row)) > 1 else 0.0


def _certain(correlations: Sequence[float]) -> Estimate:
    """Return the estimate, within -1..1; seeds that all agree leave no doubt about the sign."""
    found = estimate(correlations)
    if found.constant:
        return Estimate(found.mean, found.mean, found.mean, found.n)
    if found.low is None or found.high is None:
        return found
    return Estimate(found.mean, max(found.low, -1.0), min(found.high, 1.0), found.n)


def directions_table(found: Sequence[Direction]) -> Table:
    """Return a line per knob: the table's direction, what was measured, and how they compare."""
    rows = [
        [
            f"`{one.knob.name}`",
            "up" if one.knob.direction > 0 else "down",
            with_interval(one.tp, "+.2f", style="brackets"),
            with_interval(one.tp_change, "+.1f", 100, unit=" %", style="brackets"),
            with_interval(one.rtt, "+.2f", style="brackets"),
            with_interval(one.rtt_change, "+.1f", 100, unit=" %", style="brackets"),
            one.verdict,
        ]
        for one in found
    ]
    columns = (
        "knob", "table: throughput", "throughput, rank correlation", "low to high end",
        "round trip, rank correlation", "low to high end", "the table's direction",
    )  # fmt: skip
    return Table(columns, [[Marked(row[0]), *row[1:]] for row in rows], words=2)


def main(
    out: Path,
    scenario: str = "mini-llm-alltoall",
    points: int = 6,
    seeds: int = 5,
    intervals: int = 20,
    jobs: int | None = None,
    keep: Path = DATA,
    write: Path | None = None,
) -> None:
    """Sweep every knob alone; keep a line per run and put the table into a page."""
    check_page(write, "directions")
    check_writable(keep)
    grids = grids_of(Case(scenario=scenario), points)
    lines = [
        line
        for grid in grids
        for line in measure(grid, seeds, intervals, out / grid.axes[0].knob.name, jobs)
    ]
    write_lines(keep, lines)
    table = directions_table(directions(lines))
    if write is not None:
        insert(write, "directions", table.markdown() + "\n")
    print_tables([table])


if __name__ == "__main__":
    typer.run(main)
