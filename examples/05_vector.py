"""Four networks at once in one process: the vector face of the environment.

Run it: ``python examples/05_vector.py``.
"""

from __future__ import annotations

import gymnasium
import numpy as np


def main() -> None:
    """Step four copies, each with traffic of its own, and print their mean utilities."""
    envs = gymnasium.make_vec(
        "dcqcn_gym:MiniFBHadoop-v0", num_envs=4, vectorization_mode="vector_entry_point"
    )
    envs.action_space.seed(1)
    envs.reset(seed=1)
    rewards = np.array([envs.step(envs.action_space.sample())[1] for _ in range(10)])
    for i, utility in enumerate(rewards.mean(axis=0)):
        print(f"network {i}: mean utility {utility:.4f}")
    envs.close()


if __name__ == "__main__":
    main()
