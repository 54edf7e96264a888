"""DCQCN+ (ICNP 2018), Fig. 10: ConnectX-4 with the values that DCQCN+ would converge to."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.claims import AtMost, Claim, Growth
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.incast import RATE, ROWS, WORST, incast, large_incast
from dcqcn_gym.core.presets import dcqcn_static_setting

PLACE = "section V-D, Fig. 10"
CARD, STATIC = "cx4", "cx4, static values"
NIC_CARD, NIC_STATIC = f"{CARD}, alpha of NICs", f"{STATIC}, alpha of NICs"
ALPHA = ("rp_dce_tcp_g", "rp_dce_tcp_rtt", "rp_initial_alpha_value")


def measure(cell: Cell, size: Size) -> CellResult:
    """Run so many flows at 10 Gb/s; queue and round trip from ``converged_ms`` on."""
    scenario = incast(ROWS["cx4"], 10, int(cell.x))
    setting = scenario.initial_setting()
    static = dcqcn_static_setting(int(cell.x), 10e9)  # alpha's knobs: as published
    if cell.row in (STATIC, NIC_STATIC):
        setting = setting.replace({k: static[k] for k in ("rp_time_reset", "rp_ai_rate")})
    if cell.row in (CARD, STATIC):
        setting = setting.replace({k: static[k] for k in ALPHA})
    return large_incast(
        scenario, cell.seed, size.length_ms, setting, late_s=size.more["converged_ms"] * 1e-3
    )


def _times_lower(flows: int, what: str, name: str) -> Claim:
    return Claim(
        f"{flows} flows: {what} is 10 times lower with the static values (5 times counts)",
        PLACE, Growth(name, STATIC, CARD, flows), AtMost(-0.8, -0.5), 100, " %", "+.0f",
    )  # fmt: skip


COUNTS = (480, 560, 640, 1000)
ROWS_OF = (CARD, STATIC, NIC_CARD, NIC_STATIC)
FIGURE = Figure(
    name="D-fig10",
    paper="dcqcn-plus",
    title="the parameters of ConnectX-4 with the static values of DCQCN+, 10 Gb/s",
    x="flows",
    sizes={
        "smoke": Size(dict.fromkeys(ROWS_OF, (480, 1000)), 1, 10, {"converged_ms": 5}),
        "quick": Size(dict.fromkeys(ROWS_OF, (480, 1000)), 3, 2000, {"converged_ms": 1500}),
        "full": Size(dict.fromkeys(ROWS_OF, COUNTS), 5, 10_000, {"converged_ms": 5000}),
    },
    measure=measure,
    measures=(
        Measure("queue", "median queue, KB", 1e-3, ".0f"),
        WORST,
        Measure("latency", "mean round trip, us", 1e6, ".0f"),
        RATE,
    ),
    claims=(
        _times_lower(480, "the latency", "latency"),
        _times_lower(1000, "the latency", "latency"),
        _times_lower(480, "the buffer in use", "worst"),
        _times_lower(1000, "the buffer in use", "worst"),
    ),
    plots=(
        Against("latency", "Mean round trip, us", "flows", (), 1e6, log_y=True),
        Against("worst", "99th percentile of the queue, KB", "flows", (), 1e-3, log_y=True),
    ),
    ours=(
        "ConnectX-4 cards are replaced by DCQCN as published with their parameters, so ratios are"
        " compared, no absolute value",
        "alpha, which Table I does not give: as published (55 us, 1/256), with which 480 flows "
        "have about the round trip and queue of the paper's cards (section III-C: 2 ms, 4 MB). "
        "With alpha as in NICs today (1 us, 5/1024) static values do not drain either (series)",
        "the paper looks 5 s after the start (size full), size quick 1.5 s",
    ),
    revision=2,
)  # fmt: skip
