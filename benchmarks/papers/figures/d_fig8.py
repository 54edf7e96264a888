"""DCQCN+ (ICNP 2018), Fig. 8: three flows that start one after another."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import (
    AtMost,
    Between,
    Cause,
    Claim,
    Growth,
    Level,
    Reading,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.incast import BUFFER, BUFFERS, ROWS, SINK, network
from dcqcn_gym.benchmarks.papers.probe import probe, thinned
from dcqcn_gym.core.interval import FloatArray

PLACE = "section V-B, Fig. 8"
STARTS_MS = (0, 100, 300)
SCHEMES = ("dcqcn", "dcqcn-plus")
STEEP, SINGLE = "dcqcn, R_AI 1 % of the link", "dcqcn-plus, single steps"
QUICK, HIGH = "dcqcn-plus, g = 1/16", "dcqcn-plus, marking four times as high"
OTHER_BUFFERS = [f"dcqcn-plus, {buffer}" for buffer in BUFFERS]


def measure(cell: Cell, size: Size) -> CellResult:
    """Run flows that start at 0, 0.1 and 0.3 of the length; rates in the last half of it."""
    gbps, scale = int(str(cell.x).removesuffix("G")), size.length_ms / 1000
    flows: list[dict[str, object]] = [
        {"src": 1 + i, "dst": 0, "bytes": "unlimited", "start_ns": round(start * 1e6 * scale)}
        for i, start in enumerate(STARTS_MS)
    ]
    scheme, _, change = cell.row.partition(", ")
    traffic = [{"kind": "flows", "flows": flows}]
    scenario = network(ROWS[scheme], gbps, traffic, BUFFERS.get(change, BUFFER))
    changes: dict[str, dict[str, float]] = {
        STEEP: {"rp_ai_rate": gbps * 10.0}, SINGLE: {"plus_alpha_large": 100.0},
        QUICK: {"plus_g": 64}, HIGH: {"kmin": 80, "kmax": 800},
    }  # fmt: skip
    setting = scenario.initial_setting().replace(changes.get(cell.row, {}))
    seen = probe(scenario, cell.seed, size.length_ms, every_us=200, ports=[SINK], setting=setting)
    line, late = gbps * 1e9, seen.after(size.length_ms * 0.5e-3)
    sent = seen.sent[:, 1:4]
    shares = sent[late].mean(axis=0) * 3 / line
    means = np.convolve(seen.rate[late], np.full(5, 0.2), "valid")  # over a millisecond
    values = {
        "total": float(seen.rate.mean() / line),
        "late": float(seen.rate[late].mean() / line),
        "unfair": float(np.abs(shares / shares.mean() - 1).max()),
        "spread": float(sent[late].std(axis=0).mean() * 3 / line),
        "smooth": _spread(sent[late], 25) * 3 / line,
        "unsteady": float(means.std() / line),
    }
    series = {f"flow {i}": thinned(seen.time, sent[:, i] / line) for i in range(3)}
    series["rate"] = thinned(seen.time, seen.rate / line)
    return CellResult(values, {} if cell.row in OTHER_BUFFERS else series, seen.hops)


def _spread(rates: FloatArray, samples: int) -> float:
    """Return the standard deviation of rates averaged over so many samples, mean of the flows."""
    whole = len(rates) // samples * samples
    return float(rates[:whole].reshape(-1, samples, rates.shape[1]).mean(1).std(0).mean())


def _fair(row: str, x: str) -> Claim:
    return Claim(
        f"{row}, {x}: the rates converge (each within 5 % of the mean)",
        PLACE, Level("unfair", row, x), AtMost(0.05, 0.15), 100, " %", ".1f",
    )  # fmt: skip


LARGER = Cause(
    "DCQCN+ adds 1 % of the link at a step, and 2 % while alpha is above 0.1 (equation 19), which "
    "it is here: ten to twenty times DCQCN's step. Never doubling it wins half of the loss back",
    Growth("total", SINGLE, "dcqcn-plus", "40G"), Sign(1),
)  # fmt: skip
OTHER_TOTALS = (
    Reading("with g = 1/16", Growth("total", QUICK, "dcqcn", "40G")),
    Reading("with marking four times as high", Growth("total", HIGH, "dcqcn", "40G")),
    Reading("in the last half", Growth("late", "dcqcn-plus", "dcqcn", "40G")),
)
BETWEEN = Reading(
    "by how far the rates of the flows are from each other; the paper does not say whether its "
    "variance is over time, as judged",
    Growth("unfair", "dcqcn-plus", "dcqcn", "10G"),
)
POINTS = dict.fromkeys((*SCHEMES, STEEP, SINGLE, QUICK, HIGH, *OTHER_BUFFERS), ("10G", "40G"))
FIGURE = Figure(
    name="D-fig8",
    paper="dcqcn-plus",
    title="three flows that start one after another",
    x="link",
    sizes={
        "smoke": Size(POINTS, 2, length_ms=10),
        "quick": Size(POINTS, 5, length_ms=1000),
        "full": Size(POINTS, 20, length_ms=1000),
    },
    measure=measure,
    measures=(
        Measure("total", "total rate, % of the link", 1e2, ".1f"),
        Measure("late", "in the last half, %", 1e2, ".1f"),
        Measure("unfair", "farthest flow from the mean, %", 1e2, ".1f"),
        Measure("spread", "spread of a flow's rate, % of its share", 1e2, ".1f"),
        Measure("smooth", "over 5 ms, %", 1e2, ".1f"),
    ),
    claims=(
        *(_fair(row, x) for row in SCHEMES for x in POINTS[row]),
        Claim("10 Gb/s: the total of DCQCN+ is about 4 % lower (0 to 8 % counts)",
              PLACE, Growth("total", "dcqcn-plus", "dcqcn", "10G"),
              Between(-0.08, 0, (-0.16, 0.04)), 100, " %", "+.2f"),
        Claim("40 Gb/s: the total is similar (within 2 %)",
              PLACE, Growth("total", "dcqcn-plus", "dcqcn", "40G"), Between(-0.02, 0.02), 100, " %",
              "+.2f", LARGER, OTHER_TOTALS),
        Claim("10 Gb/s: the rates of DCQCN+ have a little smaller variance",
              PLACE, Growth("spread", "dcqcn-plus", "dcqcn", "10G"), Sign(-1), 100, " %", "+.0f",
              readings=(BETWEEN,)),
    ),
    plots=(
        Over("rate", "Total sending rate, % of the link", "ms",
             (("dcqcn", "10G"), ("dcqcn-plus", "10G"), ("dcqcn", "40G"), ("dcqcn-plus", "40G")),
             1e2, 1e3),
        *(Over(f"flow {i}", f"Sending rate of flow {i + 1}, % of the link", "ms",
               (("dcqcn", "10G"), ("dcqcn-plus", "10G")), 1e2, 1e3, lines=((100 / 3, "a third"),))
          for i in range(3)),
    ),
    ours=("links of 1 us; rates are means over 200 us",),
    revision=3,
)  # fmt: skip
