"""ACC (SIGCOMM 2021), Fig. 15: the queue of one port around a burst."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from dcqcn_gym.benchmarks.papers.acc import (
    CONNECTX,
    OURS_DRAINED,
    PUBLISHED,
    ROWS,
    WEAK,
    fabric,
    points,
)
from dcqcn_gym.benchmarks.papers.acc_loads import steady
from dcqcn_gym.benchmarks.papers.claims import (
    AtLeast,
    Between,
    Cause,
    Claim,
    Derived,
    Direction,
    Growth,
    SecondHand,
    Sign,
)
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Over, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.probe import thinned
from dcqcn_gym.benchmarks.papers.tuned import tuned
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.simulation.trace import port_names

PLACE = "section 6, Fig. 15"
NAMES = ("ACC", "SECN1", "SECN2")
LOWEST, QUIET, ADAPTING = "20 / 20 KB", "320 / 1280 KB, 20 %", "ACC, adapting"
"""The lowest curve of ACC's list, and the one that ACC holds in the quiet before the burst."""
BURST_MS, CLEAR_MS = 4.0, 7.5
"""When the burst begins, from time 0 on, and when a short one has passed."""
SHORT, LONG = "500 KB", "4 MB"
BURSTS: Mapping[str, tuple[int, float]] = {SHORT: (500_000, CLEAR_MS), LONG: (4_000_000, 20.0)}
"""Bytes of every sender, and until when the queue is looked at."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run 30 % of WebSearch among 15 hosts; at 4 ms all of them send to host 0, once."""
    (others,) = steady("WebSearch", 0.3)
    bytes_, clear_ms = BURSTS[str(cell.x)]
    burst = {"kind": "incast", "dst": 0, "bytes": bytes_, "start_us": BURST_MS * 1e3, "rounds": 1}
    row = cell.row.removesuffix(CONNECTX)
    nics = PUBLISHED if row == cell.row else {}
    scenario = fabric(16, [{**others, "hosts": list(range(1, 16))}, burst], nics=nics)
    sink = next(p.number for p in port_names(scenario.fabric) if p.peer == 0)
    names = scenario.fabric.devices.port_names
    port = next(f"port:{name}" for name, number in names.items() if number == sink)
    tuner, arguments = ROWS[row]
    length_ms = min(size.length_ms, clear_ms + 0.5)
    seen = tuned(scenario, tuner, cell.seed, length_ms, arguments=arguments, watch=[sink])
    time, queue = np.array(seen.queue).T
    burst_on = (time > BURST_MS * 1e-3) & (time <= CLEAR_MS * 1e-3)
    later = (time > (BURST_MS + 1) * 1e-3) & (time <= clear_ms * 1e-3)
    values = {
        "queue": statistic(queue[burst_on]),
        "later": statistic(queue[later]),
        "kmax": seen.kmax_kb(port, BURST_MS * 1e-3),
        "kmax later": seen.kmax_kb(port, (BURST_MS + 1) * 1e-3),
        "worst": float(queue[time > BURST_MS * 1e-3].max(initial=0.0)),
    }
    values["sent"] = float(
        np.mean([r.port_tx_bytes[sink] / (r.port_rate_bps[sink] * r.duration_s / 8)
                 for r in seen.reports if BURST_MS * 1e9 <= r.start_ps < CLEAR_MS * 1e9])
    )  # fmt: skip
    return CellResult(values, {"queue": thinned(time, queue)}, seen.hops)


CAUSE = Cause(
    "a decision every 500 us comes late for this burst, which is ours: new queue pairs start at "
    "line rate, and the queue stands before the next decision. The burst meets the high curve "
    "that ACC has in quiet; with it all the time the queue is the same (within 15 %). Nor would "
    "the lowest curve of ACC's list have helped: it has no shorter queue than SECN2",
    Growth("queue", "ACC", QUIET, SHORT), Between(-0.15, 0.15),
)  # fmt: skip
POINTS = points(
    (*NAMES, ADAPTING, LOWEST, QUIET, *(row + CONNECTX for row in NAMES)), (SHORT, LONG)
)


def longer(other: str, results: FigureResults, seed: int) -> float:
    """Return by how many bytes ACC's queue is longer than another row's, a millisecond on."""
    own, theirs = (results.value("later", row, SHORT, seed) for row in ("ACC", other))
    return own - theirs


def lowered(results: FigureResults, seed: int) -> float:
    """Return the change of ACC's upper threshold within a millisecond of the burst."""
    before, after = (results.value(name, "ACC", SHORT, seed) for name in ("kmax", "kmax later"))
    return after / before - 1


FIGURE = Figure(
    name="A-fig15",
    paper="acc",
    title="the queue of a port around a burst",
    x="from each",
    sizes={
        "smoke": Size(points((*NAMES, LOWEST, QUIET), (SHORT,)), 2, length_ms=6),
        "quick": Size(POINTS, 30, length_ms=21),
        "full": Size(POINTS, 120, length_ms=21),
    },
    measure=measure,
    measures=(
        Measure("queue", "mean queue of 3.5 ms, KB", 1e-3, ".0f"),
        Measure("later", "after the first ms, KB", 1e-3, ".0f"),
        Measure("worst", "longest queue, KB", 1e-3, ".0f"),
        Measure("kmax", "Kmax as it begins, KB", 1, ".0f"),
        Measure("kmax later", "1 ms later, KB", 1, ".0f"),
        Measure("sent", "rate of the port, %", 1e2, ".0f"),
    ),
    claims=(
        Claim("ACC keeps the queue short where a static threshold lets it grow: from 1 ms on, by",
              PLACE, {other: Derived(partial(longer, other)) for other in ("SECN1", "SECN2")},
              Direction(-1), 1e-3, " KB", "+.1f", CAUSE, weak=WEAK),
        Claim("it reacts to the burst with a lower threshold: Kmax 1 ms later against before",
              PLACE, Derived(lowered), Sign(-1), 100, " %", "+.0f"),
        Claim("throughput is kept: rate of the port no more than 5 % below SECN1's",
              PLACE, Growth("sent", "ACC", "SECN1", SHORT), SecondHand(AtLeast(-0.05)), 100, " %",
              "+.1f"),
    ),
    plots=(
        Over("queue", "Queue towards host 0, KB", "ms", tuple((n, SHORT) for n in NAMES),
             1e-3, 1e3),
    ),
    ours=(
        *OURS_DRAINED[:2],
        *OURS_DRAINED[3:5],
        "the burst: the paper shows a queue and no traffic; 15 senders, 16 hosts at every size",
    ),
    revision=4,
)  # fmt: skip
