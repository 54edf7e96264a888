"""One scaled case of each paper on the native engine and on ns-3, with its tuner in the loop. ::

    python tools/paper_confirm.py --out benchmarks/papers/results/ns3.json

Five results that other figures rest on: the search, the agents and the schemes, each on a small
network of its paper's figure and for a few seconds of ns-3's time. The rule is that of
``dcqcn-gym ns3 parity`` (:mod:`dcqcn_gym.extras.ns3.parity`); a tuner also has to propose the same
settings, which it does only if every number that it is given is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.benchmarks.papers.acc import fabric
from dcqcn_gym.benchmarks.papers.acc_loads import steady
from dcqcn_gym.benchmarks.papers.catalog import PAPERS, figure
from dcqcn_gym.benchmarks.papers.checks import Confirmed, confirmed_table
from dcqcn_gym.benchmarks.papers.fat_tree import NEW, ROWS, fat_tree
from dcqcn_gym.benchmarks.papers.figure import Size
from dcqcn_gym.benchmarks.papers.figures.c_fig2 import all_to_all
from dcqcn_gym.benchmarks.papers.incast import ROWS as INCAST
from dcqcn_gym.benchmarks.papers.incast import incast
from dcqcn_gym.benchmarks.papers.paraleon import influx
from dcqcn_gym.benchmarks.papers.tuned import carried_out
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.extras.ns3.parity import Comparison, compare
from dcqcn_gym.runs.atomic_file import check_writable
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.runs.table import print_tables

SEED = 1


@dataclass(frozen=True)
class Case:
    """What of a paper is run on both: a figure's network in small, and who acts on it."""

    paper: str
    figure: str
    what: str
    make: Callable[[], RunSpec]


def _paraleon() -> RunSpec:
    scenario = changed_scenario(influx(16, 4, 4), {"trigger": "kl"}, "P-fig8")
    return RunSpec(scenario, "paraleon-prototype", SEED, 12)


def _chameleon() -> RunSpec:
    size = figure("C-fig2").sizes["smoke"]
    return RunSpec(all_to_all(size), "chameleon", SEED, 8, tuner_args={"average": 2})


def _acc() -> RunSpec:
    return RunSpec(fabric(16, steady("WebSearch", 0.9)), "acc", SEED, 12)


def _dcqcn_plus() -> RunSpec:
    flows = incast(INCAST["dcqcn-plus"], 10, 480, size=100_000, within_us=20_000)
    return RunSpec(flows, "do-nothing", SEED, 80)


def _dolce() -> RunSpec:
    size = Size({NEW: (50,)}, 1, 0.8, {"k": 4})
    scenario = fat_tree(ROWS[NEW], size, "CacheFollower", 0.5)
    hold = RunSpec(scenario, "fixed", SEED, 4)
    return hold.with_setting(
        scenario.initial_setting().replace(ROWS[NEW].knobs), SEED, hold.intervals
    )


CASES: Sequence[Case] = (
    Case("paraleon", "P-fig8", "the search, woken by an influx of FB_Hadoop into an all-to-all of "
         "16 hosts at 25 Gb/s", _paraleon),
    Case("acc", "A-fig12", "one agent for each port, WebSearch at 90 % load on 16 hosts at 25 "
         "Gb/s", _acc),
    Case("chameleon", "C-fig2", "the greedy search, an all-to-all of 8 workers in rounds of 2 ms",
         _chameleon),
    Case("dolce-rc", "R-fig6", "Dolce-RC, CacheFollower at 50 % load on a fat tree of k = 4 at "
         "200 Gb/s", _dolce),
    Case("dcqcn-plus", "D-fig6", "DCQCN+, 480 flows of 100 KB from 8 hosts to one at 10 Gb/s, "
         "started within 20 ms", _dcqcn_plus),
)  # fmt: skip
"""One case of each paper."""


def case(paper: str) -> Case:
    """Return a paper's case; UnknownNameError for another name."""
    for one in CASES:
        if one.paper == paper:
            return one
    raise UnknownNameError("paper", paper, [paper.name for paper in PAPERS])


def confirm(one: Case, against: str = "ns3") -> Confirmed:
    """Carry out a case on the native engine and on ``against``, and compare them."""
    spec = one.make()
    ours, theirs = (carried_out(replace(spec, backend=name)) for name in ("native", against))
    found = compare(spec.scenario, spec.seed, ours.reports, theirs.reports)
    return judged(one, spec.tuner, found, same_settings=ours.settings == theirs.settings)


def judged(one: Case, tuner: str, found: Comparison, *, same_settings: bool) -> Confirmed:
    """Return what a comparison says: equal by the rule of parity, and the tuner did the same."""
    verdict = "APART"
    if same_settings and found.within_bounds:
        verdict = "identical" if found.identical else "within bounds"
    return Confirmed(one.paper, one.figure, one.what, tuner, same_settings, verdict, found.row())


def main(
    papers: Annotated[list[str] | None, typer.Argument(help="Default: all five.")] = None,
    against: Annotated[str, typer.Option(help="The other backend.")] = "ns3",
    out: Annotated[Path | None, typer.Option(help="Write what was found here.")] = None,
) -> None:
    """Run a scaled case of each paper on the native engine and on ns-3; exit 1 if they differ."""
    if out is not None:
        check_writable(out)
    chosen = [case(paper) for paper in papers] if papers else list(CASES)
    found = [confirm(one, against) for one in chosen]
    print_tables([confirmed_table(found)])
    if out is not None:
        rows = [vars(one) for one in found]
        write_json(out, {"backends": ["native", against], "rows": rows})
    if any(one.verdict == "APART" for one in found):
        raise typer.Exit(1)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    app.command()(main)
    run_command(app, sys.argv[1:])
