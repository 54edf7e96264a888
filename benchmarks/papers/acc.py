"""The fabric and the loads of ACC's figures at the sizes of this project, and their rows.

Quick sizes have 16 hosts (two leaves, uplinks as fast as the hosts together); full ones the paper's
288 or 96. Decisions last 500 us. SECN1 and SECN2 are second-hand values (docs/tuners.md), so that a
comparison with them is at best one of direction, whatever a rule says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dcqcn_gym.benchmarks.papers.acc_loads import FABRICS, steady
from dcqcn_gym.benchmarks.papers.acks import as_asked
from dcqcn_gym.benchmarks.papers.claims import Claim, Direction, Growth
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import Place
from dcqcn_gym.benchmarks.papers.tuned import Tuned, tuned
from dcqcn_gym.core.agents import agents_of
from dcqcn_gym.core.port_view import PortView
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.tuners.acc_state import TEMPLATES

PUBLISHED: Mapping[str, Any] = {
    "initial": "dcqcn-paper",
    "scheme": {"name": "dcqcn", "rp": "paper"},
}
"""NICs with the reaction point that was published, as ACC's simulator has; default: ConnectX's."""
CONNECTX = ", ConnectX NICs"
"""End of the name of a series whose NICs have ConnectX's default reaction point."""

ROWS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ACC": ("acc", {}),
    "ACC on WebSearch": ("acc", {"file": "acc-websearch"}),
    "ACC, adapting": ("acc", {"adapt": True, "updates": 10}),
    "C-ACC": ("acc-central", {}),
    "SECN1": ("secn1", {}),
    "SECN2": ("secn2", {}),
    "20 / 20 KB": ("fixed", TEMPLATES[0]),
    "20 / 80 KB": ("fixed", TEMPLATES[4]),
    "40 / 160 KB": ("fixed", TEMPLATES[6]),
    "160 / 640 KB": ("fixed", TEMPLATES[10]),
    "320 / 1280 KB": ("fixed", TEMPLATES[12]),
    "640 / 2560 KB": ("fixed", TEMPLATES[14]),
    "320 / 1280 KB, 20 %": ("fixed", TEMPLATES[13]),
}
"""Rows of the figures: the tuner and its arguments.

``ACC on WebSearch`` has a network trained by the same rules and as long as the package's first, on
WebSearch alone. The last ones are fixed curves of ACC's list, named by Kmin and Kmax, with Pmax
100 % unless they say another: what an agent could choose.
"""

CURVES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    f"{one['kmin']:g} / {one['kmax']:g} KB, {100 * one['pmax']:.0f} %": ("fixed", one)
    for one in TEMPLATES[::2]
}
"""Those of ACC's list with a Pmax of 100 %, by their three values."""

WARMUP_MS = 2.0

SHORTEST = "20 / 80 KB"
"""The curve that is best by our reward on WebSearch, since its queues are short."""

REWARD_WEIGHT = 0.2
"""Weight of throughput in the reward that the networks of the package were trained for."""

BY_SIZE = (
    Measure("mean", "mean, us", 1e6, ".0f"),
    Measure("mice", "to 100 KB: mean, us", 1e6, ".0f"),
    Measure("mice p99", "to 100 KB: p99, us", 1e6, ".0f"),
    Measure("elephants", "from 10 MB: mean, ms", 1e3, ".2f"),
)
"""Completion times in ACC's bins, the columns of most of its figures."""
REWARD = Measure("reward", "reward of a port", 1, ".4f")
"""What the agents are trained for, under any row."""

TAIL = Measure("p99", "p99, us", 1e6, ".0f")
"""Of all flows."""

DRAINED = (
    *BY_SIZE, Measure("done", "mean of those done by then, us", 1e6, ".0f"),
    Measure("unfinished", "unfinished", 1, ".0f"),
)  # fmt: skip
"""Columns of figures whose arrivals stop; ``done``: of flows that end before they do."""

WEAK = (
    "no network of ours beats the best curve of its own list on held-out traffic "
    "(configs/acc/README.md), so this says nothing of the paper's agent"
)
"""Why a claim about ACC that does not come out is no test."""

OTHER_NICS = (
    "it ran over ConnectX's reaction point, which the paper's simulator does not have, with "
    "a network trained for two simulated seconds. Counting unfinished flows, left out under every "
    "series, would not change that"
)
"""Why what was measured decides nothing about ACC's completion times."""

OURS = (
    "SECN1 (5 / 200 KB, 1 %) and SECN2 (100 / 400 KB at 25 Gb/s, 20 %) are second-hand values, so "
    "direction is the best verdict",
    "ACC's networks are those of the package, trained on 16 hosts with FB_Hadoop and an "
    "all-to-all unless a series says otherwise; state, templates and reward are ours",
    "NICs have ConnectX's default reaction point",
)
OURS_DRAINED = (
    *OURS[:2],
    "arrivals stop, and flows are waited for, 200 ms at most; then one counts at its age",
    "NICs have the published reaction point; ConnectX's are series",
    "one priority; agents exchange no memories, as the paper's do",
    "size quick has 16 hosts; full, the paper's 288, was not run",
)
"""What figures whose arrivals stop have chosen."""


