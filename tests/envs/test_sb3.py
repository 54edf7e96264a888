"""Stable-Baselines3's checker on every registered id; needs torch, so only where it is there."""

from __future__ import annotations

import warnings

import gymnasium
import pytest

import dcqcn_gym
from dcqcn_gym.envs.scenario.scenario import load_scenario

checker = pytest.importorskip("stable_baselines3.common.env_checker")
pytest.importorskip("dcqcn_gym._core")


@pytest.mark.parametrize("env_id", dcqcn_gym.env_ids())
def test_check_env(env_id: str) -> None:
    name = str(gymnasium.spec(env_id).kwargs.get("scenario", "fb-hadoop"))
    short = {"monitor_interval_us": 50.0, "warmup_us": 100.0}
    env = gymnasium.make(env_id, scenario=load_scenario(name).model_copy(update=short))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(env, warn=True)
    env.close()


def test_ppo_runs() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    env = gymnasium.make("dcqcn/MiniFBHadoop-v0", backend="fake", intervals=32)
    sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, seed=0, device="cpu").learn(64)
