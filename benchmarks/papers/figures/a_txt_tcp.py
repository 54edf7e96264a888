"""ACC (SIGCOMM 2021), the end of section 5.2: RDMA beside TCP on links of 25 Gb/s."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.benchmarks.papers.acc import CONNECTX, OURS_DRAINED, PUBLISHED, ROWS, WEAK, points
from dcqcn_gym.benchmarks.papers.claims import AtLeast, Claim, Direction, Growth, SecondHand
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.tuned import tuned
from dcqcn_gym.envs.scenario.scenario import Scenario

NAMES = ("ACC", "SECN1", "SECN2", "20 / 80 KB")
SENDERS = {"2 + 2": 2, "8 + 8": 8}  # of RDMA, and as many of TCP; all send to host 0
POINTS = points((*NAMES, *(row + CONNECTX for row in NAMES)), tuple(SENDERS))
LONG = 10_000_000_000  # bytes, more than a run has time for; one of endless flows is over at once


def measure(cell: Cell, size: Size) -> CellResult:
    """Run long flows of both, equal weights; round trips and rate are of RDMA's hosts."""
    n, row = SENDERS[str(cell.x)], cell.row.removesuffix(CONNECTX)
    flows = {"kind": "streams", "flows": n, "bytes": LONG, "dsts": [0], "within_us": 1_000}
    table = {
        "monitor_interval_us": 500, "warmup_us": 2_000,
        "topology": {"kind": "single-switch", "hosts": 2 * n + 1, "gbps": 25},
        "classes": [{"priority": 3}, {"priority": 0, "transport": "tcp"}],
        "workloads": [{**flows, "priority": 3, "hosts": list(range(1, n + 1))},
                      {**flows, "priority": 0, "hosts": list(range(n + 1, 2 * n + 1))}],
    }  # fmt: skip
    scenario = Scenario.model_validate({**table, **(PUBLISHED if row == cell.row else {})})
    tuner, arguments = ROWS[row]
    seen = tuned(scenario, tuner, cell.seed, size.length_ms, arguments=arguments)
    mine = [(r.rtt_src >= 1) & (r.rtt_src <= n) for r in seen.reports]
    count = np.concatenate([r.rtt_count[m] for r, m in zip(seen.reports, mine, strict=True)])
    total = np.concatenate([r.rtt_sum_ps[m] for r, m in zip(seen.reports, mine, strict=True)])
    sent = np.sum([report.port_tx_bytes for report in seen.reports], axis=0)
    node = seen.reports[0].port_node
    whole = 25e9 / 8 * seen.reports[0].duration_s * len(seen.reports)
    return CellResult({
        "rtt": float(total.sum() / count.sum()) * 1e-12,
        "rtt_p99": float(np.percentile(total / count, 99)) * 1e-12,
        "rate": float(sent[(node >= 1) & (node <= n)].sum()) / whole,
        "link": float(sent[node == 2 * n + 1][0]) / whole,
    }, {}, seen.hops)  # fmt: skip


def _claim(text: str, name: str, rule: SecondHand) -> Claim:
    finding = {f"{row}, {x}": Growth(name, "ACC", row, x) for row in NAMES[1:3] for x in SENDERS}
    return Claim(text, "section 5.2", finding, rule, 100, " %", "+.1f", weak=WEAK)


FIGURE = Figure(
    name="A-txt-tcp", paper="acc", title="RDMA beside TCP", x="senders",
    sizes={"smoke": Size(points(NAMES, tuple(SENDERS)), 2, length_ms=2),
           "quick": Size(POINTS, 5, length_ms=100), "full": Size(POINTS, 20, length_ms=500)},
    measure=measure,
    measures=(Measure("rtt", "round trip of RDMA, mean, us", 1e6, ".1f"),
              Measure("rtt_p99", "p99 of pairs and intervals, us", 1e6, ".1f"),
              Measure("rate", "RDMA, % of the link", 1e2, ".1f"),
              Measure("link", "RDMA and TCP, %", 1e2, ".1f")),
    claims=(_claim("beside TCP, mean round trip up to 65.1 % below SECN's", "rtt", Direction(-1)),
            _claim("and its 99th percentile up to 25.3 % lower", "rtt_p99", Direction(-1)),
            _claim("while throughput is kept: RDMA's rate no more than 5 % below SECN's",
                   "rate", SecondHand(AtLeast(-0.05)))),
    ours=(*OURS_DRAINED[:2], OURS_DRAINED[3],
          "the traffic is not in the copy: long flows of two classes of equal weight to one host",
          "agents see the port's whole queue, TCP's with it; the paper's have a queue each"),
)  # fmt: skip
