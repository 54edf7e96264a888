"""The vector interface: many environments in one process, whose networks run in threads.

One call of the engine runs an interval of all networks; what Python does for each comes after it,
one environment after the other, with its code still in the caches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from operator import index
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.envs.backends.native import run_ahead
from dcqcn_gym.envs.dcqcn import DcqcnEnv, Step, check_limit
from dcqcn_gym.envs.scenario.scenario import Scenario

Batch = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
T = TypeVar("T")

Outcome = tuple[Batch, float, bool, bool, dict[str, Any], "tuple[Batch, dict[str, Any]] | None"]
"""Observation, reward, terminated, truncated, info; then what ended the episode (SAME_STEP)."""


def in_threads(pool: ThreadPoolExecutor, work: Callable[[int], T], items: Iterable[int]) -> list[T]:
    """Return ``work`` of each of ``items``, carried out in the pool; raise the first error."""
    futures = [pool.submit(work, item) for item in items]
    wait(futures)  # before an error is raised, so that no environment is left running
    return [future.result() for future in futures]


class DcqcnVectorEnv(VectorEnv[Batch, Batch, Any]):
    """``num_envs`` copies of :class:`DcqcnEnv`, whose networks run in threads.

    The engine releases the GIL, so the networks run in parallel; results equal those of single
    environments to the bit, whatever the number of threads, also after autoreset.
    ``autoreset_mode`` is Gymnasium's NEXT_STEP, SAME_STEP or DISABLED; ``max_workers`` the
    number of threads (default: one per environment, at most one per CPU). The other arguments
    are those of DcqcnEnv, except that ``backend`` must be a name.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Path | Scenario = "fb-hadoop",
        backend: str = "native",
        *,
        intervals: int | None = None,
        knobs: Sequence[str] | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_workers: int | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs = {num_envs}: expected at least 1")
        if not isinstance(backend, str):
            raise ConfigError("backend: each copy needs its own; give a name, not an object")
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.envs = [
            DcqcnEnv(scenario, backend, intervals=intervals, knobs=knobs, render_mode=render_mode)
            for _ in range(num_envs)
        ]
        if max_episode_steps is not None:
            self._limit(max_episode_steps, intervals)
        self.metadata = {**DcqcnEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = render_mode
        self.single_action_space = self.envs[0].action_space
        self.single_observation_space = self.envs[0].observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        workers = min(num_envs, os.cpu_count() or 1) if max_workers is None else max_workers
        self._workers = max(workers, 1)
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="dcqcn-gym")
        shape = (num_envs, *(self.single_observation_space.shape or ()))
        self._observations = np.zeros(shape, dtype=np.float32)
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._seeded = np.zeros(num_envs, dtype=np.bool_)

    def _limit(self, steps: int, intervals: int | None) -> None:
        """End episodes after ``steps`` too, as ``gymnasium.make_vec`` asks for."""
        for env in self.envs:
            if intervals is not None:
                check_limit(env.intervals, env.scenario.cadence, steps)
            env.intervals = min(env.intervals, steps * env.scenario.cadence)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Reset all copies, or those of ``options["reset_mask"]``.

        An int ``seed`` gives copy i the seed ``seed + i``; a sequence gives one each. Without a
        seed a copy goes on with its own stream; the first time that is as if seed were 0, so that
        copy i has the seed i.
        """
        options = dict(options or {})
        mask = self._mask(options.pop("reset_mask", None))
        seeds = _seeds(seed, self.num_envs)
        if len(seeds) != self.num_envs:
            raise ConfigError(f"{len(seeds)} seeds for {self.num_envs} environments")
        chosen = [int(i) for i in np.flatnonzero(mask)]
        for i in chosen:
            if seeds[i] is None and not self._seeded[i]:
                seeds[i] = i
        self._seeded[chosen] = True
        done = in_threads(
            self._pool, lambda i: self.envs[i].reset(seed=seeds[i], options=dict(options)), chosen
        )
        infos: dict[str, Any] = {}
        for i, (observation, info) in zip(chosen, done, strict=True):
            self._observations[i] = observation
            infos = self._add_info(infos, info, i)
        self._ended[mask] = False
        return self._observations.copy(), infos

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Batch, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Step all copies; shapes are those of Gymnasium's vector environments.

        NEXT_STEP: the step after the end of an episode ignores the action and returns the first
        observation of the next one with reward 0. SAME_STEP: the last observation and info are
        in ``infos["final_obs"]`` and ``infos["final_info"]``.
        """
        batch = np.asarray(actions)
        if batch.shape != self.action_space.shape:
            raise ConfigError(
                f"actions have shape {batch.shape}; expected {self.action_space.shape}"
            )
        for bad in np.flatnonzero(~np.isfinite(batch).all(axis=1)):
            self.envs[bad].space.decode(batch[bad])  # names the number, before any copy moves
        if self.autoreset_mode is AutoresetMode.DISABLED and np.any(self._ended):
            ended = np.flatnonzero(self._ended).tolist()
            raise ConfigError(f"environments {ended} have ended; reset them with 'reset_mask'")
        outcomes = self._step_all(batch)
        rewards = np.zeros(self.num_envs)
        terminations, truncations = np.zeros((2, self.num_envs), dtype=np.bool_)
        infos: dict[str, Any] = {}
        for i, (observation, reward, terminated, truncated, info, final) in enumerate(outcomes):
            if final is not None:
                infos = self._add_info(infos, {"final_obs": final[0], "final_info": final[1]}, i)
            self._observations[i] = observation
            rewards[i], terminations[i], truncations[i] = reward, terminated, truncated
            infos = self._add_info(infos, info, i)
        self._ended = terminations | truncations
        return self._observations.copy(), rewards, terminations, truncations, infos

    def render(self) -> tuple[Any, ...]:
        """Return each copy's frame."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return ``name`` of each copy, called with these arguments if it can be called."""
        found = [getattr(env, name) for env in self.envs]
        return tuple(f(*args, **kwargs) if callable(f) else f for f in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of each copy."""
        return tuple(getattr(env, name) for env in self.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each copy: one value per copy (list, tuple), or one for all."""
        each = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ConfigError(f"{len(each)} values for {self.num_envs} environments")
        for env, value in zip(self.envs, each, strict=True):
            setattr(env, name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads and release every network."""
        self._pool.shutdown(wait=True)
        for env in self.envs:
            env.close()

    def _step_all(self, batch: npt.NDArray[Any]) -> list[Outcome]:
        resets = self._ended & (self.autoreset_mode is AutoresetMode.NEXT_STEP)
        begun = {i: self.envs[i].begin(batch[i]) for i in np.flatnonzero(~resets).tolist()}
        ahead = [i for i, backend in begun.items() if backend is not None]
        run_ahead([begun[i] for i in ahead], self._workers)
        done = {i: self.envs[i].step(batch[i]) for i in ahead}
        same = self.autoreset_mode is AutoresetMode.SAME_STEP
        found: dict[int, Outcome] = {
            i: (*step, None) for i, step in done.items() if not (same and (step[2] or step[3]))
        }
        rest = [i for i in range(self.num_envs) if i not in found]
        others = in_threads(self._pool, lambda i: self._step_one(i, batch[i], done.get(i)), rest)
        found.update(zip(rest, others, strict=True))
        return [found[i] for i in range(self.num_envs)]

    def _step_one(self, i: int, action: npt.NDArray[Any], done: Step | None) -> Outcome:
        env = self.envs[i]
        if self._ended[i] and self.autoreset_mode is AutoresetMode.NEXT_STEP:
            observation, info = env.reset()
            return observation, 0.0, False, False, info, None
        observation, reward, terminated, truncated, info = done or env.step(action)
        if (terminated or truncated) and self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = (observation, info)
            observation, info = env.reset()
            return observation, reward, terminated, truncated, info, final
        return observation, reward, terminated, truncated, info, None

    def _mask(self, mask: Any) -> Flags:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        chosen = np.asarray(mask)
        if chosen.shape != (self.num_envs,) or chosen.dtype != np.bool_ or not np.any(chosen):
            raise ConfigError(
                f"options['reset_mask'] must be a bool array of shape ({self.num_envs},) "
                "with at least one True"
            )
        return chosen


def _seeds(seed: int | Sequence[int | None] | None, n: int) -> list[int | None]:
    """Return one seed per copy: ``seed + i``, the given ones, or None for all."""
    if seed is None:
        return [None] * n
    if isinstance(seed, (int, np.integer)):
        return [int(seed) + i for i in range(n)]
    try:
        return [None if s is None else index(s) for s in seed]
    except TypeError:
        raise ConfigError(
            f"seed = {quote(seed)}: expected a whole number, or one (or None) per environment"
        ) from None
