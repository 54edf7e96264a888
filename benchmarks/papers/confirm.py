"""One scaled case of each paper on the native engine and on ns-3, with its tuner in the loop.

Five results that other figures rest on: the search, the agents and the schemes, each on a small
network of its paper's figure and for a few seconds of ns-3's time. The rule is that of
``dcqcn-gym ns3 parity`` (:mod:`dcqcn_gym.extras.ns3.parity`); a tuner also has to propose the same
settings, which it does only if every number that it is given is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.papers.acc import fabric
from dcqcn_gym.benchmarks.papers.catalog import PAPERS, figure
from dcqcn_gym.benchmarks.papers.fat_tree import NEW, ROWS, fat_tree
from dcqcn_gym.benchmarks.papers.figure import Size
from dcqcn_gym.benchmarks.papers.figures.c_fig2 import all_to_all
from dcqcn_gym.benchmarks.papers.incast import ROWS as INCAST
from dcqcn_gym.benchmarks.papers.incast import incast
from dcqcn_gym.benchmarks.papers.paraleon import influx
from dcqcn_gym.benchmarks.papers.tuned import carried_out
from dcqcn_gym.core.errors import RunError, UnknownNameError
from dcqcn_gym.envs.scenario.acc_loads import steady
from dcqcn_gym.extras.ns3.parity import Comparison, compare
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.spec import RunSpec

CONFIRMED_FILE = "ns3.json"
SEED = 1


@dataclass(frozen=True)
class Case:
    """What of a paper is run on both: a figure's network in small, and who acts on it."""

    paper: str
    figure: str
    what: str
    make: Callable[[], RunSpec]


@dataclass(frozen=True)
class Confirmed:
    """The comparison of a case, and whether the tuner's settings were the same throughout."""

    paper: str
    figure: str
    what: str
    tuner: str
    same_settings: bool
    comparison: Comparison

    @property
    def holds(self) -> bool:
        """True if the two are equal by the rule of parity and the tuner did the same."""
        return self.same_settings and self.comparison.within_bounds

    @property
    def verdict(self) -> str:
        """Return ``identical``, ``within bounds`` or ``APART``."""
        if not self.holds:
            return "APART"
        return "identical" if self.comparison.identical else "within bounds"


def _paraleon() -> RunSpec:
    scenario = changed_scenario(influx(16, 4, 4), {"trigger": "kl"}, "P-fig8")
    return RunSpec(scenario, "paraleon", SEED, 12)


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
    return Confirmed(
        one.paper, one.figure, one.what, spec.tuner, ours.settings == theirs.settings,
        compare(spec.scenario, spec.seed, ours.reports, theirs.reports),
    )  # fmt: skip


def write_confirmed(path: Path, found: Sequence[Confirmed], against: str) -> None:
    """Write what was found, readable by :func:`read_confirmed`."""
    rows = [
        {
            **{f.name: getattr(one, f.name) for f in fields(one) if f.name != "comparison"},
            **one.comparison.row(),
        }
        for one in found
    ]
    write_json(path, {"backends": ["native", against], "rows": rows})


def read_confirmed(path: Path) -> Mapping[str, Confirmed]:
    """Return what is on file, by paper; RunError if it holds something else."""
    own = [f.name for f in fields(Confirmed) if f.name != "comparison"]
    try:
        rows = json.loads(path.read_bytes())["rows"]
        found = [
            Confirmed(
                **{name: row[name] for name in own},
                comparison=Comparison(**{f.name: _plain(row[f.name]) for f in fields(Comparison)}),
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} does not hold what paper confirm writes") from error
    return {one.paper: one for one in found}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
