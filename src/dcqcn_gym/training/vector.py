"""Stable-Baselines3's vector interface over threads: the engine runs without Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.training.extra import need_sb3

VEC_KINDS = ("threads", "dummy", "subproc")
_Base: Any = object
MakeEnv: TypeAlias = Callable[[], gymnasium.Env[Any, Any]]


def make_vec(makers: Sequence[MakeEnv], kind: str = "threads") -> Any:
    """Return a Stable-Baselines3 ``VecEnv`` of these environments.

    ``threads`` (ours) steps them in a thread pool, ``dummy`` one after the other, ``subproc`` in
    processes. All three give the same numbers. Raises MissingExtraError, UnknownNameError.
    """
    need_sb3("Stable-Baselines3's vector interface")
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    if kind == "dummy":
        return DummyVecEnv(list(makers))
    if kind == "subproc":
        return SubprocVecEnv(list(makers), start_method="spawn")
    if kind != "threads":
        raise UnknownNameError("vector interface", kind, VEC_KINDS)
    return type("ThreadVecEnv", (_Threads, DummyVecEnv), {})(makers)


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
        futures = [self._pool.submit(self._step_one, i) for i in range(self.num_envs)]
        errors = [f.exception() for f in futures]  # waits, so that none is left running
        for error in errors:
            if error is not None:
                raise error
        infos: list[dict[str, Any]] = []
        for i, future in enumerate(futures):
            observation, self.buf_rews[i], self.buf_dones[i], info = future.result()
            self._save_obs(i, observation)
            infos.append(info)
        return self._obs_from_buf(), self.buf_rews.copy(), self.buf_dones.copy(), infos

    def _step_one(self, i: int) -> tuple[Any, float, bool, dict[str, Any]]:
        env = self.envs[i]
        observation, reward, terminated, truncated, info = env.step(self.actions[i])
        info["TimeLimit.truncated"] = truncated and not terminated
        if terminated or truncated:
            info["terminal_observation"] = observation
            observation, self.reset_infos[i] = env.reset()
        return np.asarray(observation), float(reward), terminated or truncated, info

    def close(self) -> None:
        """Stop the threads and release the networks."""
        self._pool.shutdown(wait=True)
        super().close()
