"""What ACC's applications get done while a policy steers the marking of the switches."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.figure import CellResult
from dcqcn_gym.core.applications import summary_of_applications
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.network import network_figures
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec


def steered(
    scenario: Scenario,
    tuner: str,
    seed: int,
    length_ms: float,
    arguments: Mapping[str, Any] | None = None,
) -> CellResult:
    """Let a tuner run for so long; return the rate of the application's operations.

    Search included: what the application gets while the policy works. ``marked`` are
    marks per data packet, at any switch, ``paused`` the share of the time.
    """
    intervals = max(1, round(length_ms * 1e9 / scenario.monitor_interval_ps))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(RunSpec(scenario, tuner, seed, intervals, tuner_args=dict(arguments or {})), log)
        seen = Series.of(read_run(log))
    done = summary_of_applications(
        entry for line in seen.records for entry in line.get("applications", ())
    )
    packets = count(line["data_packets"] for line in seen.records)
    figures = network_figures(seen)
    rate = done[0]["per_s"] if done else None
    return CellResult(
        {
            "rate": float("nan") if rate is None else rate,
            "marked": count(line["marks"] for line in seen.records) / max(1, packets),
            "paused": float(np.mean(seen.pause_share)),
            "rtt": float(np.nanmean(seen.column("rtt_mean_ps"))) * 1e-12,
            "rtt_p99": figures.rtt_p99_us * 1e-6,
        },
        hops=count(line["packet_hops"] for line in seen.records),
    )
