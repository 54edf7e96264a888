"""Dolce-RC, Fig. 8: bursts of short flows beside long ones, Dolce-RC+ against DCQCN."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import Claim, Growth, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario

PLACE = "section VI-B, Fig. 8"
OLD = "dcqcn"
ARMS = (3, 4, 6, 8)
NEW = "dolce-rc-plus, K = 4"
LINE = 200e9
SHORT = 256_000
MIX = "mix"


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the mix to its end; completion times of short and long flows, and the total rate."""
    scenario = load_scenario("dolce-mix")
    changes: dict[str, object] = {"monitor": {"kind": "none"}}
    if cell.row != OLD:
        changes["scheme"] = "dolce-rc-plus"
    scenario = changed_scenario(scenario, changes, cell.row)
    setting = scenario.initial_setting()
    if cell.row != OLD:
        setting = setting.replace({"dolce_arms": int(cell.row.rpartition(" ")[2])})
    seen = probe(
        scenario, cell.seed, size.length_ms, every_us=500, setting=setting, until_done=True
    )
    every = np.concatenate([flows.bytes for flows in seen.finished])
    fct, ends = seen.fct_s(), seen.ends_s()
    early = (seen.time > 0.01) & (seen.time <= 0.15)
    values = {
        "long": statistic(fct[every > SHORT]),
        "short": float(fct[every == SHORT].mean()),
        "makespan": float(ends.max()),
        "rate": float(seen.rate[early].mean() / LINE) if np.any(early) else float("nan"),
        "unfinished": float(seen.unfinished),
    }
    return CellResult(values, {"rate": thinned(seen.time, seen.rate / LINE)}, seen.hops)


POINTS = {OLD: (MIX,), **{f"dolce-rc-plus, K = {k}": (MIX,) for k in ARMS}}
FIGURE = Figure(
    name="R-fig8",
    paper="dolce-rc",
    title="short flows beside long ones under Dolce-RC+",
    x="traffic",
    sizes={
        "smoke": Size({OLD: (MIX,), NEW: (MIX,)}, 1, length_ms=3),
        "quick": Size(POINTS, 5, length_ms=1000),
        "full": Size(POINTS, 20, length_ms=1000),
    },
    measure=measure,
    measures=(
        Measure("long", "long flows, mean completion time, ms", 1e3, ".1f"),
        Measure("short", "short flows, us", 1e6, ".1f"),
        Measure("makespan", "all done after, ms", 1e3, ".0f"),
        Measure("rate", "total rate from 10 to 150 ms, % of the link", 1e2, ".1f"),
        Measure("unfinished", "unfinished", 1, ".0f"),
    ),
    claims=(
        Claim("the rates of short flows are suppressed (they take longer)", PLACE,
              Growth("short", NEW, OLD, MIX), Sign(1), 100, " %", "+.0f"),
        Claim("a much higher aggregate throughput (likewise)", PLACE,
              Growth("rate", NEW, OLD, MIX), Sign(1), 100, " %", "+.1f"),
        Claim("lower completion times of messages: here, of the long flows that they make up",
              PLACE, Growth("long", NEW, OLD, MIX), Sign(-1), 100, " %", "+.1f"),
        Claim("all flows are done much earlier (no number is given: the sign counts)", PLACE,
              Growth("makespan", NEW, OLD, MIX), Sign(-1), 100, " %", "+.1f"),
    ),
    plots=(
        Over("rate", "Total sending rate, % of the link", "ms",
             ((OLD, MIX), ("dolce-rc-plus, K = 3", MIX), (NEW, MIX)), 1e2, 1e3),
    ),
    ours=(
        "the number of arms K, which the paper does not give: 4 counts for the verdicts, the "
        "others show how much it matters",
        "which pairs send what, and that a KB is 1000 B (scenario dolce-mix)",
    ),
)  # fmt: skip
