"""Writes run directories whose numbers are made up, for tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.core.sums import mean
from dcqcn_gym.runs.log import SCHEMA, LogWriter, RunDir

INTERVAL_PS = 1_000_000_000
ACTIVE = 37
SHIFT = {"recommended": 0.05, "default": 0.0, "expert": 0.03, "run": 0.02}


def header(intervals: int, seed: int, tuner: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "run",
        "versions": {"dcqcn_gym": "0.1.0"},
        "scenario": {
            "name": "toy",
            "description": "Numbers made up for tests.",
            "workloads": [{"kind": "poisson"}],
        },
        "tuner": tuner,
        "tuner_args": {},
        "seed": seed,
        "intervals": intervals,
        "backend": "fake",
    }


def interval(i: int, seed: int, shift: float, setting: Setting, flows: int) -> dict[str, Any]:
    """One line; the same seed and number give the same traffic under every setting."""
    rng = np.random.default_rng([seed, i])
    size = np.minimum(10 ** rng.uniform(2, 7.2, flows), 2e7).astype(int)
    ideal = 20_000_000 + size * 80
    tail = rng.pareto(2.5, flows) * (1 - 4 * shift)
    share = 0.3 + 0.2 * np.sin(i / 9)
    fct = (ideal * (1 + tail)).astype(int)
    ends = (i + 5) * INTERVAL_PS + rng.integers(INTERVAL_PS, size=flows)
    utility = 0.8 + shift + 0.04 * np.sin(i / 7) + rng.normal(0, 0.01)
    throughput = float(3e12 * (0.9 + shift + rng.normal(0, 0.02)))
    return {
        "i": i,
        "start_ps": (i + 5) * INTERVAL_PS,
        "end_ps": (i + 6) * INTERVAL_PS,
        "setting": dict(setting),
        "utility": float(min(utility, 1.0)),
        "terms": [0.5, 0.8, 0.99],
        "idle": False,
        "throughput_bps": throughput,
        "delivered_bytes": int(throughput * 1e-3 / 8),
        "rtt_mean_ps": 40_000_000.0 * (1 + rng.random() - shift),
        "device_pause_ps": float(max(0.0, rng.normal(0.02, 0.01)) * INTERVAL_PS),
        "pauses": 3,
        "marks": 100,
        "cnps": 20,
        "drops": 0,
        "packet_hops": 1000,
        "active_flows": ACTIVE,
        "fsd": {"elephants": 100 * share, "potential": 20.0, "mice": 80 - 60 * share},
        "flows": {
            "src": [0] * flows,
            "dst": [1] * flows,
            "bytes": size.tolist(),
            "start_ps": np.maximum(ends - fct, 0).tolist(),
            "fct_ps": fct.tolist(),
            "ideal_fct_ps": ideal.tolist(),
        },
    }


def write_log(
    path: Path, name: str, seed: int, n: int, *, budget: int, end: bool, flows: int = 200
) -> None:
    setting = expert_setting() if name == "expert" else default_setting()
    if name in ("run", "recommended"):
        setting = setting.replace({"rp_ai_rate": 87, "kmin": 631.5})
    with LogWriter(path, header(budget, seed, "paraleon" if name == "run" else name)) as log:
        lines = [interval(i, seed, SHIFT[name], setting, flows) for i in range(n)]
        for line in lines:
            log.append(line)
        if end:
            told = end_line(setting, n, unfinished_at(n))
            known = [line["utility"] for line in lines if not line["idle"]]
            log.append({"end": {**told, "mean_utility": mean(known)}})


def unfinished_at(n: int) -> dict[str, list[int]]:
    """Flows that began in the last half of an interval: too late to count."""
    now = (n + 5) * INTERVAL_PS
    return {
        "bytes": [5_000_000] * ACTIVE,
        "start_ps": [now - INTERVAL_PS // 2] * ACTIVE,
        "ideal_fct_ps": [420_000_000] * ACTIVE,
    }


def end_line(setting: Setting, n: int, unfinished: dict[str, list[int]] | None) -> dict[str, Any]:
    return {
        "recommended": dict(setting),
        "intervals": n,
        "mean_utility": None,
        "unfinished": unfinished,
        "running_rounds": [],
    }


def write_run(
    root: Path,
    *,
    intervals: int = 30,
    written: int | None = None,
    seeds: int = 3,
    references: bool = True,
    flows: int = 200,
) -> Path:
    """A whole run directory, or one whose log stops after ``written`` intervals."""
    out = RunDir(root)
    out.create()
    n = intervals if written is None else written
    common = {"budget": intervals, "flows": flows}
    write_log(out.log, "run", 1, n, end=written is None, **common)
    if references:
        for name in ("default", "expert"):
            write_log(out.reference(name), name, 1, intervals, end=True, **common)
    for seed in range(101, 101 + seeds):
        for name in ("recommended", "default", "expert"):
            write_log(out.evaluation(name, seed), name, seed, 10, end=True, **common)
    return root
