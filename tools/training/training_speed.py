"""Steps per second of environments behind Stable-Baselines3, random actions and training.

CPU seconds are those of the whole process, resets and warm-ups of new episodes included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.sums import total
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.algorithms import ALGORITHMS
from dcqcn_gym.extras.learn.extra import need_sb3
from dcqcn_gym.extras.learn.progress import SilentViewer
from dcqcn_gym.extras.learn.sampling import SampledEnv
from dcqcn_gym.extras.learn.spec import TrainDir, TrainSpec
from dcqcn_gym.extras.learn.train import train
from dcqcn_gym.extras.learn.vector import make_vec

LEARNING_STARTS = 100


@dataclass(frozen=True)
class EnvSpeed:
    """Random actions through one vector interface; CPU figures are unknown for processes."""

    kind: str
    scenario: str
    envs: int
    steps: int
    wall_s: float
    cpu_s: float | None
    engine_s: float | None

    @property
    def per_s(self) -> float:
        """Steps per second of wall time, all environments together."""
        return self.steps / self.wall_s

    @property
    def per_cpu_s(self) -> float | None:
        """Steps per second and core: steps over CPU seconds."""
        return None if self.cpu_s is None else self.steps / self.cpu_s

    @property
    def outside_share(self) -> float | None:
        """Share of the CPU time that is spent outside the engine."""
        if self.cpu_s is None or self.engine_s is None:
            return None
        return 1.0 - self.engine_s / self.cpu_s

    def as_dict(self) -> dict[str, Any]:
        """Return every figure by name."""
        derived = ("per_s", "per_cpu_s", "outside_share")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}


def env_speed(
    scenario: str, envs: int, steps: int, kind: str = "threads", episode: int = 50, seed: int = 1
) -> EnvSpeed:
    """Step ``envs`` environments with random actions, about ``steps`` steps in total.

    Raises MissingExtraError without Stable-Baselines3.
    """
    need_sb3("`tools/training/training_study.py`")
    clocked = kind != "subproc"
    clocks: list[Any] = [_backend() if clocked else "native" for _ in range(envs)]
    makers = [
        partial(
            SampledEnv,
            [load_scenario(scenario)],
            (seed, i),
            intervals=episode,
            backend=clocks[i],
        )
        for i in range(envs)
    ]
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    interfaces = {
        "threads": make_vec,
        "dummy": DummyVecEnv,
        "subproc": partial(SubprocVecEnv, start_method="spawn"),
    }
    if kind not in interfaces:
        raise UnknownNameError("vector interface", kind, interfaces)
    vector = interfaces[kind](makers)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed])))
    turns = max(1, steps // envs)
    actions = rng.uniform(-1, 1, (turns, envs, vector.action_space.shape[0])).astype(np.float32)
    try:
        vector.reset()
        before = total(clock.engine_s for clock in clocks) if clocked else None
        cpu, wall = time.process_time(), time.perf_counter()
        for batch in actions:
            vector.step(batch)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        spent = None if before is None else total(clock.engine_s for clock in clocks) - before
    finally:
        vector.close()
    return EnvSpeed(kind, scenario, envs, turns * envs, wall, cpu if clocked else None, spent)


def _backend() -> Any:
    from dcqcn_gym.envs.backends.native import NativeBackend

    class OwnThread(NativeBackend):
        can_run_ahead = False  # what runs ahead is not counted in engine_s

    return OwnThread()


@dataclass(frozen=True)
class TrainSpeed:
    """Training of one algorithm with its default hyperparameters, set-up included.

    But for one: updates begin after :data:`LEARNING_STARTS` steps, so that the rate holds them.
    """

    algo: str
    steps: int
    wall_s: float
    cpu_s: float

    def as_dict(self) -> dict[str, Any]:
        """Return every figure by name."""
        return {
            **asdict(self),
            "per_s": self.steps / self.wall_s,
            "per_cpu_s": self.steps / self.cpu_s,
        }


def train_speed(
    scenario: str, envs: int, steps: int, algos: Sequence[str] = ()
) -> list[TrainSpeed]:
    """Train every algorithm for at least ``steps`` steps, in whole rollouts; return its rates."""
    rows = []
    for algo in algos or ALGORITHMS:
        with TemporaryDirectory() as folder:
            early = {"learning_starts": LEARNING_STARTS}
            changes = early if "learning_starts" in ALGORITHMS[algo] else {}
            spec = TrainSpec(algo, (scenario,), envs, steps, changes=changes)
            whole = math.ceil(steps / spec.rollout) * spec.rollout
            spec = replace(spec, steps=whole)
            result = train(spec, TrainDir(Path(folder)), SilentViewer(), checkpoint_every=whole)
        rows.append(TrainSpeed(algo, result.steps, result.wall_s, result.cpu_s))
    return rows
