# %% [markdown]
"""
# The environment by hand

Ten monitor intervals of a small network under random settings. Run it as it is,
`python examples/01_environment.py`, or open it as a notebook (jupytext's percent format).
"""

# %%
from __future__ import annotations

import gymnasium

env = gymnasium.make("dcqcn_gym:dcqcn/MiniFBHadoop-v0")
env.action_space.seed(1)
observation, info = env.reset(seed=1)
print(f"{observation.size} numbers observed, {env.action_space.shape} knobs to set")

# %% [markdown]
# One step is one monitor interval: a setting goes in, the network runs, and the utility comes out.

# %%
for _ in range(10):
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    terms, setting = info["terms"], info["setting"]
    print(
        f"U {reward:.3f} = throughput {terms.tp:.3f}, RTT {terms.rtt:.3f}, "
        f"no pause {terms.pfc:.3f}; kmin {setting['kmin']:.0f} KB, "
        f"ai_rate {setting['rp_ai_rate']:.0f} Mb/s"
    )
    if terminated or truncated:
        break
env.close()
