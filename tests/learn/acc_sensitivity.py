"""Sensitivity to what ACC's paper leaves open: state, templates, the reward's D(L), its weight.

Short trainings that differ in one choice each, judged by the network's utility with greedy agents
on traffic that none of them trained on. Everything is paired by the seed of the training.
``python tests/learn/training_study.py acc-sensitivity`` makes the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.port_view import FIGURES, PortView, queue_score
from dcqcn_gym.core.statistics import paired_change
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.parallel import AgentsEnv, Reward
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.acc import AccSpec, Training
from dcqcn_gym.runs.entries import changed_scenario, evaluation_seeds
from dcqcn_gym.runs.table import Table, with_interval
from dcqcn_gym.tuners.acc_state import HIDDEN, HISTORY, TEMPLATES

Score = Callable[[npt.ArrayLike], FloatArray]
Templates = Sequence[Mapping[str, float]]

SCENARIO = "mini-fb-hadoop"
LOADS = (0.3, 0.5)
"""Loads on which the agents are judged; they trained on the first one, with other seeds."""


def _close(pmaxes: Sequence[float]) -> Templates:
    return [
        {"kmin": 10.0 * 2.0**n, "kmax": 20.0 * 2.0**n, "pmax": pmax}
        for n in range(10)
        for pmax in pmaxes
    ]


def _one_step(queue_bytes: npt.ArrayLike) -> FloatArray:
    return np.where(np.asarray(queue_bytes) < 160_000.0, 1.0, 0.0)


def _straight(queue_bytes: npt.ArrayLike) -> FloatArray:
    return np.asarray(np.clip(1.0 - np.asarray(queue_bytes) / 1e6, 0.0, 1.0), dtype=np.float64)


@dataclass(frozen=True)
class Variant(AccSpec):
    """A training with other choices: intervals seen, settings to choose among, D(L)."""

    history: int = HISTORY
    templates: Templates = field(default_factory=lambda: TEMPLATES)
    score: Score = queue_score

    def sizes(self, sides: int) -> tuple[int, ...]:
        """Return the layers: hidden ones as ACC's, inputs and outputs as the choices want them."""
        del sides  # an agent per port
        return (self.history * (len(FIGURES) + 1), *HIDDEN, len(self.templates))

    def make_env(self, scenario: str) -> AgentsEnv:
        """Return the environment of the training."""
        return (
            self.env_at(None, self.episode) if scenario == SCENARIO else super().make_env(scenario)
        )

    def env_at(self, load: float | None, intervals: int) -> AgentsEnv:
        """Return the environment at a load of the host links (None: the scenario's own)."""
        loaded = load_scenario(SCENARIO)
        if load is not None:
            flows = {"kind": "poisson", "cdf": "FB_Hadoop", "load": load}
            loaded = changed_scenario(loaded, {"workloads": [flows]}, "sensitivity")
        env = AgentsEnv(
            loaded, agents="port", intervals=intervals, decision_us=self.decision_us,
            history=self.history, reward=Reward(self.weight), templates=self.templates,
        )  # fmt: skip
        env.view = PortView(env.members, self.weight, self.score)
        return env


_CHOSEN: dict[str, float] = {"weight": 0.2}

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "as shipped": {},
    "state of 1 interval": {"history": 1},
    "state of 3 intervals": {"history": 3},
    "templates with Kmin = Kmax / 2": {"templates": _close((1.0, 0.2))},
    "templates with Pmax 50 % and 5 %": {
        "templates": [{**t, "pmax": t["pmax"] / 2 if t["pmax"] == 1.0 else 0.05} for t in TEMPLATES]
    },
    "D(L): one step at 160 KB": {"score": _one_step},
    "D(L): straight down to 1 MB": {"score": _straight},
    "w1 = 0.5": {"weight": 0.5},
}
"""What each row changes; the shipped network has w1 = 0.2."""


@dataclass(frozen=True)
class Sensitivity:
    """How much is run: trainings per row, decisions of one, intervals and seeds of judging."""

    trainings: int = 5
    decisions: int = 400
    seeds: int = 4
    intervals: int = 20


def measure(
    plan: Sensitivity, rows: Sequence[str] = tuple(VARIANTS), report: Callable[[str], None] = print
) -> Table:
    """Train and judge every row; a cell is the mean utility, then the difference to the first row.

    The difference is paired by the seed of the training and has a 95 % interval.
    """
    found: dict[str, list[list[float]]] = {}
    for name in rows:
        report(name)
        judged = [_judged(plan, name, seed) for seed in range(1, plan.trainings + 1)]
        found[name] = [[of_seed[i] for of_seed in judged] for i in range(len(LOADS))]
    first = found[rows[0]]
    lines = [
        [name, *(_cell(values[i], first[i]) for i in range(len(LOADS)))]
        for name, values in found.items()
    ]
    return Table(("choice", *(f"{load:.0%} load" for load in LOADS)), lines)


def _judged(plan: Sensitivity, name: str, seed: int) -> list[float]:
    spec = Variant(
        (SCENARIO,),
        decisions=plan.decisions,
        seed=seed,
        **{**_CHOSEN, **VARIANTS[name]},  # type: ignore[arg-type]
    )
    training = Training(spec)
    while training.decisions < spec.decisions:
        training.episode()
    training.close()
    found = []
    for load in LOADS:
        env = spec.env_at(load, plan.intervals)
        found.append(mean([training.greedy(env, s) for s in evaluation_seeds(1, plan.seeds)]))
        env.close()
    return found


def _cell(values: Sequence[float], reference: Sequence[float]) -> str:
    if values is reference:
        return f"{mean(values):.4f}"
    change = with_interval(paired_change(values, reference), "+.4f", style="brackets")
    return f"{mean(values):.4f}, {change}"
