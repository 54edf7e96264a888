"""What is trained: everything that decides a training, and the files of its directory."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import dcqcn_gym
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.envs.observation import OBSERVATION_VERSION
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.training.algorithms import hyperparameters, is_discrete
from dcqcn_gym.training.sampling import SampledEnv

__all__ = ["Checkpoint", "TrainDir", "TrainSpec"]

SCHEMA = 2
"""Of ``train.json`` and the checkpoints; 2 since a checkpoint holds everything."""


@dataclass(frozen=True)
class TrainSpec:
    """A training. ``scenarios`` are names or files; ``changes`` replace hyperparameters."""

    algo: str
    scenarios: Sequence[str]
    envs: int = 2
    steps: int = 10_000
    seed: int = 1
    episode: int = 50
    backend: str = "native"
    changes: Mapping[str, object] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ConfigError for anything that a person can get wrong; builds nothing."""
        hyperparameters(self.algo, self.changes)
        for name in ("envs", "steps", "episode"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}: expected at least 1")
        if self.steps < self.rollout:
            raise ConfigError(
                f"steps = {self.steps}: {self.algo} learns from rollouts of {self.rollout} steps "
                f"({self.envs} environments); expected at least one"
            )
        self._env(0).close()

    @property
    def rollout(self) -> int:
        """Steps from one update to the next, which are taken together or not at all."""
        values = hyperparameters(self.algo, self.changes)
        return self.envs * int(values.get("n_steps", 1))

    def whole_steps(self) -> int:
        """Return the steps that are taken: whole rollouts, and never more than ``steps``."""
        return self.steps // self.rollout * self.rollout

    def notes(self) -> list[str]:
        """Return what a person has to know of the budget."""
        taken = self.whole_steps()
        if taken == self.steps:
            return []
        return [f"{taken} of {self.steps} steps are taken: rollouts of {self.rollout} are whole"]

    def command(self) -> str:
        """Return the command that makes this training."""
        words = ["dcqcn-gym", "train", "--algo", self.algo, "--scenario", ",".join(self.scenarios)]
        words += ["--envs", str(self.envs), "--steps", str(self.steps), "--seed", str(self.seed)]
        standard = TrainSpec(self.algo, self.scenarios)
        for name in ("episode", "backend"):
            if getattr(self, name) != getattr(standard, name):
                words += [f"--{name}", str(getattr(self, name))]
        words += [w for k, v in self.changes.items() for w in ("--algo-arg", f"{k}={v}")]
        return shlex.join([*words, "--out", "DIR"])

    def header(self) -> dict[str, Any]:
        """Return what ``train.json`` holds and a resumed training must repeat."""
        return {
            "schema": SCHEMA,
            "versions": {"dcqcn_gym": dcqcn_gym.__version__, "observation": OBSERVATION_VERSION},
            "algo": self.algo,
            "scenarios": [load_scenario(name).model_dump(mode="json") for name in self.scenarios],
            "envs": self.envs,
            "seed": self.seed,
            "episode": self.episode,
            "backend": self.backend,
            "hyperparameters": hyperparameters(self.algo, self.changes),
        }

    def makers(self) -> list[Callable[[], SampledEnv]]:
        """Return one maker per environment."""
        return [partial(self._env, i) for i in range(self.envs)]

    def _env(self, index: int) -> SampledEnv:
        return SampledEnv(
            [load_scenario(name) for name in self.scenarios],
            (self.seed, index, 0),  # the 0 keeps the streams of the shipped policies
            intervals=self.episode,
            backend=self.backend,
            discrete=is_discrete(self.algo),
        )


@dataclass(frozen=True)
class Checkpoint:
    """A saved model, the replay buffer of an off-policy algorithm, and the rest of the state."""

    folder: Path

    @property
    def steps(self) -> int:
        """Environment steps that the model has seen."""
        return int(self.folder.name.removeprefix("step-"))

    @property
    def model(self) -> Path:
        """The model in Stable-Baselines3's format."""
        return self.folder / "model.zip"

    @property
    def replay(self) -> Path:
        """The replay buffer; absent for PPO."""
        return self.folder / "replay.pkl"

    @property
    def state(self) -> Path:
        """Random streams and episodes (:mod:`dcqcn_gym.training.state`)."""
        return self.folder / "state.json"


class HasHeader(Protocol):
    """A training that can say what a resumed one must repeat."""

    def header(self) -> dict[str, Any]:
        """Return JSON values."""


@dataclass(frozen=True)
class TrainDir:
    """The directory of a training."""

    root: Path

    @property
    def header(self) -> Path:
        """Arguments and versions."""
        return self.root / "train.json"

    @property
    def policy(self) -> Path:
        """The policy as exported at the last checkpoint."""
        return self.root / "policy.npz"

    @property
    def timing(self) -> Path:
        """Seconds; different in every run."""
        return self.root / "timing.json"

    @property
    def checkpoints(self) -> Path:
        """One folder per checkpoint that is kept."""
        return self.root / "checkpoints"

    def folder(self, steps: int) -> Path:
        """Return where the checkpoint after so many steps lies."""
        return self.checkpoints / f"step-{steps:09d}"

    def last(self) -> Checkpoint | None:
        """Return the newest checkpoint, or None."""
        found = sorted(self.checkpoints.glob("step-*[0-9]"))
        return Checkpoint(found[-1]) if found else None

    def check(self, spec: HasHeader, *, resume: bool, force: bool) -> Checkpoint | None:
        """Return the checkpoint to go on from; raise RunError if the directory does not fit."""
        if resume and force:
            raise RunError("--resume continues a training and --force replaces it; give one")
        if self.root.exists() and not self.root.is_dir():
            raise RunError(f"--out {self.root} is a file; give a directory")
        if not self.header.exists() or force:
            return None
        if not resume:
            raise RunError(
                f"{self.root} already holds a training; continue it with --resume, replace it "
                "with --force, or give another --out"
            )
        self._check_same(spec)
        return self.last()

    def _check_same(self, spec: HasHeader) -> None:
        try:
            old = json.loads(self.header.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{self.header} cannot be read: {error}") from None
        new = json.loads(json.dumps(spec.header()))
        for key in new:
            if old.get(key) != new[key]:
                before, after = _short(key, old.get(key)), _short(key, new[key])
                raise RunError(
                    f"--resume: {self.root} was trained with {key} = {before}, now it is {after}; "
                    "give the same arguments (only --steps may differ), or --force to start again"
                )


def _short(key: str, value: Any) -> str:
    if key == "scenarios" and isinstance(value, list):
        return ",".join(str(s.get("name")) for s in value)
    return json.dumps(value)
