"""PARALEON (ICNP 2024), Fig. 9: the influx of another workload against pretrained settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dcqcn_gym.benchmarks.papers.claims import AtMost, Cause, Claim, Growth, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.paraleon import (
    BEFORE,
    INFLUX,
    PARALEON,
    PROTOTYPE,
    SIZES_OF_INFLUX,
    WITHIN,
    by_name,
    hops,
    through_influx,
)
from dcqcn_gym.benchmarks.papers.probe import thinned
from dcqcn_gym.runs.entries import Entry

PLACE = "section IV-B, Fig. 9"
TRIED = {
    "PARALEON, not triggered": "with a search that needs no trigger",
    PROTOTYPE: WITHIN,
    "PARALEON, weights by type": "with weights by type",
}
"""Rows of other readings, in words."""
ALWAYS, _, BY_TYPE = TRIED
LATER = "PARALEON, later ranges"
THERE = {ALWAYS: f"{PROTOTYPE}, not triggered", BY_TYPE: f"{PROTOTYPE}, weights by type"}
"""Both within the prototype's ranges."""
FIRST, SECOND = "Pretrained 1", "Pretrained 2"
ROWS = by_name(
    (
        Entry("paraleon", changes={"trigger": "kl"}, given_name=PARALEON),
        Entry("pretrained-alltoall", given_name=FIRST),
        Entry("pretrained-fbhadoop", given_name=SECOND),
        Entry("paraleon", changes={"trigger": "always"}, given_name=ALWAYS),
        Entry("paraleon-prototype", changes={"trigger": "kl"}, given_name=PROTOTYPE),
        Entry("paraleon", {"weights": "dominant"}, {"trigger": "kl"}, given_name=BY_TYPE),
        Entry("paraleon-prototype", {}, {"trigger": "always"}, given_name=THERE[ALWAYS]),
        Entry("paraleon-prototype", {"weights": "dominant"}, {"trigger": "kl"}, THERE[BY_TYPE]),
    )
)
OTHERS = (FIRST, SECOND)
JUDGED = (PARALEON, *OTHERS)
FULL = (*JUDGED, PROTOTYPE)


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the all-to-all with an influx; figures in the influx, and from a sixth of it after."""
    run, values = through_influx(ROWS[cell.row], cell.seed, size)
    time = run.column("start_ps") * 1e-12
    trips = thinned(time[run.busy], run.column("rtt_mean_ps")[run.busy] * 1e-12)
    return CellResult(values, {"rtt": trips}, hops(run))


CAUSE = Cause(
    "the setting pretrained on FB_Hadoop has short round trips because it sends less: links are a"
    " fifth less busy in the influx, and after it two thirds of the throughput are missing",
    Growth("rate after", SECOND, PARALEON, "influx"), AtMost(-0.4),
)  # fmt: skip


def _points(rows: Iterable[str] = ROWS) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(rows, ("influx",))


def _others(tried: Mapping[str, str], name: str, rival: str) -> list[Reading]:
    return [
        Reading(said, Growth(name, row, rival, "influx"), at="" if row in FULL else "quick")
        for row, said in tried.items()
    ]


def claims(tried: Mapping[str, str]) -> tuple[Claim, ...]:
    """Return the claims; ``tried``: rows of other readings, in words."""
    return tuple(
        Claim(f"{what} than {row}", PLACE, Growth(name, PARALEON, row, "influx"), Sign(way), 100,
              " %", "+.1f", cause, _others(tried, name, row))
        for what, name, way, cause in (("lower round trips in the influx", "rtt", -1, CAUSE),
                                       ("higher throughput after it", "rate after", 1, None))
        for row in OTHERS
    )  # fmt: skip


FIGURE = Figure(
    name="P-fig9",
    paper="paraleon",
    title="an influx of FB_Hadoop against pretrained settings",
    x="traffic",
    data_acks=JUDGED,
    before=BEFORE,
    revision=2,
    sizes={
        "smoke": Size(_points(), 2, 14, {"hosts": 16, "begin_ms": 6, "influx_ms": 4}),
        "quick": Size(_points(), 5, 120, {"hosts": 16, "begin_ms": 40, "influx_ms": 30}),
        "full": Size(_points(FULL), 5, 400, {"hosts": 128, "begin_ms": 200, "influx_ms": 30}),
    },
    measure=measure,
    measures=(
        *INFLUX,
        Measure("rate after", "delivered after it, Gb/s", 1e-9, ".1f"),
    ),
    claims=claims(TRIED),
    plots=(
        Over("rtt", "Mean round trip, us", "ms",
             tuple((row, "influx") for row in FULL), 1e6, 1e3),
    ),
    ours=(
        SIZES_OF_INFLUX,
        "the influx begins after 40 ms, at full size 200, not 2 s",
        "the pretrained settings are the package's, from 280 intervals of PARALEON on "
        "`llm-alltoall` and `fb-hadoop` at 100 Gb/s, marking scaled with the line rate",
        "after: from a sixth of the influx's length after its end on",
    ),
)  # fmt: skip
