"""What it costs to forget idle flows: exact counters whose history lasts longer than delta.

A flow that DCQCN has throttled to its smallest rate sends a packet every few intervals. If the
history drops it meanwhile, its bytes are counted from zero when the next packet comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from other_networks import NetworkJob

from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import Seen, mean_accuracy, mean_known
from dcqcn_gym.benchmarks.papers.monitor_study.study import MS, Plan, with_load
from dcqcn_gym.benchmarks.papers.monitor_study.traces import Packets, Probe, judge, replay
from dcqcn_gym.envs.scenario.monitor import ExactMonitor, with_kind
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.table import MISSING, Table

__all__ = ["HISTORIES", "HistoryJob", "history_jobs", "history_table", "relabel"]

HISTORIES = (3, 5, 10, 1000)
"""Idle intervals after which a flow is forgotten; the monitors take delta = 3."""


def relabel(seen: Sequence[Seen], forget: int, delta: int, tau: int) -> tuple[list[Seen], int]:
    """Return what exact counters with another history would have said, and its largest size.

    ``seen`` are all intervals of an exact counter, from the first packet on. The size counts flows
    of all ToRs. With ``forget`` = ``delta`` the labels are the engine's own.
    """
    history: dict[int, tuple[int, int, int]] = {}  # bytes before, intervals active, last of them
    before: dict[int, int] = {}
    told, largest = [], 0
    for now, at in enumerate(seen):
        share = np.zeros(len(at.key))
        for i, (key, total) in enumerate(
            zip(at.key.tolist(), at.total_bytes.tolist(), strict=True)
        ):
            base, active, _ = history.get(key, (before.get(key, 0), 0, 0))
            history[key], before[key] = (base, active + 1, now), total
            ratio = (total - base) / tau
            share[i] = min(ratio, 1.0) if ratio >= 1 or active + 1 >= delta else 0.0
        largest = max(largest, len(history))
        history = {key: flow for key, flow in history.items() if now - flow[2] < forget}
        told.append(replace(at, elephant_share=share))
    return told, largest


@dataclass(frozen=True)
class HistoryJob(NetworkJob):
    """The flows of one load and seed on the scenario's own network, labelled by each history."""

    @property
    def name(self) -> str:
        """What it is, but for the seed."""
        return f"history-{self.base.name}-{self.load}"

    def identity(self) -> dict[str, Any]:
        """Return what decides the result, but for the seed."""
        return {**super().identity(), "histories": list(HISTORIES)}

    def run(self) -> dict[str, Any]:
        """Label every millisecond with each history; intervals of the warm-up do not count."""
        length = (self.warmup_ms + self.length_ms) * MS
        probe = Probe("exact", MS, {"kind": "exact"})
        flows = replay(Packets(self.scenario, self.seed, MS, 0, length), [probe])
        said, rows = list(probe.seen), []
        monitor = with_kind(self.scenario.monitor, "exact")
        assert isinstance(monitor, ExactMonitor)
        for forget in HISTORIES:
            told, largest = relabel(said, forget, monitor.delta, monitor.tau_bytes)
            probe.seen = told[self.warmup_ms :]
            mean = mean_accuracy(judge(probe, flows, monitor.tau_bytes))
            rows.append({
                "load": self.load, "seed": self.seed, "forget": forget,
                "label": mean.label, "recall": mean.recall, "largest": largest,
            })  # fmt: skip
        return {"rows": rows}


def history_jobs(plan: Plan) -> list[HistoryJob]:
    """Return the histories at every load and seed."""
    base = load_scenario(plan.scenario)
    return [
        HistoryJob("engine", with_load(base, load), load, seed, plan.warmup_ms, plan.length_ms)
        for seed in plan.seeds
        for load in plan.loads
    ]


def history_table(plan: Plan, found: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table from the results: one line per load and history."""
    rows = [row for result in found for row in result["rows"]]
    seeds = ", ".join(str(seed) for seed in plan.seeds)
    head = [
        "load",
        "forgotten after",
        "label",
        f"label, seed {seeds}",
        "recall",
        "flows stored, most",
    ]
    lines = []
    for load in plan.loads:
        for forget in HISTORIES:
            here = [row for row in rows if (row["load"], row["forget"]) == (load, forget)]
            recall = mean_known([row["recall"] for row in here])
            lines.append([
                f"{load} %",
                f"{forget} ms",
                f"{np.mean([row['label'] for row in here]):.3f}",
                " ".join(f"{row['label']:.3f}" for row in here),
                MISSING if recall is None else f"{recall:.2f}",
                f"{max(row['largest'] for row in here)}",
            ])  # fmt: skip
    return Table(head, lines).markdown() + "\n"
