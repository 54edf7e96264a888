"""PARALEON (ICNP 2024), Fig. 11 (b): FB_Hadoop while tuning, by the monitor interval."""

from __future__ import annotations

from collections.abc import Mapping

from dcqcn_gym.benchmarks.papers.claims import AtMost, Cause, Claim, Effect, Growth, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.paraleon import (
    ELEPHANTS,
    MICE,
    PARALEON,
    by_name,
    by_size,
    hadoop,
    hops,
    ran,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import Entry, changed_scenario

PLACE = "section IV-B, Fig. 11 (b)"
SKETCH = "Elastic Sketch"
ROWS = by_name(
    (
        Entry("paraleon-prototype", changes={"monitor": {"kind": "elastic"}}, given_name=PARALEON),
        Entry(
            "paraleon-prototype", changes={"monitor": {"kind": "elastic-naive"}}, given_name=SKETCH
        ),
    )
)
RANGES = Entry("paraleon", changes={"monitor": {"kind": "elastic"}},
             given_name="PARALEON, successor's ranges")  # fmt: skip
UNCAPPED = {
    name: Entry("paraleon-prototype", {"eta": 1.0}, row.changes, f"{name}, eta 1")
    for name, row in ROWS.items()
}
"""Both without the cap of the guidance, by the name of the row with it."""
LIGHT = {
    name: Entry(row.tuner, changes={**row.changes, "workloads": [hadoop("uplink")]},
              given_name=f"{name}, 30 % of uplinks")
    for name, row in ROWS.items()
}  # fmt: skip
"""Both at the other reading of the load, by the name of the row at 30 % of the hosts' links."""
EVERY = {**ROWS, RANGES.name: RANGES, **by_name((*UNCAPPED.values(), *LIGHT.values()))}
INTERVALS = (1, 2, 5, 10)


def _read(text: str, measure: str = MICE, row: str = PARALEON, other: str = SKETCH) -> Reading:
    return Reading(text, {f"{ms} ms": Growth(measure, row, other, ms) for ms in INTERVALS})


OTHERS = (
    _read("at 30 % of the uplinks", MICE, LIGHT[PARALEON].name, LIGHT[SKETCH].name),
    _read("by the flows that finish", f"{MICE} finished"),
    _read("by the 99.9th percentile", f"{MICE} p99.9"),
)
GUIDED = Cause(
    "a single interval shows little of a large flow, so the plain sketch counts more mice, and "
    "its search goes further towards delay: mice are faster, elephants slower. Without the cap on"
    " the guidance (a series) both effects grow; at 5 and 10 ms both monitors find mice to be more "
    "than four fifths, eta caps the guidance, and the searches take nearly the same steps",
    Growth(MICE, UNCAPPED[SKETCH].name, SKETCH, 1), AtMost(-0.1),
)  # fmt: skip
FURTHER = Cause(
    "more steps lead the search further to the ends of its ranges that starve large flows; within "
    "the successor's ranges, with as many steps, they are half as slow",
    Growth(ELEPHANTS, RANGES.name, PARALEON, 1), Effect(-0.5),
)  # fmt: skip


OVERLOAD = Reading(
    "at 30 % of the uplinks (series). The paper does not say what its load refers to; 30 % of the "
    "hosts' links overload the uplinks (106 %), and mice wait behind a growing backlog",
    Growth(MICE, LIGHT[PARALEON].name, LIGHT[PARALEON].name, 10, 1),
)  # fmt: skip


def measure(cell: Cell, size: Size) -> CellResult:
    """Run PARALEON's search at an interval, on the same traffic whatever the interval is."""
    base = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    changed = {"monitor_interval_us": float(cell.x) * 1e3, "warmup_us": 10_000}
    scenario = changed_scenario(base, changed, "P-fig11b")
    run = ran(scenario, EVERY[cell.row], cell.seed, size.length_ms)
    return CellResult(by_size(run), {}, hops(run))


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
            Claim(f"better than with Elastic Sketch: {name}", PLACE,
                  {f"{ms} ms": Growth(name, PARALEON, SKETCH, ms) for ms in INTERVALS}, Sign(-1),
                  100, " %", "+.1f", cause, readings)
            for name, cause, readings in ((MICE, GUIDED, OTHERS), (ELEPHANTS, None, ()))
        ),
        *(
            Claim(f"a smaller interval is better: {name} at 10 ms against 1 ms", PLACE,
                  Growth(name, PARALEON, PARALEON, 10, 1), Sign(1), 100, " %", "+.1f", cause,
                  readings)
            for name, cause, readings in ((MICE, None, (OVERLOAD,)), (ELEPHANTS, FURTHER, ()))
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
