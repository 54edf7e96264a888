"""Several environments at once, each with a simulation process of its own."""

from __future__ import annotations

import functools

import gymnasium
import numpy as np
import pytest
from bridge_helpers import toy_command
from gymnasium.vector import AsyncVectorEnv

from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.extras.ns3.backend import Ns3Backend


def make(toy: bool) -> gymnasium.Env[np.ndarray, np.ndarray]:
    command = toy_command() if toy else None
    return DcqcnEnv("mini-llm-alltoall", backend=Ns3Backend(command=command), intervals=4)


def rollout(method: str | None, toy: bool) -> list[np.ndarray]:
    """Return observations and rewards of two environments over an episode and its autoreset."""
    makers = [functools.partial(make, toy)] * 2
    envs = AsyncVectorEnv(makers, context=method)
    observations, _ = envs.reset(seed=[3, 4])
    seen = [observations]
    for k in range(6):
        action = np.full((2, 14), 0.2 * k - 0.5, dtype=np.float32)
        observations, rewards, *_ = envs.step(action)
        seen += [observations.copy(), rewards]
    envs.close()
    return seen


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "method",
    [pytest.param("fork", marks=SLOW), pytest.param("forkserver", marks=SLOW), "spawn"],
)
def test_vector_environments_over_the_bridge(method: str) -> None:
    here, there = rollout(None, toy=True), rollout(method, toy=True)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(here[0][0], here[0][1])


@pytest.mark.slow
def test_two_ns3_environments_at_once_are_two_simulations() -> None:
    seen = rollout("spawn", toy=False)
    env = DcqcnEnv("mini-llm-alltoall", backend="native", intervals=4)
    for i, seed in enumerate((3, 4)):
        np.testing.assert_array_equal(seen[0][i], env.reset(seed=seed)[0])
        for k in range(4):
            action = np.full(14, 0.2 * k - 0.5, dtype=np.float32)
            np.testing.assert_array_equal(seen[1 + 2 * k][i], env.step(action)[0])
