"""Steps per CPU second through the vector interface, and what a copy in mid-episode costs.

Networks run in threads of the engine's own, so that what the caller's thread spends is everything
else: settings, reports, observations, info. No episode ends in between.
"""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from batch_speed import BatchSpeed

from dcqcn_gym.envs.backends.native import run_ahead
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.vector import DcqcnVectorEnv
from dcqcn_gym.extras.learn.sampling import SampledEnv


def vector_speed(scenario: str, backend: str = "native", turns: int = 40) -> BatchSpeed:
    """Measure Gymnasium's vector interface, which makes the whole ``info`` of every step."""
    vector = DcqcnVectorEnv(8, scenario, backend, intervals=turns + 1)
    vector.reset(seed=1)
    speed = _measured(f"{scenario}, {backend}", vector.single_action_space, 8, turns, vector.step)
    vector.close()
    return speed


def training_speed(scenario: str, envs: int = 8, turns: int = 40) -> BatchSpeed:
    """Measure environments as trainings step them, by what ``make_vec`` calls; needs no torch."""
    loaded = load_scenario(scenario)
    sampled = [SampledEnv([loaded], (1, i), intervals=turns + 1) for i in range(envs)]
    for env in sampled:
        env.reset()

    def step(actions: Any) -> None:
        run_ahead([env.begin(action) for env, action in zip(sampled, actions, strict=True)])
        for env, action in zip(sampled, actions, strict=True):
            env.step(action)

    speed = _measured(
        f"training of {envs} x {scenario}", sampled[0].action_space, envs, turns, step
    )
    for env in sampled:
        env.close()
    return speed


def _measured(job: str, space: Any, envs: int, turns: int, step: Any) -> BatchSpeed:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([1])))
    actions = rng.uniform(-1, 1, (turns, envs, *space.shape)).astype(np.float32)
    all_cpu, own = time.process_time(), time.thread_time()
    for batch in actions:
        step(batch)
    spent, own = time.process_time() - all_cpu, time.thread_time() - own
    return BatchSpeed(job, turns * envs, spent, own)


@dataclass(frozen=True)
class CopyCost:
    """What a copy of an environment takes: CPU times are medians."""

    scenario: str
    hosts: int
    mb: float
    """Of a pickle, 10^6 bytes."""
    pickle_ms: float
    unpickle_ms: float
    deepcopy_ms: float
    step_ms: float
    """Of one interval, for comparison."""


def copy_cost(scenario: str, repeats: int = 5) -> CopyCost:
    """Measure after three intervals under the default setting, on the native backend."""
    env = DcqcnEnv(scenario, intervals=100)
    env.reset(seed=1)
    action = env.space.encode(env.scenario.default_setting())
    step = _median_ms(lambda: env.step(action), 3)
    frozen = pickle.dumps(env)
    found = CopyCost(
        scenario,
        env.scenario.fabric.n_hosts,
        len(frozen) / 1e6,
        _median_ms(lambda: pickle.dumps(env), repeats),
        _median_ms(lambda: pickle.loads(frozen), repeats),
        _median_ms(lambda: copy.deepcopy(env), repeats),
        step,
    )
    env.close()
    return found


def _median_ms(call: Callable[[], object], times: int) -> float:
    spent = []
    for _ in range(times):
        begin = time.process_time()
        call()
        spent.append((time.process_time() - begin) * 1e3)
    return sorted(spent)[times // 2]
