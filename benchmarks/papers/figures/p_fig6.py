"""PARALEON (ICNP 2024), Fig. 6: throughput and round trip over rpg_time_reset and Kmax."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dcqcn_gym.benchmarks.papers.claims import Claim, Derived, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.tuned import under_setting
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.scenario.scenario import load_scenario

PLACE = "section III-C, Fig. 6"
QUICK = ((600, 300, 100, 50, 20, 5), (400, 800, 1600, 3200, 4800, 6400))
FULL = (
    (1200, 900, 600, 450, 300, 200, 100, 70, 50, 30, 20, 5),
    (400, 600, 800, 1200, 1600, 2200, 2800, 3600, 4400, 5200, 5800, 6400),
)
"""Values of time_reset (us) and of Kmax (KB at 100 Gb/s), both towards throughput."""


def _row(kmax: float) -> str:
    return f"Kmax {kmax:g} KB"


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the all-to-all at one pair of values."""
    scenario = load_scenario("llm-alltoall" if size.more["hosts"] == 128 else "mini-llm-alltoall")
    kmax = float(cell.row.split()[1]) * scenario.line_rate_bps / 100e9
    chosen = {"rp_time_reset": float(cell.x), "kmax": kmax}
    setting = scenario.default_setting().replace(chosen)
    values, hops = under_setting(scenario, setting, cell.seed, round(size.length_ms))
    return CellResult({"tp": values["throughput"], "rtt": values["rtt"]}, {}, hops)


def above_the_end(measure: str, sign: int, results: FigureResults, seed: int) -> float:
    """Return by how much the best point within the joint diagonal beats its friendly end.

    The best one by the mean over the seeds, as a share; ``sign`` -1 where smaller is better.
    """
    rows = list(dict.fromkeys(row for row, _ in results.places))
    places = list(dict.fromkeys(x for _, x in results.places))
    diagonal = list(zip(rows, places, strict=True))
    within = diagonal[1:-1] if len(diagonal) > 2 else diagonal[:1]
    best = max(within, key=lambda at: sign * mean(results.values(measure, *at)))
    end = diagonal[-1] if sign > 0 else diagonal[0]
    found, last = (results.value(measure, *at, seed) for at in (best, end))
    return sign * (found / last - 1)


def _size(
    values: tuple[Sequence[float], Sequence[float]], seeds: int, ms: float, hosts: int
) -> Size:
    resets, thresholds = values
    return Size({_row(kmax): resets for kmax in thresholds}, seeds, ms, {"hosts": hosts})


FIGURE = Figure(
    name="P-fig6",
    paper="paraleon",
    title="a surface over two knobs",
    x="time_reset, us",
    sizes={
        "smoke": _size(((300, 100, 20), (400, 1600, 6400)), 2, 2, 16),
        "quick": _size(QUICK, 3, 6, 128),
        "full": _size(FULL, 3, 20, 128),
    },
    measure=measure,
    measures=(
        Measure("tp", "throughput, Gb/s", 1e-9, ".0f"),
        Measure("rtt", "round trip, us", 1e6, ".0f"),
    ),
    claims=(
        Claim(
            "moving time_reset and Kmax together towards throughput does not raise it all the way: "
            "the best point within beats the end by",
            PLACE, Derived(partial(above_the_end, "tp", 1)), Sign(1), 100, " %", "+.1f",
        ),
        Claim(
            "likewise the round trip, towards delay: the best point within is shorter than at the "
            "end by",
            PLACE, Derived(partial(above_the_end, "rtt", -1)), Sign(1), 100, " %", "+.1f",
        ),
    ),
    plots=(
        Against("tp", "Throughput, Gb/s", "time_reset, us", scale=1e-9, log_x=True),
        Against("rtt", "Round trip, us", "time_reset, us", scale=1e6, log_x=True),
    ),
    ours=(
        "20 workers on the paper's 128 hosts, 12 MB per pair; the values of both knobs are ours",
        "the best point is chosen by its mean over the seeds, which slightly favours the claim",
    ),
)  # fmt: skip
