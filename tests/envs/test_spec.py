"""What Gymnasium's registry says of an environment, and that the environment does it."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
from gymnasium.wrappers import TimeAwareObservation

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.version import code_versions

MINI = "dcqcn/MiniFBHadoop-v0"


def steps_of(env: gymnasium.Env[Any, Any]) -> int:
    env.reset(seed=1)
    for number in range(1, 10_000):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert not terminated
        if truncated:
            return number
    raise AssertionError("no end")


def test_any_scenario_has_no_limit_of_its_own() -> None:
    assert gymnasium.spec("dcqcn/Dcqcn-v0").max_episode_steps is None


def test_an_environment_names_its_code() -> None:
    env = gymnasium.make(f"dcqcn_gym:{MINI}")
    assert env.metadata["versions"] == code_versions()
    assert env.metadata["render_fps"] > 0
    env.close()


def test_a_shorter_limit_cuts() -> None:
    assert steps_of(gymnasium.make(MINI, backend="fake", max_episode_steps=3)) == 3
    assert steps_of(gymnasium.make(MINI, backend="fake", intervals=5)) == 5


def test_a_budget_beyond_the_limit_is_refused_with_what_to_do() -> None:
    limit = gymnasium.spec(MINI).max_episode_steps
    assert limit is not None
    env = gymnasium.make(MINI, backend="fake", intervals=limit + 1)
    with pytest.raises(ConfigError, match="dcqcn/Dcqcn-v0"):
        env.reset(seed=1)
    with pytest.raises(ConfigError, match="dcqcn/Dcqcn-v0"):
        gymnasium.make_vec(MINI, 2, backend="fake", intervals=limit + 1)
    arguments: dict[str, Any] = {"scenario": "mini-fb-hadoop", "intervals": limit + 1}
    assert steps_of(gymnasium.make("dcqcn/Dcqcn-v0", backend="fake", **arguments)) == limit + 1


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_both_kinds_of_vectors_have_the_limit(mode: str) -> None:
    envs = gymnasium.make_vec(MINI, 2, vectorization_mode=mode, backend="fake", intervals=3)
    envs.reset(seed=1)
    cut = [bool(envs.step(envs.action_space.sample())[3].all()) for _ in range(3)]
    assert cut == [False, False, True]
    assert envs.spec is not None
    assert envs.spec.max_episode_steps == gymnasium.spec(MINI).max_episode_steps
    envs.close()


def test_wrappers_read_the_limit() -> None:
    env = TimeAwareObservation(
        gymnasium.make(MINI, backend="fake", max_episode_steps=4), normalize_time=True
    )
    env.reset(seed=1)
    shares = [float(env.step(env.action_space.sample())[0][-1]) for _ in range(4)]
    assert shares == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_an_action_outside_the_box_is_clipped() -> None:
    env = gymnasium.make(MINI, backend="fake").unwrapped
    settings = []
    for factor in (1.0, 7.0):
        env.reset(seed=1)
        env.step(factor * env.action_space.high)  # type: ignore[attr-defined]
        settings.append(dict(env.setting))  # type: ignore[attr-defined]
    assert settings[0] == settings[1]


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_so_is_one_of_many_environments(mode: str) -> None:
    rewards = []
    for factor in (1.0, 7.0):
        envs = gymnasium.make_vec(MINI, 2, vectorization_mode=mode, backend="fake", intervals=3)
        envs.reset(seed=1)
        rewards.append(envs.step(factor * envs.action_space.high)[1].tolist())  # type: ignore[attr-defined]
        envs.close()
    assert rewards[0] == rewards[1]


def test_and_one_of_an_agent() -> None:
    from dcqcn_gym.extras.learn.parallel import AgentsEnv

    env = AgentsEnv("mini-fb-hadoop", agents="switch", intervals=3)
    rewards = []
    for factor in (1.0, 7.0):
        env.reset(seed=1)
        high = {name: factor * env.action_space(name).high for name in env.possible_agents}  # type: ignore[attr-defined]
        rewards.append(env.step(high)[1])
    assert rewards[0] == rewards[1]


def test_pettingzoos_agents_are_numbered() -> None:
    from dcqcn_gym.extras.learn.parallel import AgentsEnv

    env = AgentsEnv("mini-fb-hadoop", agents="switch")
    assert env.possible_agents == [f"switch_{i}" for i in range(4)]
    assert env.members[0].groups == ("switch:16",)
