"""ACC (SIGCOMM 2021), Fig. 15: the queue of one port around a burst."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.acc import OURS, ROWS, fabric, points
from dcqcn_gym.benchmarks.papers.claims import Change, Claim, Direction
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Over, Size
from dcqcn_gym.benchmarks.papers.probe import thinned
from dcqcn_gym.benchmarks.papers.tuned import tuned
from dcqcn_gym.envs.scenario.acc_loads import steady
from dcqcn_gym.simulate.trace import port_names

PLACE = "section 6, Fig. 15"
NAMES = ("ACC", "SECN1", "SECN2")
BURST_MS, CLEAR_MS = 4.0, 7.5
"""When the burst begins, from time 0 on, and when it has passed."""


def measure(cell: Cell, size: Size) -> Measured:
    """Run 30 % of WebSearch among 15 hosts; at 4 ms all of them send 500 KB to host 0, once."""
    (others,) = steady("WebSearch", 0.3)
    burst = {"kind": "incast", "dst": 0, "bytes": 500_000, "start_us": BURST_MS * 1e3, "rounds": 1}
    scenario = fabric(16, [{**others, "hosts": list(range(1, 16))}, burst])
    sink = next(p.number for p in port_names(scenario.fabric) if p.peer == 0)
    tuner, arguments = ROWS[cell.row]
    seen = tuned(scenario, tuner, cell.seed, size.length_ms, arguments=arguments, watch=[sink])
    time, queue = np.array(seen.queue).T
    burst_on = (time > BURST_MS * 1e-3) & (time <= CLEAR_MS * 1e-3)
    values = {"queue": float(queue[burst_on].mean()), "worst": float(queue[burst_on].max())}
    values["sent"] = float(
        np.mean([r.port_tx_bytes[sink] / (r.port_rate_bps[sink] * r.duration_s / 8)
                 for r in seen.reports if BURST_MS * 1e9 <= r.start_ps < CLEAR_MS * 1e9])
    )  # fmt: skip
    return Measured(values, {"queue": thinned(time, queue)}, seen.hops)


FIGURE = Figure(
    name="A-fig15",
    paper="acc",
    title="the queue of a port around a burst",
    x="from",
    sizes={
        "smoke": Size(points(NAMES, ("4 ms",)), 2, length_ms=4),
        "quick": Size(points(NAMES, ("4 ms",)), 5, length_ms=8),
        "full": Size(points(NAMES, ("4 ms",)), 20, length_ms=8),
    },
    measure=measure,
    measures=(
        Measure("queue", "mean queue of 3.5 ms, KB", 1e-3, ".0f"),
        Measure("worst", "longest queue, KB", 1e-3, ".0f"),
        Measure("sent", "rate of the port, %", 1e2, ".0f"),
    ),
    claims=(
        Claim("ACC keeps the queue short where a static threshold lets it grow: mean against SECN2",
              PLACE, Change("queue", "ACC", "SECN2", "4 ms"), Direction(-1), 100, " %", "+.0f"),
        Claim("the same against SECN1",
              PLACE, Change("queue", "ACC", "SECN1", "4 ms"), Direction(-1), 100, " %", "+.0f"),
        Claim("throughput is kept: rate of the port against SECN1",
              PLACE, Change("sent", "ACC", "SECN1", "4 ms"), Direction(1), 100, " %", "+.1f"),
    ),
    plots=(
        Over("queue", "Queue towards host 0, KB", "ms", tuple((n, "4 ms") for n in NAMES),
             1e-3, 1e3),
    ),
    ours=(*OURS, "the burst: the paper shows a queue and no traffic; 16 hosts at every size"),
)  # fmt: skip
