"""The training environment: varied traffic, the same for the same seed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.sampling import SampledEnv
from dcqcn_gym.runs.entries import FIRST_TRAINING_SEED, evaluation_seeds

SCENARIOS = [load_scenario(name) for name in ("mini-fb-hadoop", "mini-llm-alltoall")]


def make(*stream: int, **arguments: Any) -> SampledEnv:
    return SampledEnv(SCENARIOS, stream or (1,), intervals=4, backend="fake", **arguments)


def drawn(env: SampledEnv, episodes: int = 20) -> list[tuple[str, int]]:
    infos = [env.reset()[1] for _ in range(episodes)]
    return [(info["scenario"], info["seed"]) for info in infos]


def test_episodes_draw_scenarios_and_seeds_from_the_stream() -> None:
    first = drawn(make(1, 0))
    assert first == drawn(make(1, 0))
    assert first != drawn(make(1, 1))
    assert {name for name, _ in first} == {s.name for s in SCENARIOS}
    assert len({seed for _, seed in first}) == len(first)


def test_training_never_sees_a_seed_of_an_evaluation() -> None:
    seeds = [seed for _, seed in drawn(make(), 50)]
    assert min(seeds) >= FIRST_TRAINING_SEED
    assert max(evaluation_seeds(1000, 100)) < FIRST_TRAINING_SEED


@pytest.mark.parametrize("discrete", [False, True])
def test_gymnasiums_checker_is_content(discrete: bool) -> None:
    check_env(make(discrete=discrete), skip_render_check=True)


def test_the_last_step_tells_the_episodes_return() -> None:
    env = make()
    env.reset()
    rewards = []
    for _ in range(4):
        _, reward, terminated, truncated, info = env.step(np.zeros(14, np.float32))
        rewards.append(reward)
    assert truncated
    assert not terminated
    assert info["episode"] == {"r": sum(rewards), "l": 4, "t": 0.0}
    assert set(info) == {"utility", "idle", "scenario", "episode"}


@pytest.mark.parametrize("discrete", [False, True])
def test_an_episode_comes_back_from_its_state(discrete: bool) -> None:
    """Through JSON: the same observation, then the same rewards and the same next episodes."""
    env = make(5, discrete=discrete)
    env.action_space.seed(1)
    env.reset(seed=3)
    actions = [env.action_space.sample() for _ in range(10)]
    for action in actions[:6]:  # into the second episode of 4 steps
        seen, _, _, truncated, _ = env.step(action)
        if truncated:
            env.reset()
    other = make(5, discrete=discrete)
    state = json.loads(json.dumps(env.episode_state()))
    assert np.array_equal(other.restore_episode(state), seen)
    assert other.episode_state() == env.episode_state()
    for action in actions[6:8]:
        (x, *one, last), (y, *two, same) = env.step(action), other.step(action)
        assert np.array_equal(x, y)
        assert one == two
        assert last == same
    assert last["episode"]["l"] == 4
    assert drawn(env) == drawn(other)


def test_errors_name_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="at least one scenario"):
        SampledEnv([])
    with pytest.raises(StateError, match=r"call reset\(\) first"):
        make().step(np.zeros(14, np.float32))
    with pytest.raises(StateError, match=r"call reset\(\) first"):
        make().episode_state()
