"""PARALEON (ICNP 2024), Fig. 7 (a, b): slowdowns of FB_Hadoop by size of flows, while tuning."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Cause,
    Claim,
    Derived,
    Effect,
    Growth,
    Reading,
    SecondHand,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.paraleon import (
    BEFORE,
    EARLIER,
    ELEPHANTS,
    FIVE,
    MICE,
    PARALEON,
    PROTOTYPE,
    WITHIN,
    by_name,
    by_size,
    hadoop,
    hops,
    ran,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import Entry, changed_scenario

PLACE = "section IV-B, Fig. 7"
BYTES = Entry("paraleon-bytes", {"ranges": "prototype"}, given_name=f"{PROTOTYPE}, by bytes")
OPTIONS = (
    replace(
        EARLIER, tuner_args={"weights": "dominant"}, given_name=f"{PROTOTYPE}, weights by type"
    ),
    replace(EARLIER, changes={"rtt_base": "one-way"}, given_name=f"{PROTOTYPE}, one-way base"),
    replace(
        EARLIER,
        changes={"transport": {"rtt_probe_us": 100}},
        given_name=f"{PROTOTYPE}, probes",
    ),
)
"""What the paper or its authors' code have otherwise, one at a time, in the series of before."""
NINE = replace(EARLIER, changes={"knobs": [
    "rp_time_reset", "rp_ai_rate", "rp_hai_rate", "rp_min_rate", "rp_rate_to_set_on_first_cnp",
    "rp_rate_reduce_monitor_period", "kmin", "kmax", "pmax",
]}, given_name=f"{PROTOTYPE}, nine knobs")  # fmt: skip
"""Those of the fourteen that acted in the authors' prototype."""
ROWS = by_name((*FIVE, EARLIER, BYTES, *OPTIONS, NINE))
OTHERS = tuple(row.name for row in FIVE[1:])
HOST, UPLINK = "30 % of hosts", "30 % of uplinks"
LOADS = {HOST: "host", UPLINK: "uplink"}


def measure(cell: Cell, size: Size) -> CellResult:
    """Run FB_Hadoop under a row; slowdowns of every flow that started while it ran."""
    run = played(cell, size, "P-fig7ab")
    return CellResult(figures(run), {}, hops(run))


def figures(run: Series) -> dict[str, float]:
    """Return the slowdowns of a run, and how many flows are under way at its end."""
    return {**by_size(run), "unfinished": float(run.unfinished)}


def played(cell: Cell, size: Size, name: str, **more: float) -> Series:
    """Run FB_Hadoop under a row, with ``more`` keys of the workload; ``name`` is the scenario's."""
    base = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    load = {**hadoop(LOADS[str(cell.x)]), **more}
    scenario = changed_scenario(base, {"workloads": [load]}, name)
    return ran(scenario, ROWS[cell.row], cell.seed, size.length_ms)


def against_worst(row: str, x: str, results: FigureResults, seed: int) -> float:
    """Return a row's mean of large flows over that of the worst of PARALEON's rivals, minus 1."""
    others = [results.value(ELEPHANTS, other, x, seed) for other in OTHERS]
    return results.value(ELEPHANTS, row, x, seed) / max(others) - 1


RIVALS = ("default", "expert", "DCQCN+")
"""Whom PARALEON is compared with but ACC, which we rebuilt."""


def _against(measure: str, row: str = PARALEON, x: str = UPLINK) -> dict[str, Growth]:
    return {other: Growth(measure, row, other, x) for other in RIVALS}


TAIL = f"{ELEPHANTS} p99.9"
OTHER_TAILS = (
    Reading(WITHIN, _against(TAIL, PROTOTYPE)),
    Reading("there with weights by type", _against(TAIL, OPTIONS[0].name)),
    Reading("there with a one-way base", _against(TAIL, OPTIONS[1].name)),
    Reading("by the flows that finish", _against(f"{TAIL} finished")),
)


