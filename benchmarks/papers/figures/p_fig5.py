"""PARALEON (ICNP 2024), Fig. 5: throughput and round trip against single knobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import Cause, Claim, Derived, Growth, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.tuned import under_setting
from dcqcn_gym.core.statistics import rank_agreement
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario

PLACE = "section III-C, Fig. 5"
HAI, CUTS, RESET, KMAX = (
    "rp_hai_rate", "rp_rate_reduce_monitor_period", "rp_time_reset", "kmax",
)  # fmt: skip
FRIENDLY: Mapping[str, int] = {HAI: 1, CUTS: 1, RESET: -1, KMAX: 1}
"""The paper's knobs, and the direction that favours throughput: 1 is up."""
UP = {knob: Sign(way) for knob, way in FRIENDLY.items()}
OVER = ", uplinks 2:1"
"""Rows of the small fabric, whose workers share uplinks of half their rate: the causes."""
NO_STAGE, KEPT = f"{HAI}, no byte stage", f"{HAI}, kept queue pairs{OVER}"
"""The step without stages of bytes, as in the simulators that the authors' stems from, and in a run
six times as long whose rounds go on with the queue pairs of those before."""
TIMER = f"{HAI}, timer alone"
"""The step swept where hyper increases can come: no byte stage, and one every 20 us."""
FAST = {"rp_byte_reset": 0, RESET: 20}
OTHERS: Mapping[str, Mapping[str, float]] = {
    TIMER: FAST, f"{TIMER}{OVER}": FAST, NO_STAGE: {"rp_byte_reset": 0},
}  # fmt: skip
TRIED = {
    NO_STAGE: "without the byte stage", f"{HAI}{OVER}": "with uplinks 2:1",
    KEPT: "there on kept queue pairs, over 60 ms",
}  # fmt: skip
"""Rows of the step's other readings, in words."""
VALUES: Mapping[str, Sequence[float]] = {
    HAI: (10, 50, 150, 500, 1500, 5000),
    CUTS: (1, 4, 12, 40, 80, 200),
    RESET: (20, 50, 100, 300, 600, 1500),
    KMAX: (400, 800, 1600, 3200, 4800, 6400),
}
ROWS = {
    **VALUES,
    **{f"{knob}{OVER}": VALUES[knob] for knob in (CUTS, KMAX)},
    **dict.fromkeys(TRIED, VALUES[HAI]),
    f"{RESET}{OVER}": (100, 300, 1000, 3000, 10000, 30000),
    TIMER: VALUES[HAI],
    f"{TIMER}{OVER}": VALUES[HAI],
}


PLOTTED = {knob: (knob, TIMER if knob == HAI else f"{knob}{OVER}") for knob in FRIENDLY}
"""The rows of each knob's plots."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the all-to-all with one knob at a value, in NVIDIA's units at 100 Gb/s."""
    large = size.more["hosts"] == 128 and not cell.row.endswith(OVER)
    scenario = load_scenario("llm-alltoall" if large else "mini-llm-alltoall")
    knob = cell.row.partition(",")[0]
    value = float(cell.x)
    if knob == KMAX:
        value *= scenario.line_rate_bps / 100e9
    length = round(size.length_ms)
    if cell.row == KEPT:
        scenario, length = changed_scenario(scenario, {"qp": "pair"}, KEPT), 6 * length
    setting = scenario.default_setting().replace({**OTHERS.get(cell.row, {}), knob: value})
    values, hops = under_setting(scenario, setting, cell.seed, length)
    return CellResult({"tp": values["throughput"], "rtt": values["rtt"]}, {}, hops)


def rank(row: str, measure: str, results: FigureResults, seed: int) -> float:
    """Return the rank correlation of a knob and a figure in one seed; 0 if it never changes."""
    places = [float(x) for found, x in results.places if found == row]
    values = [results.value(measure, row, x, seed) for x in places]
    return rank_agreement(places, values) if len(set(values)) > 1 else 0.0


_NEVER = (
    "with the defaults a hyper increase needs a byte stage of 2 MB, which takes a queue pair "
    "milliseconds. With the byte stage following a timer of 20 us a larger step gives more "
    "throughput, and on shared uplinks longer round trips"
)
_BALANCED = (
    "where workers share uplinks of half their rate (series with uplinks 2:1, 16 hosts); the paper "
    "does not say where its 20 workers are. Over eight racks they fill no uplink, so that what "
    "raises throughput shortens the round trip"
)


def _claim(knob: str, measure: str, what: str) -> Claim:
    way = "raising" if FRIENDLY[knob] > 0 else "lowering"
    cause: Cause | None = None
    readings = tuple(Reading(said, Derived(partial(rank, row, measure)))
                     for row, said in TRIED.items())  # fmt: skip
    if knob != HAI:
        readings = (Reading(_BALANCED, Derived(partial(rank, f"{knob}{OVER}", measure))),)
    elif measure == "tp":
        cause = Cause(_NEVER, Growth("tp", TIMER, TIMER, 500, 10), UP[knob])
    else:
        cause = Cause(_NEVER, Derived(partial(rank, f"{TIMER}{OVER}", measure)), UP[knob])
    return Claim(
        f"{way} {knob.removeprefix('rp_')} raises {what} (rank correlation)", PLACE,
        Derived(partial(rank, knob, measure)), UP[knob], 1, "", "+.2f", cause, readings,
    )  # fmt: skip


def _ends() -> dict[str, Sequence[float]]:
    """Return a small and a larger value of each row."""
    return {row: (values[0], values[3]) for row, values in ROWS.items()}


FIGURE = Figure(
    name="P-fig5",
    paper="paraleon",
    title="throughput and round trip against single knobs",
    x="value",
    sizes={
        "smoke": Size(_ends(), 2, 2, {"hosts": 16}),
        "quick": Size(ROWS, 3, 10, {"hosts": 128}),
        "full": Size(ROWS, 5, 20, {"hosts": 128}),
    },
    measure=measure,
    measures=(
        Measure("tp", "throughput, Gb/s", 1e-9, ".0f"),
        Measure("rtt", "round trip, us", 1e6, ".0f"),
    ),
    claims=tuple(
        _claim(knob, measure, what)
        for knob in FRIENDLY
        for measure, what in (("tp", "throughput"), ("rtt", "the round trip"))
    ),
    plots=tuple(
        Against(name, f"{title} against {knob}", knob, PLOTTED[knob], scale, log_x=True)
        for knob in FRIENDLY
        for name, title, scale in (("tp", "Throughput, Gb/s", 1e-9), ("rtt", "Round trip, us", 1e6))
    ),
    ours=(
        "20 workers on the paper's 128 hosts, 12 MB per pair; other knobs at NVIDIA's default; "
        "the values of each knob are ours",
        "series with uplinks 2:1 are `mini-llm-alltoall`: 8 workers of 16 hosts at 25 Gb/s, Kmax "
        "scaled with the line rate",
    ),
)
