"""A training: everything that decides its result, and the files of its directory."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dcqcn_gym.core.errors import ConfigError, RunError, printable, quote
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.version import code_versions, version_difference
from dcqcn_gym.envs.observation import OBSERVATION_VERSION, layout_name
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.algorithms import hyperparameters, is_discrete
from dcqcn_gym.extras.learn.sampling import SampledEnv

SCHEMA = 3
"""Of ``train.json`` and the checkpoints; 2 since a checkpoint holds everything, 3 since it names
its training."""


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
        if self.algo == "ppo" and self.rollout < 2:
            raise ConfigError(
                "n_steps = 1: ppo learns from rollouts of at least 2 steps; give more n_steps or "
                "envs"
            )
        self.space()

    def space(self) -> KnobSpace:
        """Return what an action of the policy sets: the space of the first scenario.

        Raises ConfigError if another scenario needs another policy. Line rates may differ: actions
        and observations are relative to them.
        """
        env = self._env(0)
        env.close()
        first = env.envs[0].space
        for name, made in zip(self.scenarios, env.envs, strict=True):
            difference = _difference(first, made.space)
            if difference:
                one, other = printable(self.scenarios[0]), printable(name)  # paths, shown whole
                raise ConfigError(
                    f"scenarios '{one}' and '{other}' cannot train one policy: they have "
                    f"{difference}; train one for each"
                )
        return first

    @property
    def rollout(self) -> int:
        """Steps from one update to the next, which are taken together or not at all."""
        values = hyperparameters(self.algo, self.changes)
        return self.envs * int(values.get("n_steps", values.get("train_freq", 1)))

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
            "versions": {**code_versions(), "observation": OBSERVATION_VERSION},
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


def _difference(a: KnobSpace, b: KnobSpace) -> str:
    """Return in which way a policy for one space is none for another, or nothing."""
    if a.table.scheme != b.table.scheme:
        return f"the knob tables of {quote(a.table.scheme)} and {quote(b.table.scheme)}"
    if a.knobs != b.knobs:
        others = sorted(set(a.knobs) ^ set(b.knobs))
        return f"other knobs to turn ({', '.join(others) or 'the same in another order'})"
    if layout_name(a) == layout_name(b):
        return ""
    rows = [(a.row(name), b.row(name)) for name in a.knobs]
    ranges = [x.name for x, y in rows if (x.tuned, x.scaling) != (y.tuned, y.scaling)]
    return f"other ranges of {', '.join(ranges)}" if ranges else "other observations"


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
        """Random streams and episodes (:mod:`dcqcn_gym.extras.learn.state`)."""
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
        """One folder per checkpoint that stays."""
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
            raise RunError("a training is continued or replaced; give one")
        if self.root.exists() and not self.root.is_dir():
            raise RunError(f"--out {self.root} is a file; give a directory")
        if force:
            return None
        if not self.header.exists():
            if self.last() is not None:
                raise RunError(
                    f"{self.root} holds checkpoints without {self.header.name}, which says of "
                    "what; replace them with --force, or give another --out"
                )
            return None
        if not resume:
            raise RunError(
                f"{self.root} already holds a training; replace it with --force, or give another "
                "--out"
            )
        self._check_same(spec)
        return self.last()

    def _check_same(self, spec: HasHeader) -> None:
        try:
            old = json.loads(self.header.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{self.header} cannot be read: {error}") from None
        new = json.loads(json.dumps(spec.header()))
        versions = old.get("versions")
        if isinstance(versions, dict) and (differs := version_difference(versions)):
            raise RunError(
                f"{self.root} was trained by other code: {differs}; go on with that one, or give "
                "--force to start again"
            )
        for key in new:
            if old.get(key) != new[key]:
                before, after = _short(key, old.get(key)), _short(key, new[key])
                raise RunError(
                    f"{self.root} was trained with {key} = {before}, now it is {after}; "
                    "give the same arguments (only --steps may differ), or --force to start again"
                )


def training_digest(spec: HasHeader) -> str:
    """Return the SHA-256 of a training's header, by which a checkpoint names its training."""
    return hashlib.sha256(json.dumps(spec.header(), sort_keys=True).encode()).hexdigest()


def check_training(checkpoint: Path, recorded: object, spec: HasHeader) -> None:
    """Raise RunError unless ``recorded`` in a checkpoint names this training.

    ``train.json`` alone cannot show it: it may be newer than what else lies in the directory.
    """
    if recorded != training_digest(spec):
        raise RunError(
            f"{checkpoint} was left by another training than this one; remove it, or "
            "give --force to start again"
        )


def _short(key: str, value: Any) -> str:
    if key == "scenarios" and isinstance(value, list):
        return ",".join(str(s.get("name")) for s in value)
    return json.dumps(value)
