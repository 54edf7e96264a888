"""With torch and Stable-Baselines3: ACC's network, and one network for all agents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.extras.learn.parallel import AgentsEnv
from dcqcn_gym.extras.learn.shared import shared_vec
from dcqcn_gym.tuners.acc import load_network
from dcqcn_gym.tuners.acc_state import HISTORY, TEMPLATES
from dcqcn_gym.tuners.ddqn import forward

CURVES = [{"kmin": 20 * 2**i, "kmax": 80 * 2**i, "pmax": 0.5} for i in range(5)]


def test_torch_gives_the_same_values_and_actions() -> None:
    """The shipped network on 10,000 states, in torch and in numpy."""
    import torch

    policy = load_network("acc-mini")
    modules = []
    for weight, bias in policy.layers:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = torch.tensor(weight), torch.tensor(bias)
        modules += [linear, torch.nn.ReLU()]
    network = torch.nn.Sequential(*modules[:-1])
    x = recorded_states(10_000)
    ours = forward([(w.astype(float), b.astype(float)) for w, b in policy.layers], x)[-1]
    theirs = network(torch.from_numpy(x.astype(np.float32))).detach().numpy()
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.array_equal(ours.argmax(axis=1), theirs.argmax(axis=1))


def recorded_states(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return what ports saw in runs of both mini scenarios under random curves."""
    random = np.random.Generator(np.random.PCG64(7))
    rows: list[np.ndarray[tuple[int, int], np.dtype[np.float64]]] = []
    for i, scenario in enumerate(("mini-fb-hadoop", "mini-llm-alltoall") * 50):
        env = AgentsEnv(
            scenario, agents="port", history=HISTORY, templates=TEMPLATES, intervals=30,
            decision_us=500,
        )  # fmt: skip
        env.reset(seed=i)
        while env.agents and len(rows) * 24 < n:
            actions = {name: int(random.integers(20)) for name in env.agents}
            rows.append(np.array(list(env.step(actions)[0].values()), dtype=np.float64))
    return np.concatenate(rows)[:n]


def make(seed: int = 0, **arguments: Any) -> AgentsEnv:
    return AgentsEnv("mini-llm-alltoall", agents="switch", intervals=3, **arguments)


def test_rows_are_agents_and_episodes_go_on() -> None:
    """Two networks in threads give what each gives alone, also after the reset."""
    vec = shared_vec([make(), make()])
    assert vec.num_envs == 8
    vec.seed(5)
    alone = make()
    first, seen = vec.reset(), alone.reset(seed=5)[0]
    assert np.array_equal(first[:4], np.stack(list(seen.values())))
    assert not np.array_equal(first[:4], first[4:])  # SB3 gives the next network another seed
    random = np.random.default_rng(1)
    for step in range(1, 8):
        actions = random.uniform(-1, 1, (8, 3)).astype(np.float32)
        rows, rewards, dones, infos = vec.step(actions)
        names = alone.possible_agents
        seen, own, *_ = alone.step(dict(zip(names, actions[:4], strict=True)))
        assert rewards[:4].tolist() == pytest.approx([own[n] for n in names])
        assert dones.all() == (step % 3 == 0)
        if not alone.agents:
            last = np.stack([info["terminal_observation"] for info in infos[:4]])
            assert np.array_equal(last, np.stack(list(seen.values())))
            assert infos[0]["TimeLimit.truncated"]
            seen = alone.reset()[0]
        assert np.array_equal(rows[:4], np.stack(list(seen.values())))
    vec.close()


def test_sb3_trains_one_network_over_all_ports() -> None:
    from stable_baselines3 import DQN, PPO

    vec = shared_vec([AgentsEnv("mini-llm-alltoall", agents="port", intervals=4)])
    ppo = PPO("MlpPolicy", vec, n_steps=4, batch_size=24, n_epochs=1, device="cpu")
    ppo.learn(24 * 8)
    assert ppo.num_timesteps == 24 * 8
    chosen, _ = ppo.predict(vec.reset(), deterministic=True)
    assert chosen.shape == (24, 3)
    discrete = shared_vec([make(templates=CURVES)])
    dqn = DQN("MlpPolicy", discrete, learning_starts=4, batch_size=4, device="cpu", buffer_size=99)
    dqn.learn(24)
    assert dqn.predict(discrete.reset())[0].shape == (4,)


def test_agents_with_different_spaces_cannot_share() -> None:
    with pytest.raises(ConfigError, match="2 different spaces"):
        shared_vec([AgentsEnv("mini-llm-alltoall", agents=["tor", "hosts"])])
    with pytest.raises(ConfigError, match="0 different spaces"):
        shared_vec([])
