"""ACC beside an untrained network, drawn curves and static ones, on loads it never trained on.

Every row runs on the same traffic, a decision every 500 us as ACC's agents have it; what counts is
the utility while the tuner acts. ``dcqcn-gym bench acc`` makes the table of configs/acc/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.utilities import utilities
from dcqcn_gym.core.statistics import paired_change
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.rows import Row, evaluation_seeds
from dcqcn_gym.runs.table import Table, with_interval
from dcqcn_gym.tuners.acc_state import layout, sizes
from dcqcn_gym.tuners.ddqn import new_layers
from dcqcn_gym.tuners.policy import Policy, PolicyMeta

__all__ = ["REFERENCE", "AccPlan", "measure", "untrained"]

REFERENCE = "secn1"
RIVALS = ("acc, untrained", "drawn curves", "secn1")
"""What a trained agent has to beat: the network it began with, drawn curves, one fixed curve."""
SCENARIOS: Mapping[str, tuple[str, float | None]] = {
    "mini-fb-hadoop, 30 % load": ("mini-fb-hadoop", None),
    "20 % (held out)": ("mini-fb-hadoop", 0.2),
    "50 % (held out)": ("mini-fb-hadoop", 0.5),
    "mini-llm-alltoall": ("mini-llm-alltoall", None),
}
"""Titles, and the scenario with the load that replaces its own."""


@dataclass(frozen=True)
class AccPlan:
    """How much is run: seeds of fresh traffic and intervals of 500 us; where the logs go."""

    out: Path
    seeds: int = 5
    intervals: int = 50

    def rows(self) -> list[Row]:
        """Return the rows; the one without training has its network in ``out``."""
        fresh = {"file": str(self.out / "untrained.npz")}
        return [
            Row("acc", given_name="acc"),
            Row("acc", {"adapt": True}, given_name="acc, adapting"),
            Row("acc-central", given_name="acc-central"),
            Row("acc", fresh, given_name="acc, untrained"),
            Row("acc", {"adapt": True, "epsilon": 1.0, "updates": 0}, given_name="drawn curves"),
            *(Row(name) for name in ("random", "secn1", "secn2", "vendor-ecn")),
        ]

    def job(self, title: str, row: Row, seed: int) -> RunJob:
        """Return one run and where its log lies."""
        name, load = SCENARIOS[title]
        scenario = load_scenario(name)
        changes: dict[str, Any] = {"monitor_interval_us": 500.0}
        if load is not None:
            workloads = scenario.model_dump(mode="json")["workloads"]
            changes["workloads"] = [{**w, "load": load} for w in workloads]
        changed = Row(row.tuner, row.tuner_args, changes)
        spec = changed.spec(scenario, seed, self.intervals, "native")
        folder = f"{name}-{load}" if load else name
        return RunJob(spec, self.out / folder / row.name / f"seed-{seed}.jsonl")


def untrained(path: Path, sides: int = 0, seed: int = 1) -> None:
    """Write the network that a training of ACC with this seed begins with."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0xACC])))
    layers = new_layers(sizes(sides), random)
    meta = PolicyMeta(
        algo="acc-central" if sides else "acc", observation_version=1, layout=layout(sides),
        knobs=("template",), output="argmax", steps=0, scenarios=(), command="untrained",
        versions={},
    )  # fmt: skip
    plain = tuple((w.astype(np.float32), b.astype(np.float32)) for w, b in layers)
    places = np.linspace(-1.0, 1.0, sizes(sides)[-1], dtype=np.float32).reshape(-1, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(Policy(meta, plain, places).check("an untrained network").to_bytes())


def measure(
    plan: AccPlan, workers: int | None = None, progress: Progress | None = None
) -> list[Table]:
    """Carry out what is missing in ``plan.out``; return the table of all rows, and that of acc.

    A cell is the mean utility over the seeds, then the mean difference to :data:`REFERENCE`, paired
    by seed, with its 95 % interval; in the second table the difference of ``acc`` to each of
    :data:`RIVALS`.
    """
    untrained(plan.out / "untrained.npz")
    seeds = evaluation_seeds(1, plan.seeds)
    jobs = {
        (title, row.name): [plan.job(title, row, seed) for seed in seeds]
        for title in SCENARIOS
        for row in plan.rows()
    }
    found = utilities(jobs, workers, progress)
    lines = [
        [row.name, *(_cell(found[title, row.name], found[title, REFERENCE]) for title in SCENARIOS)]
        for row in plan.rows()
    ]
    duels = [
        [
            f"acc - {rival}",
            *(_lead(found[title, "acc"], found[title, rival]) for title in SCENARIOS),
        ]
        for rival in RIVALS
    ]
    return [Table(("row", *SCENARIOS), lines), Table(("difference", *SCENARIOS), duels)]


def _lead(values: Sequence[float], others: Sequence[float]) -> str:
    return with_interval(paired_change(values, others), "+.4f", style="brackets")


def _cell(values: Sequence[float], reference: Sequence[float]) -> str:
    if values == reference:
        return f"{mean(values):.4f}"
    change = with_interval(paired_change(values, reference), "+.4f", style="brackets")
    return f"{mean(values):.4f}, {change}"
