"""Seven runs whose verdict is known, as run directories: for tests of everything that shows it.

Numbers are made up: every setting sees the same flows, and a :class:`Shape` says what it makes of
them. ``write_case(name, root)`` writes one; :data:`CASES` tells what a page must say of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.runs.log import LogWriter, RunDir
from synthetic_run import end_line, header, interval

__all__ = ["CASES", "Case", "Shape", "write_case"]

INTERVALS = 10
FLOWS = 60
"""Finished flows per interval: more than 30 in every class of sizes."""

EDGES = (0, 100_000, 1_000_000)


@dataclass(frozen=True)
class Shape:
    """What a setting makes of the flows: factors on the default's figures.

    ``slow`` are those of the slowdowns of mice, middle flows and elephants; ``starved`` is the
    share of elephants that never finish, ``wobble`` the noise of all of it from seed to seed.
    """

    slow: tuple[float, float, float] = (1.0, 1.0, 1.0)
    goodput: float = 1.0
    rtt: float = 1.0
    pause: float = 1.0
    starved: float = 0.0
    wobble: float = 0.01
    nothing_finishes: bool = False


@dataclass(frozen=True)
class Case:
    """What the recommended setting does, and what the verdict on it must be."""

    word: str
    deploy: str
    title: str
    said: str
    """How the recommendation begins."""
    found: Shape = field(default_factory=Shape)
    default: Shape = field(default_factory=Shape)
    expert: Shape | None = None
    workload: str = "poisson"
    aborted: bool = False


GAIN = "Deploy the candidate: against NVIDIA's default, flows below 100 KB finish"
DEAD = Shape(nothing_finishes=True)

CASES: Mapping[str, Case] = {
    "clear-gain": Case(
        "better", "yes", "Better: slowdowns are ", GAIN,
        Shape(slow=(0.7, 0.6, 0.6), goodput=1.02, rtt=0.8, pause=0.5),
    ),
    "starved-elephants": Case(
        "starves", "no", "Better for mice, worse for elephants", "Keep NVIDIA's default: none",
        Shape(slow=(0.6, 1.0, 3.0), rtt=0.6, pause=0.2, starved=0.1),
    ),
    "expert-better": Case(
        "worse", "no", "Worse: ", "Deploy the experts' setting: against NVIDIA's default, flows",
        Shape(slow=(1.5, 1.6, 1.6)),
        expert=Shape(slow=(0.7, 0.6, 0.6)),
    ),
    "nothing-gained": Case(
        "nothing gained", "no", "No measurable gain", "Keep NVIDIA's default", Shape(wobble=0.03),
    ),
    "one-trace": Case(
        "one trace", "unknown", "Better: slowdowns are ", "Cannot tell: the traffic is the same",
        Shape(slow=(0.7, 0.6, 0.6), rtt=0.8), workload="flows",
    ),
    "nothing-finished": Case(
        "no evidence", "unknown", "No flow finished in these runs", "Cannot tell: no flow",
        DEAD, DEAD,
    ),
    "aborted": Case("not judged", "unknown", "Not judged: the run ends early, after 4 of 10",
                    "Cannot tell: the run has not reached its end",
                    aborted=True),
}  # fmt: skip


def write_case(name: str, root: Path, *, seeds: int = 5) -> Path:
    """Write the run directory of a case and return it."""
    case = CASES[name]
    out = RunDir(root)
    out.create()
    shapes = {
        "default": case.default,
        "expert": case.expert or case.default,
        "recommended": case.found,
    }
    write = partial(_write, workload=case.workload)
    write(out.log, "run", 1, case.found, stop=4 if case.aborted else None)
    for reference in ("default", "expert"):
        write(out.reference(reference), reference, 1, shapes[reference])
    for k in range(0 if case.aborted else seeds):
        for setting, shape in shapes.items():
            write(out.evaluation(setting, 1_001_000 + k), setting, 1_001_000 + k, shape)
    return root


def _write(
    path: Path,
    name: str,
    seed: int,
    shape: Shape,
    *,
    stop: int | None = None,
    workload: str = "poisson",
) -> None:
    setting = _setting(name)
    tuner = "paraleon" if name == "run" else name
    lines = [_line(i, seed, setting, shape, name) for i in range(INTERVALS)]
    head = header(INTERVALS, seed, tuner)
    head["scenario"]["workloads"] = [{"kind": workload}]
    with LogWriter(path, head) as log:
        for line, _ in lines[:stop]:
            log.append(line)
        if stop is None:
            left = _joined([flows for _, flows in lines])
            log.append({"end": end_line(setting, INTERVALS, left)})


def _setting(name: str) -> Setting:
    if name in ("run", "recommended"):
        return default_setting().replace({"rp_ai_rate": 87, "kmin": 631.5})
    return expert_setting() if name == "expert" else default_setting()


def _line(
    i: int, seed: int, setting: Setting, shape: Shape, name: str
) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """Return the line of an interval, and those of its flows that never finish."""
    line = interval(i, seed, 0.0, setting, FLOWS)
    random = np.random.default_rng([seed, i, len(name)])
    wobble = 1 + shape.wobble * random.normal(size=4)
    line["delivered_bytes"] = int(line["delivered_bytes"] * shape.goodput * wobble[0])
    line["throughput_bps"] *= shape.goodput * wobble[0]
    line["rtt_mean_ps"] *= shape.rtt * wobble[1]
    line["device_pause_ps"] *= shape.pause * wobble[2]
    flows = {key: np.array(column) for key, column in line["flows"].items()}
    kind = np.searchsorted(EDGES, flows["bytes"], side="right") - 1
    factor = np.array(shape.slow)[kind] * wobble[3]
    ideal = flows["ideal_fct_ps"]
    finish = flows["start_ps"] + flows["fct_ps"]
    flows["fct_ps"] = (ideal * np.maximum(flows["fct_ps"] / ideal * factor, 1.0)).astype(int)
    flows["start_ps"] = np.maximum(finish - flows["fct_ps"], 0)
    stuck = (kind == 2) & (random.random(FLOWS) < shape.starved) | shape.nothing_finishes
    line["flows"] = {key: column[~stuck].tolist() for key, column in flows.items()}
    line["active_flows"] = int(stuck.sum())
    return line, {k: flows[k][stuck].tolist() for k in ("bytes", "start_ps", "ideal_fct_ps")}


def _joined(parts: list[dict[str, list[int]]]) -> dict[str, list[int]]:
    return {key: [x for part in parts for x in part[key]] for key in parts[0]}
