# %% [markdown]
"""
# Four networks at once in one process

The vector interface of the environment; each network has traffic of its own. Run it:
`python examples/05_vector.py`, or open it as a notebook (jupytext's percent format).
"""

# %%
from __future__ import annotations

import gymnasium
import numpy as np

envs = gymnasium.make_vec(
    "dcqcn_gym:dcqcn/MiniFBHadoop-v0", num_envs=4, vectorization_mode="vector_entry_point"
)
envs.action_space.seed(1)
envs.reset(seed=1)

# %%
rewards = np.array([envs.step(envs.action_space.sample())[1] for _ in range(10)])
for i, utility in enumerate(rewards.mean(axis=0)):
    print(f"network {i}: mean utility {utility:.4f}")
envs.close()
