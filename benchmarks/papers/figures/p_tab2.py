"""PARALEON (ICNP 2024), Table II: NCCL's all-to-all of 128 cards, default against expert."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import Claim, Effect, Growth
from dcqcn_gym.benchmarks.papers.collective import algbw, cluster
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.paraleon import by_name, hops, ran
from dcqcn_gym.runs.entries import Entry

PLACE = "section II-B, Table II"
ROWS = by_name((Entry("default"), Entry("expert")))
PAPER = {512: (6.37, 25.69), 1024: (4.73, 12.59), 2048: (4.73, 12.97), 4096: (6.95, 39.32),
         8192: (11.56, 40.93)}  # fmt: skip
"""Message in MB: algbw in GB/s under the default and under the experts' setting."""
RANKS = 128


def measure(cell: Cell, size: Size) -> CellResult:
    """Run one all-to-all in which each pair has the paper's share of a message."""
    pair = int(cell.x) * 1_000_000 // RANKS
    scenario = cluster(int(size.more["cards"]), int(size.more["per_tor"]), pair, rounds=1)
    run = ran(scenario, ROWS[cell.row], cell.seed, size.length_ms)
    return CellResult({"algbw": algbw(run), "paused": float(run.pause_share.mean())}, {}, hops(run))


def _claim(message: int) -> Claim:
    default, expert = PAPER[message]
    return Claim(
        f"{message} MB: {expert:g} instead of {default:g} GB/s with the experts' setting", PLACE,
        Growth("algbw", "expert", "default", message), Effect(expert / default - 1), 100, " %",
        "+.0f",
    )  # fmt: skip


def _points(*messages: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(ROWS, messages)


FIGURE = Figure(
    name="P-tab2",
    paper="paraleon",
    title="an all-to-all of a cluster under default and expert",
    x="message, MB",
    sizes={
        "smoke": Size(_points(*PAPER), 2, 2, {"cards": 8, "per_tor": 2}),
        "quick": Size(_points(*PAPER), 3, 200, {"cards": 32, "per_tor": 4}),
        "full": Size(_points(*PAPER), 3, 3000, {"cards": 128, "per_tor": 8}),
    },
    measure=measure,
    measures=(
        Measure("algbw", "algbw, GB/s", 1e-9, ".2f"),
        Measure("paused", "paused, mean device, %", 1e2, ".1f"),
    ),
    claims=tuple(map(_claim, PAPER)),
    plots=(
        Against("algbw", "algbw, GB/s", "message, MB", scale=1e-9, log_x=True, log_y=True),
    ),
    ours=(
        "a proxy, so absolute values are not claimed: cards as hosts at 400 Gb/s, packets of 4096"
        " B, two tiers 1:1, one persistent queue pair per pair; no NCCL, NVLink or servers' own "
        "time",
        "quick: 32 cards, four to a ToR, that send each other what 128 would (message / 128 per "
        "pair), full: 128, eight to a ToR",
    ),
)  # fmt: skip
