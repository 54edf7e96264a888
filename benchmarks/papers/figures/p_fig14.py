"""PARALEON (ICNP 2024), Fig. 14: SolarRPC comes and goes beside an all-to-all."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import Cause, Claim, Derived, Growth, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.paraleon import (
    BEFORE,
    EARLIER,
    FIVE,
    PARALEON,
    PROTOTYPE,
    WITHIN,
    by_name,
    hops,
    means,
    ran,
)
from dcqcn_gym.benchmarks.papers.probe import thinned
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import Entry, changed_scenario

PLACE = "section IV-C, Fig. 14"
BYTES = Entry("paraleon-bytes", {"ranges": "prototype"}, given_name=f"{PROTOTYPE}, by bytes")
BY_TYPE = Entry("paraleon", {"weights": "dominant"}, given_name="PARALEON, weights by type")
FULL = by_name((*FIVE[:3], EARLIER, BYTES))
SLOW, SLOWER = "PARALEON, 30 ms", 5
"""The row with the interval of the paper's testbed; its run is longer so many times."""
ROWS = {**FULL, BY_TYPE.name: BY_TYPE, SLOW: FULL[PARALEON]}
OTHERS = ("default", "expert")
X = "SolarRPC"


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the all-to-all with a phase of SolarRPC; figures before it, early and late, after."""
    slow = cell.row == SLOW
    begin, phase, length_ms = (
        ms * (SLOWER if slow else 1)
        for ms in (size.more["begin_ms"], size.more["phase_ms"], size.length_ms)
    )
    base = load_scenario("solar-training")
    training, solar = (one.model_dump(mode="json") for one in base.workloads)
    solar |= {"start_us": begin * 1e3, "stop_us": (begin + phase) * 1e3, "repeat_us": 0}
    changes = {"workloads": [training, solar], **({"monitor_interval_us": 30_000} if slow else {})}
    scenario = changed_scenario(base, changes, "P-fig14")
    run = ran(scenario, ROWS[cell.row], cell.seed, length_ms)
    end = begin + phase
    before, during, after = means(run, 0, begin), means(run, begin, end), means(run, end)
    early, late = means(run, begin, begin + phase / 4), means(run, end - phase / 2, end)
    time, trip = run.column("start_ps") * 1e-12, run.column("rtt_mean_ps") * 1e-12
    rate = run.column("throughput_bps")
    return CellResult(
        {"rtt before": before["rtt"], "rtt": during["rtt"], "rtt early": early["rtt"],
         "rtt late": late["rtt"], "rate before": before["rate"], "rate": during["rate"],
         "rate after": after["rate"], "rtt after": after["rtt"]},
        {"rtt": thinned(time[run.busy], trip[run.busy]),
         "rate": thinned(time[run.busy], rate[run.busy])},
        hops(run),
    )  # fmt: skip


def change(measure: str, other: str, row: str, results: FigureResults, seed: int) -> float:
    """Return by how much a row's figure is above another figure of the same row, as a share."""
    return results.value(measure, row, X, seed) / results.value(other, row, X, seed) - 1


def _points(rows: Iterable[str] = ROWS) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(rows, (X,))


PLOTTED = tuple((row, X) for row in FULL)


def _read(text: str, row: str, at: str = "quick") -> Reading:
    return Reading(text, {other: Growth("rate after", row, other, X) for other in OTHERS}, at=at)


TRIED = (
    _read(WITHIN, PROTOTYPE, ""),
    _read("with weights by type", BY_TYPE.name),
    _read("with the testbed's intervals of 30 ms, all five times as long", SLOW),
)
CAUSE = Cause(
    "a few flows of SolarRPC outnumber the all-to-all's and decide the dominant type: where bytes"
    " decide (within the prototype's ranges), the same search delivers more after the phase, "
    "within one or two percent of the expert",
    Growth("rate after", BYTES.name, PROTOTYPE, X), Sign(1),
)  # fmt: skip

FIGURE = Figure(
    name="P-fig14",
    paper="paraleon",
    title="SolarRPC comes and goes beside an all-to-all",
    x="traffic",
    sizes={
        "smoke": Size(_points(), 2, 14, {"begin_ms": 9, "phase_ms": 5}),
        "quick": Size(_points(), 5, 150, {"begin_ms": 55, "phase_ms": 50}),
        "full": Size(_points(FULL), 10, 600, {"begin_ms": 205, "phase_ms": 200}),
    },
    measure=measure,
    measures=(
        Measure("rtt before", "round trip before, us", 1e6, ".0f"),
        Measure("rtt early", "in the phase's first quarter", 1e6, ".0f"),
        Measure("rtt late", "in its last half", 1e6, ".0f"),
        Measure("rtt after", "after it", 1e6, ".0f"),
        Measure("rate before", "delivered before, Gb/s", 1e-9, ".0f"),
        Measure("rate", "in the phase", 1e-9, ".0f"),
        Measure("rate after", "after it", 1e-9, ".0f"),
    ),
    claims=(
        Claim("PARALEON's latency falls while SolarRPC lasts (last half against first quarter)",
              PLACE, Derived(partial(change, "rtt late", "rtt early", PARALEON)), Sign(-1), 100,
              " %", "+.1f"),
        Claim("its latency in the phase is below that of default and expert", PLACE,
              {row: Growth("rtt", PARALEON, row, X) for row in OTHERS}, Sign(-1), 100, " %",
              "+.1f"),
        Claim("its bandwidth recovers after the phase (against during)",
              PLACE, Derived(partial(change, "rate after", "rate", PARALEON)), Sign(1), 100, " %",
              "+.1f"),
        Claim("its bandwidth after the phase is above theirs", PLACE,
              {row: Growth("rate after", PARALEON, row, X) for row in OTHERS}, Sign(1), 100, " %",
              "+.1f", CAUSE, TRIED),
    ),
    plots=(
        Over("rtt", "Mean round trip, us", "ms", PLOTTED, 1e6, 1e3),
        Over("rate", "Delivered, Gb/s", "ms", PLOTTED, 1e-9, 1e3),
    ),
    ours=(
        "a proxy for the testbed: `solar-training`, 16 hosts at 25 Gb/s, intervals of 1 ms, one "
        "phase of a third of the time; SolarRPC's table is not published, and approximated below "
        "128 KB",
    ),
    before=BEFORE,
    revision=2,
)  # fmt: skip