OVERLOAD = (
    "at 30 % of the hosts' links, the other load that the words allow, the uplinks are overloaded "
    "(106 %), a backlog grows that no setting clears, and small flows take longer than under three "
    "of the four"
)


def large_flows(x: str, measure: str = ELEPHANTS) -> Cause:
    """Return why large flows stay behind, shown at a load."""
    return Cause(
        "most flows are small, so the search goes towards delay: where the bytes of the same "
        "distribution decide (within the prototype's ranges), large flows are several times as "
        "fast",
        Growth(measure, BYTES.name, PROTOTYPE, x), AtMost(-0.5),
    )  # fmt: skip


MEASURES = (
    Measure(MICE, "below 120 KB, mean", 1, ".2f"),
    Measure(f"{MICE} p99.9", "p99.9", 1, ".1f"),
    Measure(ELEPHANTS, "above 1 MB, mean", 1, ".1f"),
    Measure(f"{ELEPHANTS} p99.9", "p99.9", 1, ".0f"),
)
POINTS = dict.fromkeys((row for row in ROWS if row != NINE.name), (HOST, UPLINK))
UNFINISHED = Measure("unfinished", "unfinished", 1, ".0f")
FIGURE = Figure(
    name="P-fig7ab",
    paper="paraleon",
    title="slowdowns of FB_Hadoop while tuning",
    x="load",
    sizes={
        "smoke": Size(POINTS, 2, 4, {"hosts": 16}),
        "quick": Size(POINTS, 5, 120, {"hosts": 16}),
        "full": Size(POINTS, 5, 400, {"hosts": 128}),
    },
    measure=measure,
    measures=(
        *MEASURES,
        Measure(f"{ELEPHANTS} finished", "above 1 MB, finished only, mean", 1, ".1f"),
        UNFINISHED,
    ),
    claims=(
        Claim("flows below 120 KB: at least 3.8 % lower mean slowdown than the others", PLACE,
              _against(MICE), AtMost(-0.038, 0), 100, " %", "+.1f"),
        Claim("the same against ACC", PLACE, Growth(MICE, PARALEON, "ACC", UPLINK),
              SecondHand(AtMost(-0.038, 0)), 100, " %", "+.1f"),
        Claim("flows above 1 MB: up to 61.4 % lower mean slowdown than the others", PLACE,
              Derived(partial(against_worst, PARALEON, UPLINK)), SecondHand(Effect(-0.614)), 100,
              " %", "+.1f", large_flows(UPLINK),
              [Reading(WITHIN, Derived(partial(against_worst, PROTOTYPE, UPLINK)))]),
        Claim("flows below 120 KB: a lower 99.9th percentile than the others", PLACE,
              _against(f"{MICE} p99.9"), Sign(-1), 100, " %", "+.1f"),
        Claim("flows above 1 MB: a lower 99.9th percentile than the others", PLACE,
              _against(TAIL), Sign(-1), 100, " %", "+.1f", large_flows(UPLINK, TAIL), OTHER_TAILS),
    ),
    plots=(
        Against(MICE, "Mean slowdown below 120 KB", "load", log_y=True),
        Against(ELEPHANTS, "Mean slowdown above 1 MB", "load", log_y=True),
    ),
    ours=(
        "quick: 16 hosts at 25 Gb/s and 120 of the search's 280 intervals, full: the paper's "
        "fabric; the paper does not say what 30 % refers to: the uplinks count; "
        + OVERLOAD,
        "slowdowns count every flow that started in the first 80 %, unfinished ones at their age;"
        " the paper plots finished ones",
        "the last five series are ours. By type: the utility's weights are .5/.2/.3 while "
        "elephants dominate, else .2/.5/.3, as in the authors' code; one-way base: the RTT term "
        "as printed; probes: the round trip of one packet in 100 us and queue pair",
        "ACC (the network of the package) decides once per interval of 1 ms",
    ),
    before=BEFORE,
    revision=2,
)  # fmt: skip
