"""What figures 10 (a) and 11 (a) of PARALEON take from the benchmark of monitors.

Figure 10 (a) has PARALEON's monitor without its parts. The paper (section III-B) marks every packet
that a ToR has counted in an unused bit of its header, so that no ToR further on counts it again. A
simulator knows where a packet enters the fabric and needs no mark; :func:`unmarked` shows what ToRs
would count without one: packets between racks at both ends of their way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.figure import CellResult, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults, Place
from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import mean_accuracy
from dcqcn_gym.benchmarks.papers.monitor_study.study import Watched, with_load
from dcqcn_gym.benchmarks.papers.monitor_study.traces import (
    IntArray,
    Packets,
    Sample,
    Steps,
    judge,
    keys_of,
    replay,
    simulate,
)
from dcqcn_gym.benchmarks.papers.paraleon import PARALEON
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import load_scenario

SKETCH, NETFLOW = "Elastic Sketch", "NetFlow"
NO_MARKS, NO_WINDOWS = "PARALEON, marking off", "PARALEON, window off"
"""Ablations: packets between racks counted at both ToRs; no potential elephants."""
MS = 1_000_000_000
NO_WINDOW = {"kind": "elastic", "delta": 1000}
"""Options of the monitor without its window: no flow is active in so many intervals, so none
becomes a potential elephant."""
KINDS = {PARALEON: "elastic", SKETCH: "elastic-naive", NETFLOW: "netflow"}

MEASURES = (
    Measure("label", "right by final size, %", 100, ".1f"),
    Measure("causal", "right by bytes so far, %", 100, ".1f"),
    Measure("share", "1 - error of the elephants' share, %", 100, ".1f"),
    Measure("recall", "elephants found, %", 100, ".1f"),
    Measure("counted", "flows counted per flow", 1, ".2f"),
)


def ablated(row: str, load: int, seed: int, size: Size) -> CellResult:
    """Judge PARALEON's monitor whole (the row's own name), or without one of its parts, at 1 ms.

    ``counted``: how many flows the ToRs count together, for each active one.
    """
    base = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    scenario = with_load(base, load)
    packets = Packets(
        scenario, seed, MS, int(size.more["warmup_ms"]) * MS, round(size.length_ms) * MS
    )
    probe = Sample(row, MS, NO_WINDOW if row == NO_WINDOWS else {"kind": "elastic"})
    flows = replay(packets, [probe], unmarked if row == NO_MARKS else simulate)
    found = mean_accuracy(judge(probe, flows, scenario.monitor.tau_bytes))
    active = [np.unique(one.key).size for one in probe.seen]
    held = [len(one.key) for one in probe.seen]
    values = {m.name: _number(getattr(found, m.name)) for m in MEASURES if m.name != "counted"}
    return CellResult({**values, "counted": count(held) / max(1, count(active))})


def accuracy(row: str, load: int, interval_ms: int, seed: int, size: Size) -> CellResult:
    """Judge a monitor on FB_Hadoop at a load of the host links in percent."""
    base = load_scenario("fb-hadoop" if size.more["hosts"] == 128 else "mini-fb-hadoop")
    job = Watched(
        "load", with_load(base, load), load, seed, int(size.more["warmup_ms"]),
        round(size.length_ms), (interval_ms,), (KINDS[row],),
    )  # fmt: skip
    (found,) = job.run()["results"]
    values = {m.name: _number(found[m.name]) for m in MEASURES if m.name != "counted"}
    return CellResult({**values, "counted": 1.0})


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def excess(row: str, x: Place, results: FigureResults, seed: int) -> float:
    """Return by how much PARALEON's accuracy is above that of a row at one place."""
    ours, theirs = (results.value("label", name, x, seed) for name in (PARALEON, row))
    return ours - theirs


def rise(row: str, x: Place, to: Place, results: FigureResults, seed: int) -> float:
    """Return by how much a row's accuracy grows from one place to another."""
    return results.value("label", row, to, seed) - results.value("label", row, x, seed)


def unmarked(study: Packets) -> Steps:
    """Yield the steps of the packet engine, packets between racks counted at both their ToRs."""
    steps = list(simulate(study))
    key, tor = _destinations(study, [flows for *_, flows in steps])
    for now, trace, flows in steps:
        yield now, _counted_twice(trace, key, tor) if trace else trace, flows


def _destinations(study: Packets, flows: list[dict[str, Any]]) -> tuple[IntArray, IntArray]:
    """Return the keys of all flows, rising, and the number of the ToR that each of them goes to."""
    net = study.scenario.fabric
    tor_of = np.array([net.tor(host) - net.n_hosts for host in range(net.n_hosts)], dtype=np.int64)
    keys = np.concatenate([keys_of(some) for some in flows])
    tors = np.concatenate([tor_of[some["dst"]] for some in flows])
    order = np.argsort(keys, kind="stable")
    return keys[order], tors[order]


def _counted_twice(trace: dict[str, Any], key: IntArray, tor: IntArray) -> dict[str, Any]:
    to = tor[np.searchsorted(key, trace["key"])].astype(np.asarray(trace["tor"]).dtype)
    away = to != trace["tor"]
    return {
        "tor": np.concatenate([trace["tor"], to[away]]),
        **{
            name: np.concatenate([trace[name], trace[name][away]])
            for name in ("key", "payload_bytes")
        },
    }
