"""``python tools/fluid_error.py [--keep FILE] [--write PAGE]``: how wrong the fluid backend is.

The same settings run on packets and on the fluid backend, on scenarios of every kind of traffic:
the rank correlation of their scores S over the default, how often both signs are the same, and how
far completion times lie apart. Packets on one seed against packets on the next are the measure
of what any model can reach. Lines are kept beside this file; without ``--run`` they are read.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.statistics import rank_agreement
from dcqcn_gym.core.verdict import Measured, scores
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.markdown_page import insert
from dcqcn_gym.runs.markdown import Marked
from dcqcn_gym.runs.table import Table, print_tables

DATA = Path(__file__).with_suffix(".jsonl")
SUITES = Path(__file__).resolve().parents[1] / "configs" / "suites"

CASES = {
    "open traffic": (
        "mini-fb-hadoop",
        "dev-v1/00-four-racks-steady",
        "dev-v1/01-one-switch-influx",
    ),
    "incast": ("incast", "dev-v1/02-fat-tree-incast"),
    "incast of mice": ("dev-v2/083-star-100g-mice-incast", "dev-v2/460-star-25g-mice-incast"),
    "pause storm": ("mini-storm",),
    "all-to-all": ("mini-llm-alltoall", "dev-v1/11-one-switch-alltoall"),
    "ring, permutation": ("dev-v1/05-two-racks-ring", "dev-v1/08-four-racks-permutation"),
    "job": ("job-pipeline-16", "dev-v2/402-uneven-25g-job"),
    "storage": ("dev-v2/309-star-25g-storage",),
}
"""Scenarios by kind of traffic: names, or files of a suite."""


@dataclass(frozen=True)
class Line:
    """One scenario: correlations over its settings, errors as shares, CPU seconds."""

    kind: str
    scenario: str
    settings: int
    rank: float
    """Spearman's, of S on fluid and on packets; NaN where S does not vary."""
    ceiling: float
    """The same of packets on one seed and on the next."""
    spread: float
    """Standard deviation of S over settings, on packets."""
    signs: float
    """Share of settings whose S has the same sign on both, or is within 0.02 of 0 on both."""
    slowdown: float
    """Median over settings and classes of the relative error of the mean slowdown."""
    utility: float
    """Mean of the absolute error."""
    utility_rank: float
    packets_s: float
    fluid_s: float


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's coefficient of what is known of both, to a thousandth; NaN: none."""
    x, y = (np.round(np.asarray(v, float), 3) for v in (a, b))
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3 or np.ptp(x[known]) == 0 or np.ptp(y[known]) == 0:
        return math.nan
    return rank_agreement(x[known].tolist(), y[known].tolist())


def measure(kind: str, name: str, settings: int, intervals: int, seeds: Sequence[int]) -> Line:
    """Run a scenario under the default and random settings, both ways."""
    path = SUITES / f"{name}.toml"
    scenario = load_scenario(str(path) if path.exists() else name)
    default = scenario.default_setting()
    space = KnobSpace(line_rate_bps=scenario.line_rate_bps)
    places = np.random.default_rng(1).uniform(-1, 1, (settings, space.n))
    tried: list[Setting] = [default, *(space.setting(place, default) for place in places)]
    found: dict[str, list[list[Measured]]] = {}
    took = {}
    for engine in ("default", "fluid"):
        begin = time.process_time()
        rows = evaluate(tried, [scenario], seeds, intervals, 1, engine)
        took[engine] = time.process_time() - begin
        found[engine] = [row[0] for row in rows]
    packets, fluid = found["default"], found["fluid"]
    ours, theirs = _scores(fluid), _scores(packets)
    halves = [_scores([[row[i]] for row in packets]) for i in (0, -1)]
    theirs_u, ours_u = (
        [float(np.mean([m.utility for m in row])) for row in rows] for rows in (packets, fluid)
    )
    return Line(
        kind=kind,
        scenario=name.rpartition("/")[2],
        settings=settings,
        rank=rank_correlation(ours, theirs),
        ceiling=rank_correlation(*halves) if len(seeds) > 1 else math.nan,
        spread=float(np.nanstd(theirs)),
        signs=_signs(ours, theirs),
        slowdown=_slowdown_error(fluid, packets),
        utility=float(np.mean(np.abs(np.subtract(ours_u, theirs_u)))),
        utility_rank=rank_correlation(ours_u, theirs_u),
        packets_s=took["default"],
        fluid_s=took["fluid"],
    )


def _scores(rows: Sequence[Sequence[Measured]]) -> list[float]:
    return [scores(row, rows[0]).mean for row in rows[1:]]


def _signs(ours: Sequence[float], theirs: Sequence[float]) -> float:
    a, b = (np.asarray(v, float) for v in (ours, theirs))
    known = np.isfinite(a) & np.isfinite(b)
    if not known.any():
        return math.nan
    a, b = (np.where(np.abs(v[known]) < 0.02, 0, np.sign(v[known])) for v in (a, b))
    return float(np.mean(a == b))


def _slowdown_error(
    fluid: Sequence[Sequence[Measured]], packets: Sequence[Sequence[Measured]]
) -> float:
    errors = [
        abs(a.mean / b.mean - 1)
        for ours, theirs in zip(fluid, packets, strict=True)
        for one, other in zip(ours, theirs, strict=True)
        for a, b in zip(one.classes, other.classes, strict=True)
        if a.count and b.count
    ]
    return float(np.median(errors)) if errors else math.nan


def table(lines: Sequence[Line]) -> Table:
    """Return the table of the page: a row a scenario."""
    columns = (
        "scenario", "kind", "rank correlation of S", "packets, other seed", "spread of S",
        "same sign", "completion times apart", "utility apart", "its rank correlation",
        "packets : fluid, CPU",
    )  # fmt: skip
    rows = [
        [
            Marked(line.scenario), line.kind, _number(line.rank), _number(line.ceiling),
            _number(line.spread), _number(line.signs), _number(100 * line.slowdown, 0, " %"),
            _number(line.utility, 3), _number(line.utility_rank),
            _number(line.packets_s / line.fluid_s, 1),
        ]
        for line in lines
    ]  # fmt: skip
    return Table(columns, rows, words=2)


def _number(value: float, digits: int = 2, unit: str = "") -> str:
    return "n/a" if math.isnan(value) else f"{value:.{digits}f}{unit}"


def main(
    run: Annotated[bool, typer.Option("--run")] = False,
    settings: int = 12,
    intervals: int = 16,
    seeds: int = 2,
    only: str = "",
    keep: Path = DATA,
    write: Path | None = None,
) -> None:
    """Measure (``--run``, ``--only`` some) or read what is kept; print it, fill in a page."""
    if run:
        cases = [(kind, n) for kind, names in CASES.items() for n in names if only in n]
        with keep.open("a" if only else "w", encoding="utf-8") as file:
            for kind, name in cases:
                line = measure(kind, name, settings, intervals, range(1, seeds + 1))
                file.write(json.dumps(asdict(line)) + "\n")
                file.flush()
    lines = [Line(**json.loads(text)) for text in keep.read_text(encoding="utf-8").splitlines()]
    if write is not None:
        insert(write, "fluid-error", table(lines).markdown() + "\n")
    print_tables([table(lines)])


if __name__ == "__main__":
    typer.run(main)
