"""The training environment: every episode draws a scenario and a traffic seed.

An agent that saw one seed would learn that traffic by heart. Traffic seeds of training lie at
2^31 and above; tuning, comparisons and evaluations use smaller ones, so those are always held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.core.interval import Observation
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.wrappers import LadderAction
from dcqcn_gym.runs.entries import FIRST_TRAINING_SEED

_STREAM = 0x7261696E  # keeps these draws apart from others with the same seed

Step = tuple[Observation, float, bool, bool, dict[str, Any]]


class SampledEnv(gymnasium.Env[Observation, Any]):
    """A :class:`DcqcnEnv` whose ``reset`` draws the scenario and the traffic seed.

    ``stream`` numbers start the draws: the same numbers, the same episodes. ``discrete`` offers
    the ladder of :class:`LadderAction` instead of the box. ``intervals`` is the episode's length
    in monitor intervals, ``backend`` a name or an object that the scenarios share. ``info`` holds
    only the utility, whether the step was idle, and the scenario; the last step of an episode adds
    ``episode`` (return ``r``, length ``l``).
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        stream: Sequence[int] = (0,),
        *,
        intervals: int = 50,
        backend: str | Backend = "native",
        discrete: bool = False,
    ) -> None:
        if not scenarios:
            raise ConfigError("training needs at least one scenario")
        self.scenarios = tuple(scenarios)
        self.envs = [DcqcnEnv(s, backend, intervals=intervals) for s in self.scenarios]
        self._ladders = [LadderAction(env) for env in self.envs] if discrete else []
        self.render_mode = None
        self.action_space = (self._ladders or self.envs)[0].action_space
        self.observation_space = self.envs[0].observation_space
        self._stream = tuple(stream)
        self._draws = _generator(self._stream)
        self._at: int | None = None
        self._traffic = 0
        self._actions: list[Any] = []
        self._return = 0.0

    @property
    def knobs(self) -> tuple[str, ...]:
        """The knobs that an action sets, in its order."""
        return self.envs[0].space.knobs

    @property
    def setting(self) -> Setting:
        """The setting in force."""
        return self.envs[self._at or 0].setting

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the next episode of the stream; ``seed`` starts the stream itself anew."""
        if seed is not None:
            super().reset(seed=seed)
            self._draws = _generator((*self._stream, seed))
        at = int(self._draws.integers(len(self.envs)))
        traffic = FIRST_TRAINING_SEED + int(self._draws.integers(FIRST_TRAINING_SEED))
        observation = self._begin(at, traffic, options)
        return observation, {"scenario": self.scenarios[at].name, "seed": traffic}

    def _begin(self, at: int, traffic: int, options: dict[str, Any] | None = None) -> Observation:
        if self._at is not None:
            self.envs[self._at].close()
        self._at, self._traffic = at, traffic
        self._actions, self._return = [], 0.0
        return self.envs[at].reset(seed=traffic, options=options)[0]

    def step(self, action: Any) -> Step:
        """Step the drawn environment."""
        if self._at is None:
            raise StateError("step() before the episode began; call reset() first")
        done = self.envs[self._at].bare_step(self._taken(action))
        self._actions.append(np.array(action))  # a copy: the caller may reuse its array
        self._return += done.reward
        small: dict[str, Any] = {
            "utility": done.utility,
            "idle": done.idle,
            "scenario": self.scenarios[self._at].name,
        }
        if done.terminated or done.truncated:
            small["episode"] = {"r": self._return, "l": len(self._actions), "t": 0.0}
        return done.observation, done.reward, done.terminated, done.truncated, small

    def begin(self, action: Any) -> Backend | None:
        """Begin the step of ``action`` as :meth:`DcqcnEnv.begin` does; return who runs ahead."""
        if self._at is None:
            raise StateError("step() before the episode began; call reset() first")
        return self.envs[self._at].begin(self._taken(action))

    def _taken(self, action: Any) -> Any:
        return self._ladders[self._at or 0].action(action) if self._ladders else action

    def episode_state(self) -> dict[str, Any]:
        """Return the draws, the episode and its actions so far as JSON values."""
        if self._at is None:
            raise StateError("episode_state() before the episode began; call reset() first")
        return {
            "draws": self._draws.bit_generator.state,
            "scenario": self._at,
            "seed": self._traffic,
            "actions": [action.tolist() for action in self._actions],
        }

    def restore_episode(self, state: Mapping[str, Any]) -> Observation:
        """Go to a state of :meth:`episode_state` and return its last observation.

        The episode runs again from its start with the same actions, so the network is the same.
        """
        observation = self._begin(int(state["scenario"]), int(state["seed"]))
        for action in state["actions"]:
            observation = self.step(np.array(action, dtype=self.action_space.dtype))[0]
        self._draws.bit_generator.state = state["draws"]
        return observation

    def close(self) -> None:
        """Release the networks."""
        for env in self.envs:
            env.close()
        self._at = None


def _generator(stream: Sequence[int]) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([_STREAM, *stream])))
