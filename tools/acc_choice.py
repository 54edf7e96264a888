"""Which network of ACC its figures run: chosen on held-out traffic, judged on more of it. ::

    python tools/acc_choice.py NETWORK... --out runs/acc-choice

The rule, fixed before any network of it was seen. Traffic: WebSearch at 60 and 90 % of the host
links of 16 hosts, where trainings have 50 and 80 %, over NICs with the published reaction point;
flows begin for 40 ms and all are waited for. A score is the mean logarithm of the four figures of
ACC's bins (mean, mean of mice, their p99, mean of elephants) over those under SECN1, over loads and
seeds: the lowest is best.

- *Choosing*: every network and ACC's ten curves with a Pmax of 100 %, 2 seeds; the best of each.
- *Judging*: those two, SECN1 and SECN2, with 6 other seeds, differences paired by seed. A network
  that is not better than the curve, in score or in its own reward, has learnt nothing worth having:
  then a claim about ACC that does not come out is no test.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.benchmarks.papers.acc import BY_SIZE, CURVES, arrivals, drained, points
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults, Place
from dcqcn_gym.benchmarks.papers.results import produce
from dcqcn_gym.core.statistics import Estimate, estimate, paired_change
from dcqcn_gym.core.sums import mean
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.table import Table, print_tables
from dcqcn_gym.tuners.acc import load_network

LOADS = (0.6, 0.9)
SECN1, SECN2 = "SECN1", "SECN2"
FIGURES = tuple(one.name for one in BY_SIZE)


def measure(cell: Cell, size: Size) -> CellResult:
    """Run WebSearch under a network, by its path, or a curve."""
    return drained(cell, size, arrivals("WebSearch", float(cell.x), size))


def _figure(choosing: Sequence[str], judged: Sequence[str] = ()) -> Figure:
    more = {"hosts": 16, "drain_ms": 200}
    rows = {name: points(of, LOADS) for name, of in (("quick", choosing), ("full", judged))}
    return Figure(
        name="acc-choice", paper="acc", title="held-out traffic", x="load", measure=measure,
        measures=(*BY_SIZE, Measure("unfinished", "unfinished", 1, ".0f")), claims=(),
        sizes={"quick": Size(rows["quick"], 2, 40, {**more, "seeds_from": 100}),
               "full": Size(rows["full"], 6, 40, {**more, "seeds_from": 200})},
    )  # fmt: skip


def scores(results: FigureResults, row: str, against: str = SECN1) -> list[float]:
    """Return the score of every seed: the mean log of the figures over those of another row."""
    pairs = [
        (results.values(name, row, load), results.values(name, against, load))
        for name in FIGURES for load in LOADS
    ]  # fmt: skip
    return [
        mean([math.log(a[i] / b[i]) for a, b in pairs]) for i in range(len(results.seeds))
    ]  # fmt: skip


def rewards(results: FigureResults, row: str, weight: float) -> list[float]:
    """Return the mean reward of an agent of every seed, with its weight of throughput."""
    of = {name: [results.values(name, row, load) for load in LOADS] for name in ("sent", "short")}
    return [
        mean([weight * a[i] + (1 - weight) * b[i]
              for a, b in zip(of["sent"], of["short"], strict=True)])
        for i in range(len(results.seeds))
    ]  # fmt: skip


def choose(networks: Sequence[str], out: Path, workers: int | None = None) -> list[Table]:
    """Choose a network and a curve, judge them; tables of both, and what was run in ``out``."""
    rows = (*networks, *CURVES, SECN1, SECN2)
    first = produce(_figure(rows), "quick", out / "choosing", workers=workers)
    by_score = sorted(rows, key=lambda row: mean(scores(first, row)))
    network = next(row for row in by_score if row in networks)
    held = next(row for row in by_score if row in CURVES)
    table = Table(
        ("series", "score", *FIGURES), [_row(first, row, SECN1) for row in by_score],
        title="Choosing: changes against SECN1, %, 2 seeds",
    )  # fmt: skip
    chosen = (network, held, SECN1, SECN2)
    last = produce(_figure(rows, chosen), "full", out / "judging", workers=workers)
    judged = [
        [f"{other}, load {load:.0%}", "", *_changes(last, network, other, (load,))]
        for other in chosen[1:] for load in LOADS
    ]  # fmt: skip
    judged += [_row(last, network, other, other) for other in chosen[1:]]
    said = re.search(r"weight[= ]([0-9.]+)", load_network(network).meta.command)
    weight = float(said[1]) if said else 0.5
    gain = estimate(
        [a - b for a, b in zip(*(rewards(last, r, weight) for r in chosen[:2]), strict=True)]
    )
    judged.append([f"own reward minus that of {held}", _text(gain, 1, ".4f")] + [""] * 4)
    return [table, Table(("against", "score", *FIGURES), judged,
                         title=f"Judging {network}: changes, %, 6 seeds")]  # fmt: skip


def _row(results: FigureResults, row: str, against: str, name: str = "") -> list[str]:
    found = estimate(scores(results, row, against))
    return [name or row, _text(found, 100), *_changes(results, row, against, LOADS)]


def _changes(results: FigureResults, row: str, against: str, loads: Sequence[Place]) -> list[str]:
    found = []
    for name in FIGURES:
        own, other = (
            [mean([math.log(results.values(name, r, load)[i]) for load in loads])
             for i in range(len(results.seeds))]
            for r in (row, against)
        )  # fmt: skip
        change = paired_change([math.exp(v) for v in own], [math.exp(v) for v in other],
                               relative=True)  # fmt: skip
        found.append(_text(change, 100))
    return found


def _text(found: Estimate, scale: float, form: str = "+.1f") -> str:
    ends = "" if found.low is None or found.high is None else (
        f" [{found.low * scale:{form}}, {found.high * scale:{form}}]"
    )  # fmt: skip
    return f"{found.mean * scale:{form}}{ends}"


def main(
    networks: Annotated[list[str], typer.Argument(help="Trainings, files or shipped names.")],
    out: Annotated[Path, typer.Option(help="What was run; the same command continues it.")],
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes.")] = None,
) -> None:
    """Choose a network of ACC on held-out traffic; judge it beside SECN1, SECN2 and a curve."""
    print_tables(choose(networks, out, jobs))


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    app.command()(main)
    run_command(app, sys.argv[1:])
