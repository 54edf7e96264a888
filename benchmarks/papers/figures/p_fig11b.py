"""PARALEON (ICNP 2024), Fig. 11 (b): FB_Hadoop while tuning, by the monitor interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import AtMost, Cause, Claim, Growth, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.paraleon import (
    ELEPHANTS,
    MICE,
    PARALEON,
    WITHIN,
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
JUDGED = {PARALEON: "elastic", SKETCH: "elastic-naive"}
"""The rows that are compared, and their monitors."""
AS_BEFORE, UNCAPPED, LIGHT = ", prototype's ranges", ", eta 1", ", 30 % of uplinks"
"""Ends of names: within the prototype's ranges, without the cap of the guidance, and at the other
reading of the load."""


def within(tuner: str) -> dict[str, Entry]:
    """Return both rows with a search, without its cap and at the other load."""
    found = []
    for name, kind in JUDGED.items():
        monitor = {"monitor": {"kind": kind}}
        light = {**monitor, "workloads": [hadoop("uplink")]}
        found += [
            Entry(tuner, changes=monitor, given_name=name),
            Entry(tuner, {"eta": 1.0}, monitor, f"{name}{UNCAPPED}"),
            Entry(tuner, changes=light, given_name=f"{name}{LIGHT}"),
        ]
    return dict(by_name(found))


EARLIER = {f"{name}{AS_BEFORE}": row for name, row in within("paraleon-prototype").items()}
LATER = {name: row for name, row in within("paraleon").items() if not name.endswith(UNCAPPED)}
EVERY = {**LATER, **EARLIER}
INTERVALS = (1, 2, 5, 10)


def _read(text: str, measure: str = MICE, row: str = PARALEON, other: str = SKETCH) -> Reading:
    return Reading(text, {f"{ms} ms": Growth(measure, row, other, ms) for ms in INTERVALS})


def _others(measure: str, earlier: bool) -> list[Reading]:
    """Return the other readings; ``earlier``: with the prototype's ranges, where they are rows."""
    ends = {"at 30 % of the uplinks": LIGHT, **({WITHIN: AS_BEFORE} if earlier else {})}
    return [
        *(_read(said, measure, f"{PARALEON}{end}", f"{SKETCH}{end}") for said, end in ends.items()),
        _read("by the flows that finish", f"{measure} finished"),
        _read("by the 99.9th percentile", f"{measure} p99.9"),
    ]


def guided(end: str) -> Cause:
    """Return why mice gain nothing, shown by rows whose names have this end."""
    return Cause(
        "a single interval shows little of a large flow, so the plain sketch counts more mice, and "
        "its search goes further towards delay: mice are faster, elephants slower. Without the cap "
        "on the guidance (a series) both effects grow; at 5 and 10 ms both monitors find mice to "
        "be more than four fifths, eta caps the guidance, and the searches take nearly the same "
        "steps",
        Growth(MICE, f"{SKETCH}{UNCAPPED}{end}", f"{SKETCH}{end}", 1), AtMost(-0.1),
    )  # fmt: skip


OVERLOAD = Reading(
    "at 30 % of the uplinks (series). The paper does not say what its load refers to; 30 % of the "
    "hosts' links overload the uplinks (106 %), and mice wait behind a growing backlog",
    Growth(MICE, f"{PARALEON}{LIGHT}", f"{PARALEON}{LIGHT}", 10, 1),
)  # fmt: skip


def measure(rows: Mapping[str, Entry], cell: Cell, size: Size) -> CellResult:
    """Run PARALEON's search at an interval, on the same traffic whatever the interval is."""
    base = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    changed = {"monitor_interval_us": float(cell.x) * 1e3, "warmup_us": 10_000}
    scenario = changed_scenario(base, changed, "P-fig11b")
    run = ran(scenario, rows[cell.row], cell.seed, size.length_ms)
    return CellResult(by_size(run), {}, hops(run))


def claims(why: Cause, further: Cause | None, earlier: bool) -> tuple[Claim, ...]:
    """Return the claims; ``why`` mice, ``further`` elephants lose; ``earlier``: see _others."""
    return (
        *(
            Claim(f"better than with Elastic Sketch: {name}", PLACE,
                  {f"{ms} ms": Growth(name, PARALEON, SKETCH, ms) for ms in INTERVALS}, Sign(-1),
                  100, " %", "+.1f", cause, _others(name, earlier))
            for name, cause in ((MICE, why), (ELEPHANTS, None))
        ),
        *(
            Claim(f"a smaller interval is better: {name} at 10 ms against 1 ms", PLACE,
                  Growth(name, PARALEON, PARALEON, 10, 1), Sign(1), 100, " %", "+.1f", cause,
                  readings)
            for name, cause, readings in (
                (MICE, None, (OVERLOAD,)), (ELEPHANTS, further, ()))
        ),
    )  # fmt: skip


def points(rows: Iterable[str], full: bool = False) -> dict[str, tuple[int, ...]]:
    """Return rows with their intervals; at full size one alone shows the cap."""
    found: dict[str, tuple[int, ...]] = {}
    for row in rows:
        if not full or UNCAPPED not in row:
            found[row] = INTERVALS
        elif row.startswith(SKETCH):
            found[row] = (1,)
    return found


FIGURE = Figure(
    name="P-fig11b",
    paper="paraleon",
    title="completion times by monitor interval",
    x="interval, ms",
    sizes={
        "smoke": Size(points(EVERY), 2, 10, {"hosts": 16}),
        "quick": Size(points(EVERY), 5, 120, {"hosts": 16}),
        "full": Size(points(EVERY, full=True), 5, 400, {"hosts": 128}),
    },
    measure=partial(measure, EVERY),
    measures=(
        Measure(MICE, "below 120 KB, mean slowdown", 1, ".3f"),
        Measure(ELEPHANTS, "above 1 MB, mean slowdown", 1, ".1f"),
    ),
    claims=claims(guided(AS_BEFORE), None, earlier=True),
    plots=(
        Against(MICE, "Mean slowdown below 120 KB", "interval, ms", tuple(JUDGED), log_x=True),
        Against(ELEPHANTS, "Mean slowdown above 1 MB", "interval, ms", tuple(JUDGED), log_x=True),
    ),
    ours=(
        "FB_Hadoop at 30 % of the hosts' links, in two series of the uplinks; the paper does not "
        "say which",
        "quick: 16 hosts at 25 Gb/s. The intervals are ours; all have the same traffic and time, "
        "so longer ones have made fewer steps",
    ),
    before={row: f"{row}{AS_BEFORE}" for row in LATER},
    revision=2,
)  # fmt: skip
