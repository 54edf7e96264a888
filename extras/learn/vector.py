"""Stable-Baselines3's vector interface over threads: the engine runs without Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.envs.backends.native import run_ahead
from dcqcn_gym.extras.learn.extra import need_sb3

VEC_KINDS = ("threads", "dummy", "subproc")
_Base: Any = object
MakeEnv: TypeAlias = Callable[[], gymnasium.Env[Any, Any]]


def make_vec(makers: Sequence[MakeEnv], kind: str = "threads") -> Any:
    """Return a Stable-Baselines3 ``VecEnv`` of these environments.

    ``threads`` (ours) runs their networks in threads, those of environments with ``begin`` in one
    call of the engine; ``dummy`` steps them one after the other, ``subproc`` in processes. All
    three give the same numbers. Raises MissingExtraError, UnknownNameError.
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
        ahead = [
            getattr(e, "begin", _never)(a) for e, a in zip(self.envs, self.actions, strict=True)
        ]
        run_ahead([backend for backend in ahead if backend is not None])
        calls = [self._call(i, now=backend is not None) for i, backend in enumerate(ahead)]
        for i, step in enumerate(self._results(calls)):
            observation, self.buf_rews[i], terminated, truncated, info = step
            self.buf_dones[i] = terminated or truncated
            info["TimeLimit.truncated"] = truncated and not terminated
            if self.buf_dones[i]:
                info["terminal_observation"] = observation
            else:
                self._save_obs(i, observation)
            self.buf_infos[i] = info
        ended = np.flatnonzero(self.buf_dones).tolist()
        resets = self._results([self._pool.submit(self.envs[i].reset) for i in ended])
        for i, (observation, self.reset_infos[i]) in zip(ended, resets, strict=True):
            self._save_obs(i, observation)
        return (
            self._obs_from_buf(),
            self.buf_rews.copy(),
            self.buf_dones.copy(),
            self.buf_infos.copy(),
        )

    def _call(self, i: int, *, now: bool) -> Future[Any]:
        """Step an environment: at once if its network has run, else in the pool."""
        if not now:
            return self._pool.submit(self.envs[i].step, self.actions[i])
        future: Future[Any] = Future()
        future.set_result(self.envs[i].step(self.actions[i]))
        return future

    @staticmethod
    def _results(futures: Sequence[Future[Any]]) -> list[Any]:
        """Wait for all, so that none is left running; then raise the first error."""
        for error in [f.exception() for f in futures]:
            if error is not None:
                raise error
        return [f.result() for f in futures]

    def close(self) -> None:
        """Stop the threads and release the networks."""
        self._pool.shutdown(wait=True)
        super().close()
