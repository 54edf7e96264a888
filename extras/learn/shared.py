"""Parameter sharing: SB3's vector environment with a row for every agent.

Parameter sharing, as SuperSuit has it for PettingZoo, in the few lines that our environments need:
all agents of a network step together, and networks step side by side in threads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.vector import in_threads
from dcqcn_gym.extras.learn.extra import need_sb3
from dcqcn_gym.extras.learn.parallel import AgentsEnv

_Base: Any = object


def shared_vec(envs: Sequence[AgentsEnv]) -> Any:
    """Return a Stable-Baselines3 ``VecEnv`` with one row per agent of every environment, in order.

    All agents need the same spaces. A network whose episode ends is reset at once, as SB3 expects;
    the last observation is in ``info["terminal_observation"]``. Raises ConfigError for different
    spaces, MissingExtraError without Stable-Baselines3.
    """
    need_sb3("Stable-Baselines3's vector interface")
    spaces = {
        (repr(env.observation_space(name)), repr(env.action_space(name)))
        for env in envs
        for name in env.possible_agents
    }
    if len(spaces) != 1:
        raise ConfigError(
            f"the agents have {len(spaces)} different spaces; expected at least one agent, and the "
            "same spaces for all that share a network"
        )
    from stable_baselines3.common.vec_env import VecEnv

    return type("SharedVecEnv", (_Rows, VecEnv), {})(list(envs))


class _Rows(_Base):  # type: ignore[misc]
    """What makes a VecEnv whose rows are agents; it is none itself, because VecEnv needs torch."""

    def __init__(self, envs: list[AgentsEnv]) -> None:
        self.envs = envs
        self._rows = [(env, name) for env in envs for name in env.possible_agents]
        env, name = self._rows[0]
        super().__init__(len(self._rows), env.observation_space(name), env.action_space(name))
        workers = max(1, min(len(envs), os.cpu_count() or 1))
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="dcqcn-gym")

    def reset(self) -> Any:
        """Reset every network; seeds are those of :meth:`seed`, one per network."""
        seeds = [self._seeds[i] for i in self._firsts()]
        found = [env.reset(seed=seed)[0] for env, seed in zip(self.envs, seeds, strict=True)]
        self._reset_seeds()
        return np.stack([row for one in found for row in one.values()])

    def step_async(self, actions: Any) -> None:
        """Keep the actions of the coming step."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Step every network with the actions of its agents."""
        bounds = [*self._firsts(), self.num_envs]
        parts = [self._actions[a:b] for a, b in pairwise(bounds)]
        each = in_threads(
            self._pool, lambda i: _step(self.envs[i], parts[i]), range(len(self.envs))
        )
        observations, rewards, dones, infos = zip(*(r for rows in each for r in rows), strict=True)
        return (
            np.stack(observations), np.array(rewards, np.float32), np.array(dones), list(infos),
        )  # fmt: skip

    def close(self) -> None:
        """Stop the threads and release the networks."""
        self._pool.shutdown(wait=True)
        for env in self.envs:
            env.close()

    def _firsts(self) -> list[int]:
        counts = np.cumsum([0, *(len(env.possible_agents) for env in self.envs)])
        return [int(n) for n in counts[:-1]]

    def _of(self, indices: Any) -> list[AgentsEnv]:
        return [self._rows[i][0] for i in self._get_indices(indices)]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the network of each row."""
        return [getattr(env, attr_name) for env in self._of(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the network of each row."""
        for env in self._of(indices):
            setattr(env, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kw: Any) -> Any:
        """Call a method of the network of each row."""
        return [getattr(env, method_name)(*args, **kw) for env in self._of(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for each row: agents have no wrappers."""
        return [False for _ in self._of(indices)]


def _step(env: AgentsEnv, actions: Any) -> list[tuple[Any, float, bool, dict[str, Any]]]:
    """Step one network; return a row per agent, those of the next episode where one ended."""
    names = env.possible_agents
    seen, rewards, ended, cut, infos = env.step(dict(zip(names, actions, strict=True)))
    over = not env.agents
    after = env.reset()[0] if over else seen
    rows = []
    for name in names:
        info = {**infos[name], "TimeLimit.truncated": cut[name] and not ended[name]}
        if over:
            info["terminal_observation"] = seen[name]
        rows.append((after[name], rewards[name], over, info))
    return rows
