"""PARALEON (ICNP 2024), Fig. 10 (b): FB_Hadoop while tuning by what each monitor sees."""

from __future__ import annotations

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
from dcqcn_gym.runs.entries import Entry

PLACE = "section IV-B, Fig. 10 (b)"
MONITORS = {
    PARALEON: "elastic", "Elastic Sketch": "elastic-naive", "NetFlow": "netflow", "No FSD": "none",
}  # fmt: skip
BYTES, AS_BEFORE, UPLINKS = "PARALEON, by bytes", ", prototype's ranges", ", 30 % of uplinks"
RIVALS = ("Elastic Sketch", "NetFlow")
"""Whom other readings are held against: without a distribution the run is NetFlow's."""


def _within(ranges: str) -> dict[str, Entry]:
    """Return the rows within ranges, with some at the other load, whose names have an end."""
    args = {"ranges": ranges}
    found = [Entry("paraleon-bytes", args, {"monitor": {"kind": "elastic"}}, BYTES)]
    for name, kind in MONITORS.items():
        monitor = {"monitor": {"kind": kind}}
        found.append(Entry("paraleon", args, monitor, name))
        if name in (PARALEON, *RIVALS):
            light = {**monitor, "workloads": [hadoop("uplink")]}
            found.append(Entry("paraleon", args, light, f"{name}{UPLINKS}"))
    return dict(by_name(found))


OTHERS = tuple(row for row in MONITORS if row != PARALEON)
EARLIER = {f"{name}{AS_BEFORE}": row for name, row in _within("prototype").items()}
EVERY = {**_within("later"), **EARLIER}
PLACES = ("FB_Hadoop",)


def measure(cell: Cell, size: Size) -> CellResult:
    """Run PARALEON's search on what one monitor tells it."""
    scenario = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    run = ran(scenario, EVERY[cell.row], cell.seed, size.length_ms)
    return CellResult({**by_size(run), "mu": float(run.fsd("mu").mean())}, {}, hops(run))


COUNT = Cause(
    "a correct distribution is mostly mice, so it steers towards delay, at the cost of large "
    "flows. Where the bytes of the same distribution decide, large flows are several times as "
    "fast",
    Growth(ELEPHANTS, BYTES, PARALEON, PLACES[0]), AtMost(-0.5),
)  # fmt: skip


def _read(text: str, end: str = "", measure: str = ELEPHANTS) -> Reading:
    cells = {row: Growth(measure, PARALEON + end, row + end, PLACES[0]) for row in RIVALS}
    return Reading(text, cells)


OTHER = (
    _read(WITHIN, AS_BEFORE),
    _read("at 30 % of the uplinks", UPLINKS),
    _read("by the flows that finish", measure=f"{ELEPHANTS} finished"),
)
FIGURE = Figure(
    name="P-fig10b",
    paper="paraleon",
    title="completion times with each monitor",
    x="traffic",
    sizes={
        "smoke": Size(dict.fromkeys(EVERY, PLACES), 2, 4, {"hosts": 16}),
        "quick": Size(dict.fromkeys(EVERY, PLACES), 8, 120, {"hosts": 16}),
        "full": Size(dict.fromkeys(EVERY, PLACES), 5, 400, {"hosts": 128}),
    },
    measure=measure,
    measures=(
        Measure(MICE, "below 120 KB, mean slowdown", 1, ".3f"),
        Measure(ELEPHANTS, "above 1 MB, mean slowdown", 1, ".1f"),
        Measure("mu", "mu", 1, ".3f"),
    ),
    claims=tuple(
        Claim(f"the lowest completion times: {what}", PLACE,
              {row: Growth(name, PARALEON, row, PLACES[0]) for row in OTHERS}, Sign(-1), 100, " %",
              "+.1f", COUNT, readings)
        for name, what, readings in ((MICE, "mice", ()), (ELEPHANTS, "elephants", OTHER))
    ),
    plots=(
        Against(MICE, "Mean slowdown below 120 KB", "monitor", (*MONITORS, BYTES)),
        Against(ELEPHANTS, "Mean slowdown above 1 MB", "monitor", (*MONITORS, BYTES)),
    ),
    ours=(
        "quick: 16 hosts at 25 Gb/s, 120 intervals. NetFlow exports every second, so it never "
        "reports here, and mu is 0.5",
        "the monitor acts through mu alone, which min(mu, eta) caps at 0.8: an effect can only be"
        " small",
    ),
    before={row.removesuffix(AS_BEFORE): row for row in EARLIER},
    revision=2,
)  # fmt: skip
