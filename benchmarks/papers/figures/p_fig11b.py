"""PARALEON (ICNP 2024), Fig. 11 (b): FB_Hadoop while tuning, by the monitor interval."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import (
    AtLeast,
    AtMost,
    Cause,
    Change,
    Claim,
    Derived,
    Effect,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, Figure, Measure, Measured, Size
from dcqcn_gym.benchmarks.papers.paraleon import (
    ELEPHANTS,
    MICE,
    PARALEON,
    by_name,
    by_size,
    hadoop,
    hops,
    lower,
    ran,
)
from dcqcn_gym.benchmarks.papers.results import Results
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.rows import Row, changed_scenario

PLACE = "section IV-B, Fig. 11 (b)"
SKETCH = "Elastic Sketch"
ROWS = by_name(
    (
        Row("paraleon", changes={"monitor": {"kind": "elastic"}}, given_name=PARALEON),
        Row("paraleon", changes={"monitor": {"kind": "elastic-naive"}}, given_name=SKETCH),
    )
)
RANGES = Row("paraleon-plus-ranges", changes={"monitor": {"kind": "elastic"}},
             given_name="PARALEON, successor's ranges")  # fmt: skip
UNCAPPED = {
    name: Row("paraleon", {"eta": 1.0}, row.changes, f"{name}, eta 1") for name, row in ROWS.items()
}
"""Both without the cap of the guidance, by the name of the row with it."""
LIGHT = {
    name: Row(row.tuner, changes={**row.changes, "workloads": [hadoop("uplink")]},
              given_name=f"{name}, 30 % of uplinks")
    for name, row in ROWS.items()
}  # fmt: skip
"""Both at the other reading of the load, by the name of the row at 30 % of the hosts' links."""
EVERY = {**ROWS, RANGES.name: RANGES, **by_name((*UNCAPPED.values(), *LIGHT.values()))}
INTERVALS = (1, 2, 5, 10)


def parted(ms: int, results: Results, seed: int) -> float:
    """Return 1 if both searches take the same steps with the cap, and others without it."""

    def same(one: str, other: str) -> bool:
        return all(
            results.value(name, one, ms, seed) == results.value(name, other, ms, seed)
            for name in (MICE, ELEPHANTS)
        )

    free = [row.name for row in UNCAPPED.values()]
    return float(same(PARALEON, SKETCH) and not same(free[0], free[1]))


SAME = {
    ms: Cause(
        "both monitors find mice to be more than four fifths of the flows, and eta caps the "
        "guidance at 0.8: the two searches take the same steps. In the series without the cap "
        "they differ",
        Derived(partial(parted, ms)), AtLeast(1),
    )
    for ms in (5, 10)
}  # fmt: skip
GUIDED = Cause(
    "a single interval shows little of a large flow, so the plain sketch counts more mice, and "
    "its search goes further towards delay: mice are faster, elephants slower. Without the cap on"
    " the guidance (a series) both effects grow",
    Change(MICE, UNCAPPED[SKETCH].name, SKETCH, 1), AtMost(-0.1),
)  # fmt: skip
CAUSES = {1: GUIDED, 2: GUIDED, **SAME}
FURTHER = Cause(
    "more steps lead the search further to the ends of its ranges that starve large flows; within "
    "the successor's ranges, with as many steps, they are half as slow",
    Change(ELEPHANTS, RANGES.name, PARALEON, 1), Effect(-0.5),
)  # fmt: skip


OVERLOAD = Cause(
    "30 % of the hosts' links overload the uplinks (106 %), and mice wait behind a growing "
    "backlog; at 30 % of the uplinks (series) a smaller interval is better for them",
    Change(MICE, LIGHT[PARALEON].name, LIGHT[PARALEON].name, 10, 1), Sign(1),
)  # fmt: skip


def measure(cell: Cell, size: Size) -> Measured:
    """Run PARALEON's search at an interval, on the same traffic whatever the interval is."""
    base = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    changed = {"monitor_interval_us": float(cell.x) * 1e3, "warmup_us": 10_000}
    scenario = changed_scenario(base, changed, "P-fig11b")
    run = ran(scenario, EVERY[cell.row], cell.seed, size.length_ms)
    return Measured(by_size(run), {}, hops(run))


def _points(uncapped: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return every row with its intervals; ``uncapped``: those of the rows without the cap."""
    light = (row.name for row in LIGHT.values())
    return {**dict.fromkeys((*ROWS, *light), INTERVALS), RANGES.name: (1,), **uncapped}


BOTH = {row.name: INTERVALS for row in UNCAPPED.values()}
FIGURE = Figure(
    name="P-fig11b",
    paper="paraleon",
    title="completion times by monitor interval",
    x="interval, ms",
    sizes={
        "smoke": Size(_points(BOTH), 2, 10, {"hosts": 16}),
        "quick": Size(_points(BOTH), 5, 120, {"hosts": 16}),
        "full": Size(_points({UNCAPPED[SKETCH].name: (1,)}), 5, 400, {"hosts": 128}),
    },
    measure=measure,
    measures=(
        Measure(MICE, "below 120 KB, mean slowdown", 1, ".3f"),
        Measure(ELEPHANTS, "above 1 MB, mean slowdown", 1, ".1f"),
    ),
    claims=(
        *(
            lower(f"lower than with Elastic Sketch at {ms} ms: mice", PLACE, MICE, PARALEON, SKETCH,
                  ms, cause=CAUSES[ms])
            for ms in INTERVALS
        ),
        *(
            Claim(f"a smaller interval is better: {name} at 10 ms against 1 ms", PLACE,
                  Change(name, PARALEON, PARALEON, 10, 1), Sign(1), 100, " %", "+.1f", cause)
            for name, cause in ((MICE, OVERLOAD), (ELEPHANTS, FURTHER))
        ),
    ),
    plots=(
        Against(MICE, "Mean slowdown below 120 KB", "interval, ms", tuple(ROWS), log_x=True),
        Against(ELEPHANTS, "Mean slowdown above 1 MB", "interval, ms", tuple(ROWS), log_x=True),
    ),
    ours=(
        "FB_Hadoop at 30 % of the hosts' links, in two series of the uplinks; the paper does not "
        "say which",
        "quick: 16 hosts at 25 Gb/s. The intervals are ours; all have the same traffic and time, "
        "so longer ones have made fewer steps",
    ),
)  # fmt: skip