def fabric(
    hosts: int,
    workloads: Sequence[Mapping[str, Any]],
    warmup_us: float = 2000.0,
    nics: Mapping[str, Any] = MappingProxyType({}),
) -> Scenario:
    """Return ACC's fabric of 288 or 96 hosts, or one of 16, with these workloads.

    ``nics``: :data:`PUBLISHED`, or ConnectX's defaults.
    """
    small = {**FABRICS["acc-96"], "tors": 2, "hosts_per_tor": 8, "links_per_spine": 1}
    return Scenario.model_validate(
        {
            "name": f"acc-{hosts}",
            "monitor_interval_us": 500,
            "warmup_us": warmup_us,
            "topology": small if hosts == 16 else FABRICS[f"acc-{hosts}"],
            "weights": {"tp": 0.5, "rtt": 0.2, "pfc": 0.3},
            "workloads": workloads,
            **nics,
        }
    )


def row_of(name: str) -> tuple[str, Mapping[str, Any]]:
    """Return tuner and arguments of a row, of a curve of ACC's list, or of a network's file."""
    return ROWS.get(name) or CURVES.get(name) or ("acc", {"file": name})


def drained(cell: Cell, size: Size, workloads: Sequence[Mapping[str, Any]]) -> CellResult:
    """Run workloads that stop, until every flow is done or ``drain_ms`` are over; ACC's figures.

    Every flow that begins after the warm-up counts, one that is under way at the end at its age.
    NICs are the published ones unless the row ends in :data:`CONNECTX`.
    """
    name = cell.row.removesuffix(CONNECTX)
    nics = PUBLISHED if name == cell.row else {}
    scenario = as_asked(fabric(int(size.more["hosts"]), workloads, nics=nics), size)
    tuner, arguments = row_of(name)
    length_ms = size.length_ms + size.more["drain_ms"]
    seed = cell.seed + int(size.more.get("seeds_from", 0))
    seen = tuned(scenario, tuner, seed, length_ms, arguments=arguments)
    figures = seen.by_size(seen.since(WARMUP_MS * 1e-3))
    own = [_reward(scenario, seen, weight, size.length_ms) for weight in (1.0, 0.0)]
    more = {"unfinished": float(len(seen.unfinished.bytes)), "sent": own[0], "short": own[1]}
    _, start, fct = seen.flows()
    end = (WARMUP_MS + size.length_ms) * 1e-3
    more["done"] = statistic(fct[(start >= WARMUP_MS * 1e-3) & (start + fct < end)])
    return CellResult({**figures, **more}, {}, seen.hops)


def arrivals(cdf: str, load: float, size: Size) -> list[Any]:
    """Return flows of a distribution that begin until the size's length is over."""
    return steady(cdf, load, stop_us=(WARMUP_MS + size.length_ms) * 1e3)


def websearch(cell: Cell, size: Size) -> CellResult:
    """Run a row on WebSearch at the load ``cell.x``; figures by size, tail and reward."""
    tuner, arguments = ROWS[cell.row]
    scenario = as_asked(fabric(int(size.more["hosts"]), steady("WebSearch", float(cell.x))), size)
    seen = tuned(scenario, tuner, cell.seed, size.length_ms, arguments=arguments)
    more = {"p99": seen.p99(), "reward": _reward(scenario, seen)}
    return CellResult({**seen.by_size(), **more}, {}, seen.hops)


def _reward(
    scenario: Scenario, seen: Tuned, weight: float = REWARD_WEIGHT, length_ms: float = math.inf
) -> float:
    """Return the mean reward of ACC's agents of this project, one per port, in so long a time."""
    table = scenario.initial_setting().table
    agents = agents_of("port", scenario.fabric.devices, tuple(TEMPLATES[0]), table)
    view = PortView(agents, weight)
    first = seen.reports[0].start_ps * 1e-9
    reports = [one for one in seen.reports if one.start_ps * 1e-9 < first + length_ms]
    return mean([float(view.rewards(report).mean()) for report in reports])


def points(rows: Sequence[str], places: Sequence[Place]) -> dict[str, Sequence[Place]]:
    """Return the same places for every row."""
    return dict.fromkeys(rows, places)


def faster(
    text: str,
    place: str,
    measure: str,
    row: str,
    against: str,
    x: Place,
    no_test: str = "",
) -> Claim:
    """Return the claim that a row has smaller completion times than another, of any amount."""
    finding = Growth(measure, row, against, x)
    weak = "" if no_test else WEAK
    return Claim(text, place, finding, Direction(-1), 100, " %", "+.1f", no_test=no_test, weak=weak)
