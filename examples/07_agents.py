# %% [markdown]
"""
# One small network for all ports of all switches

A training loop without any library. Every egress port is an agent; all of them share one linear
policy over five marking curves. It learns from their own rewards by the policy gradient (REINFORCE;
the baseline is the mean of each port). So few episodes show the loop, not a good policy. With
PettingZoo installed, `dcqcn_gym.parallel_env` gives the same environment to other libraries.
Run it: `python examples/07_agents.py`, or open it as a notebook (jupytext's percent format).
"""

# %%
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dcqcn_gym.extras.learn.parallel import AgentsEnv

CURVES = [{"kmin": 20 * 2**i, "kmax": 80 * 2**i, "pmax": 0.5} for i in range(5)]
EPISODES, STEPS, STEP_SIZE = 8, 30, 20.0


Array = npt.NDArray[np.float64]


def probabilities(weights: Array, x: Array) -> Array:
    """Return the policy's probability of every curve, one row per agent."""
    scores = x @ weights
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float64)


def main() -> None:
    """Train for a few episodes and print how the mean reward moves."""
    env = AgentsEnv("mini-storm", agents="port", templates=CURVES, intervals=STEPS)
    random = np.random.default_rng(1)
    size = env.observation_space(env.possible_agents[0]).shape
    assert size is not None
    weights = np.zeros((size[0] + 1, len(CURVES)))
    usual = np.zeros(len(env.possible_agents))
    for episode in range(EPISODES):
        observations, _ = env.reset(seed=episode)
        total, gradient = 0.0, np.zeros_like(weights)
        for step in range(1, STEPS + 1):
            names = list(env.agents)
            x = np.array([[1.0, *observations[name]] for name in names])
            chances = probabilities(weights, x)
            chosen = [int(random.choice(len(CURVES), p=row)) for row in chances]
            observations, rewards, *_ = env.step(dict(zip(names, chosen, strict=True)))
            reward = np.array([rewards[name] for name in names])
            total += float(reward.mean())
            usual += (reward - usual) / (episode * STEPS + step)
            push = (np.eye(len(CURVES))[chosen] - chances) * (reward - usual)[:, None]
            gradient += x.T @ push / len(names)
        weights += STEP_SIZE * gradient / STEPS
        print(f"episode {episode}: mean reward per port {total / STEPS:.4f}")
    env.close()


if __name__ == "__main__":
    main()
