"""What every DCQCN environment must do, as tests: subclass :class:`EnvCase`."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pydantic import TypeAdapter

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.info import PlainInfo, plain_info

Env = gymnasium.Env[Any, Any]


def rollout_hash(env: Env, seed: int, steps: int) -> str:
    """Return a hash of everything an agent sees in ``steps`` steps of fixed random actions."""
    digest = hashlib.sha256()
    env.action_space.seed(seed)
    observation, info = env.reset(seed=seed)
    for i in range(steps + 1):
        for part in (observation, info["utility"], info["throughput_bps"], info["packet_hops"]):
            digest.update(np.ascontiguousarray(part).tobytes())
        if i == steps:
            break
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        digest.update(np.float64(reward).tobytes() + bytes([terminated, truncated]))
        if terminated or truncated:
            observation, info = env.reset()
    return digest.hexdigest()


class EnvCase:
    """Base class of environment tests; supply :meth:`new_env` (made by ``gymnasium.make``)."""

    def new_env(self, **arguments: Any) -> Env:
        """Return a new environment; ``intervals`` and ``render_mode`` are passed on."""
        raise NotImplementedError

    @pytest.fixture
    def env(self) -> Iterator[Env]:
        """An environment that is closed after the test."""
        env = self.new_env()
        yield env
        env.close()

    def test_gymnasium_check_env(self, env: Env) -> None:
        """Gymnasium's checker passes without any warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped)

    def test_spaces_hold_what_comes(self, env: Env) -> None:
        """Observations lie in their space, rewards in 0..1, whatever the action."""
        env.action_space.seed(0)
        observation, _ = env.reset(seed=0)
        corners = [np.full(env.action_space.shape or (), c, np.float32) for c in (-1.0, 0.0, 1.0)]
        for action in (*corners, env.action_space.sample(), env.action_space.sample()):
            assert env.observation_space.contains(observation)
            observation, reward, _, _, _ = env.step(action)
            assert isinstance(reward, float)
            assert 0.0 <= reward <= 1.0
        assert env.observation_space.contains(observation)

    def test_same_seed_same_bytes(self, env: Env) -> None:
        """A rollout depends on the seed alone, also in a second environment and a second time."""
        first = rollout_hash(env, 5, 4)
        other = self.new_env()
        assert rollout_hash(other, 5, 4) == first
        other.close()
        assert rollout_hash(env, 6, 4) != first
        assert rollout_hash(env, 5, 4) == first

    def test_seed_goes_on_after_a_reset_without_one(self) -> None:
        """Later episodes follow from the first seed, and differ from the first episode."""
        hashes = []
        for _ in range(2):
            env = self.new_env(intervals=2)
            hashes.append(rollout_hash(env, 9, 5))
            _, first = env.reset(seed=9)
            _, second = env.reset()
            assert first["seed"] == 9
            assert second["seed"] != 9
            env.close()
        assert hashes[0] == hashes[1]

    def test_info_follows_its_schema(self, env: Env) -> None:
        """The plain values validate, and the objects belong to them."""
        adapter = TypeAdapter(PlainInfo)
        _, info = env.reset(seed=0)
        adapter.validate_python(plain_info(info), strict=True)  # type: ignore[arg-type]
        _, _, _, _, info = env.step(env.action_space.sample())
        adapter.validate_python(plain_info(info), strict=True)  # type: ignore[arg-type]
        assert info["report"] is info["reports"][-1]
        assert info["report"].end_ps == info["end_ps"]
        assert info["terms"].tp == info["o_tp"]

    def test_truncated_at_the_budget(self) -> None:
        """The last interval of the budget, and only it, is truncated."""
        env = self.new_env(intervals=3)
        env.reset(seed=0)
        flags = [env.step(env.action_space.sample())[3] for _ in range(3)]
        assert flags == [False, False, True]
        env.close()

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_a_bad_action_is_one_clear_sentence(self, env: Env, bad: float) -> None:
        """NaN and infinity name the knob; the episode goes on with a good action."""
        env.reset(seed=0)
        action = np.zeros(env.action_space.shape or (), np.float32)
        action[1] = bad
        with pytest.raises(ConfigError, match=r"action\[1\].*finite"):
            env.step(action)
        with pytest.raises(ConfigError, match="shape"):
            env.step(np.zeros(3, np.float32))
        env.step(np.zeros_like(action))
