# %% [markdown]
"""
# Three settings on the same traffic

NVIDIA's default, the experts' setting, and one of our own. The seed decides the traffic, so
differences come from the settings alone. Run it: `python examples/02_compare_settings.py`, or open
it as a notebook (jupytext's percent format).
"""

# %%
from __future__ import annotations

from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.dcqcn import DcqcnEnv


def mean_utility(env: DcqcnEnv, setting: Setting, seed: int) -> float:
    """Return the mean utility of an episode under one setting."""
    env.reset(seed=seed, options={"setting": setting})
    rewards, over = [], False
    while not over:
        _, reward, terminated, truncated, _ = env.step_setting(setting)
        rewards.append(reward)
        over = terminated or truncated
    return mean(rewards)


# %% [markdown]
# Knobs are given in NVIDIA's units; what is not named keeps its value.

# %%
env = DcqcnEnv("mini-fb-hadoop", intervals=20)
default = default_setting(env.scenario.line_rate_bps)
settings = {
    "default": default,
    "expert": expert_setting(env.scenario.line_rate_bps),
    "early marking": default.replace({"kmin": 10, "kmax": 100}),
}
for name, setting in settings.items():
    print(f"{name:14} utility {mean_utility(env, setting, seed=1):.4f}")
env.close()
