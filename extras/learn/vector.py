"""Stable-Baselines3's vector interface over threads: the engine runs without Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from dcqcn_gym.envs.backends.native import run_ahead
from dcqcn_gym.envs.vector import in_threads
from dcqcn_gym.extras.learn.extra import need_sb3

_Base: Any = object
MakeEnv: TypeAlias = Callable[[], gymnasium.Env[Any, Any]]


def make_vec(makers: Sequence[MakeEnv]) -> Any:
    """Return a Stable-Baselines3 ``VecEnv`` of these environments, whose networks run in threads.

    Those of environments with ``begin`` run in one call of the engine. It gives the numbers of
    ``DummyVecEnv``, which steps one after the other. Raises MissingExtraError.
    """
    need_sb3("Stable-Baselines3's vector interface")
    from stable_baselines3.common.vec_env import DummyVecEnv

    return type("ThreadVecEnv", (_Threads, DummyVecEnv), {})(makers)


def _never(_: Any) -> None:
    """Begin nothing: an environment without ``begin`` runs its network itself."""


class _Threads(_Base):  # type: ignore[misc]
    """What a DummyVecEnv does otherwise so that its environments step at the same time.

    It is not one itself, because that class needs torch.
    """

    def __init__(self, makers: Sequence[MakeEnv]) -> None:
        super().__init__(list(makers))
        workers = max(1, min(len(makers), os.cpu_count() or 1))
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="dcqcn-gym")

    def step_wait(self) -> Any:
        """Step all; an environment whose episode ended is reset, as SB3 expects."""
        begun = [
            getattr(e, "begin", _never)(a) for e, a in zip(self.envs, self.actions, strict=True)
        ]
        run_ahead([backend for backend in begun if backend is not None])
        steps = {i: self._step(i) for i, backend in enumerate(begun) if backend is not None}
        rest = [i for i in range(self.num_envs) if i not in steps]
        steps |= zip(rest, in_threads(self._pool, self._step, rest), strict=True)
        for i, (observation, self.buf_rews[i], terminated, truncated, info) in steps.items():
            self.buf_dones[i] = terminated or truncated
            info["TimeLimit.truncated"] = truncated and not terminated
            if self.buf_dones[i]:
                info["terminal_observation"] = observation
            else:
                self._save_obs(i, observation)
            self.buf_infos[i] = info
        ended = np.flatnonzero(self.buf_dones).tolist()
        resets = in_threads(self._pool, lambda i: self.envs[i].reset(), ended)
        for i, (observation, self.reset_infos[i]) in zip(ended, resets, strict=True):
            self._save_obs(i, observation)
        return (
            self._obs_from_buf(),
            self.buf_rews.copy(),
            self.buf_dones.copy(),
            self.buf_infos.copy(),
        )

    def _step(self, i: int) -> Any:
        return self.envs[i].step(self.actions[i])

    def close(self) -> None:
        """Stop the threads and release the networks."""
        self._pool.shutdown(wait=True)
        super().close()
