"""Trained policies as tuners: a small network from the observation to a setting, in plain numpy.

A policy file is an ``.npz`` with the layers and what they were trained for; ``dcqcn-gym train``
writes it and nothing here needs torch. The files that come with the package lie in
``configs/policies``, each with the command that made it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dcqcn_gym.core.config import CONFIGS, StrictModel, validate
from dcqcn_gym.core.errors import ConfigError, did_you_mean, in_one_line, quote
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.sums import count
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.policy_file import read_arrays

FORMAT = 1
FOLDER = CONFIGS / "policies"
DIGITS = 6
"""Actions are rounded to so many digits, so that the last bit of a tanh never matters."""

FIRST_LAYOUT = "1/dcqcn/745b1213aff0"
"""Layout of the policies that name none: what there was before files said so."""

Array: TypeAlias = npt.NDArray[np.float32]


class PolicyMeta(StrictModel):
    """What a policy was trained for and how; part of its file."""

    format: Literal[1] = 1
    algo: str
    observation_version: int
    layout: str = Field(
        default=FIRST_LAYOUT,
        pattern=r"^\d+/[^/]+/[0-9a-f]+$",
        description="dcqcn_gym.envs.observation.layout_name of the training",
    )
    knobs: tuple[str, ...]
    output: Literal["clip", "tanh", "argmax"]
    steps: int = Field(ge=0)
    scenarios: tuple[str, ...]
    command: str
    versions: dict[str, str]


@dataclass(frozen=True)
class Policy:
    """A multi-layer perceptron with ReLU between its layers.

    ``layers`` holds (weight, bias) with weight of shape (out, in). ``meta.output`` says what
    becomes of the last layer: clipped to -1..1, squashed by tanh, or the row of ``actions``
    (shape (choices, knobs), values in -1..1) with the largest number.
    """

    meta: PolicyMeta
    layers: tuple[tuple[Array, Array], ...]
    actions: Array | None = None

    @property
    def inputs(self) -> int:
        """Length of the observation."""
        return int(self.layers[0][0].shape[1])

    def act(self, observation: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the deterministic action in -1..1, shape (knobs,), for one observation."""
        x = np.asarray(observation, dtype=np.float64)
        for i, (weight, bias) in enumerate(self.layers):
            # summed by numpy, not by BLAS, whose order of additions depends on the processor
            x = np.asarray((weight * x).sum(axis=1) + bias, dtype=np.float64)
            if i + 1 < len(self.layers):
                x = np.maximum(x, 0.0)
        if self.actions is not None:
            return np.asarray(self.actions[int(np.argmax(x))], dtype=np.float64)
        if self.meta.output == "tanh":
            x = np.tanh(x)
        return np.asarray(np.round(np.clip(x, -1.0, 1.0), DIGITS), dtype=np.float64)

    def to_bytes(self) -> bytes:
        """Return the file: the same policy gives the same bytes."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "meta": np.frombuffer(self.meta.model_dump_json().encode(), dtype=np.uint8)
        }
        for i, (weight, bias) in enumerate(self.layers):
            arrays[f"weight{i}"], arrays[f"bias{i}"] = weight, bias
        if self.actions is not None:
            arrays["actions"] = self.actions
        buffer = BytesIO()
        np.savez_compressed(buffer, **cast(Any, arrays))
        return buffer.getvalue()

    def save(self, path: str | Path) -> None:
        """Write the file, an ``.npz``, whole or not at all; one that is there is replaced."""
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        draft.write_bytes(self.to_bytes())
        draft.replace(target)

    @classmethod
    def load(cls, name_or_path: str | Path) -> Policy:
        """Return a policy as :func:`load_policy` does."""
        return load_policy(name_or_path)

    def check(self, source: str) -> Policy:
        """Return self if the shapes fit together, else raise ConfigError naming ``source``."""
        outputs = len(self.meta.knobs)
        if (self.actions is not None) != (self.meta.output == "argmax"):
            raise ConfigError(f"{source}: a table of actions goes with output 'argmax' alone")
        if self.actions is not None:
            if self.actions.ndim != 2 or self.actions.shape[1] != outputs:
                raise ConfigError(f"{source}: actions have shape {self.actions.shape}")
            if self.actions.dtype.kind != "f" or not (np.abs(self.actions) <= 1.0).all():
                raise ConfigError(f"{source}: actions hold something else than numbers in -1..1")
            outputs = len(self.actions)
        width: int | None = None
        for i, (weight, bias) in enumerate(self.layers):
            if weight.ndim != 2 or bias.shape != weight.shape[:1] or width not in (
                None, weight.shape[1]
            ):  # fmt: skip
                raise ConfigError(
                    f"{source}: layer {i} has weights {weight.shape} and biases {bias.shape}, "
                    f"which do not fit what comes before"
                )
            width = int(weight.shape[0])
            if weight.dtype.kind != "f" or bias.dtype.kind != "f":
                raise ConfigError(f"{source}: layer {i} does not hold real numbers")
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise ConfigError(f"{source}: layer {i} holds numbers that are not finite")
        if width != outputs:
            raise ConfigError(f"{source}: the last layer gives {width} numbers, not {outputs}")
        return self


def shipped_policies() -> list[str]:
    """Return the names of the policies that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def load_policy(name_or_path: str | Path) -> Policy:
    """Return a policy by the name of a shipped one, a file, or the directory of a training.

    Raises ConfigError, in one sentence, if there is none or the file is no policy.
    """
    path = _find(str(name_or_path))
    arrays = read_arrays(path)
    try:
        meta = parse_json(arrays["meta"].tobytes())
        number = count(key.startswith("weight") for key in arrays)
        layers = tuple((arrays[f"weight{i}"], arrays[f"bias{i}"]) for i in range(number))
    except KeyError as error:
        raise ConfigError(f"{path} is not a policy file: {error} is missing") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not a policy file: {in_one_line(error)}") from None
    if not isinstance(meta, dict):
        raise ConfigError(f"{path} is not a policy file: meta is {quote(meta)}; expected a table")
    if meta.get("format") != FORMAT:
        raise ConfigError(
            f"{path} has format {quote(meta.get('format'))}; this version reads format {FORMAT}: "
            "export the policy again with `dcqcn-gym train`"
        )
    typed = validate(meta, PolicyMeta, source=str(path))
    return Policy(typed, layers, arrays.get("actions")).check(str(path))


def _find(text: str) -> Path:
    shipped = shipped_policies()
    if text in shipped:
        return FOLDER / f"{text}.npz"
    path = Path(text)
    if path.is_dir():
        path = path / "policy.npz"
        if not path.exists():
            raise ConfigError(f"{path} does not exist: no training has reached a checkpoint there")
    if not path.exists():
        raise ConfigError(
            f"policy {quote(text)} is neither a file nor a policy of the package"
            f"{did_you_mean(text, shipped)}"
        )
    return path


class _FileSettings(TunerSettings):
    file: str = Field(
        default="ppo-mini",
        description="a shipped policy, an .npz file, or the directory of a training",
    )


class PolicyTuner(Tuner):
    """Acts by a trained policy: each interval's observation gives the next setting."""

    name = "policy"
    summary = "a trained policy from a file, run in numpy"
    Settings: ClassVar[type[TunerSettings]] = _FileSettings

    def start(self, context: TunerContext) -> None:
        """Load the policy; raise ConfigError if it was made for other observations or knobs."""
        super().start(context)
        source = self._source()
        self._policy = load_policy(source)
        _check_fits(self._policy, source, context)
        self._x = np.asarray(context.observation, dtype=np.float64)
        self._acted: list[npt.NDArray[np.float64]] = []

    def _source(self) -> str:
        return cast(_FileSettings, self.settings).file

    def ask(self) -> Setting | None:
        """Return the policy's action on the last observation."""
        if not self._x.size:
            return None
        self._acted.append(self._policy.act(self._x))
        return self._setting(self._acted[-1])

    def tell(self, outcome: Outcome) -> None:
        """Take the observation."""
        super().tell(outcome)
        self._x = np.asarray(outcome.observation, dtype=np.float64)

    def recommend(self) -> Setting:
        """Return one setting for a network without the policy: the median of what it did."""
        if not self._acted:
            return self.context.base
        return self._setting(np.median(self._acted, axis=0))

    def state(self) -> dict[str, Any]:
        """Return which algorithm trained it, and for how long."""
        return {"algo": self._policy.meta.algo, "trained_steps": self._policy.meta.steps}

    def _setting(self, unit: npt.NDArray[np.float64]) -> Setting:
        return self.context.space.setting(unit, self.context.base)


def _check_fits(policy: Policy, source: str, context: TunerContext) -> None:
    meta = policy.meta
    size = context.observation.size
    if context.observation_version and meta.observation_version != context.observation_version:
        raise ConfigError(
            f"policy {quote(source)} was trained on observations of version "
            f"{meta.observation_version}, this environment gives version "
            f"{context.observation_version}; train it again with: {meta.command}"
        )
    if meta.algo in ("acc", "acc-central"):
        raise ConfigError(
            f"policy {quote(source)} is a network of ACC, which reads ports; run it with: "
            f"dcqcn-gym tune --tuner {meta.algo} --tuner-arg file=FILE"
        )
    if context.observation_layout and meta.layout != context.observation_layout:
        ours, theirs = _table(context.observation_layout), _table(meta.layout)
        raise ConfigError(
            f"policy {quote(source)} was trained for {theirs}, this environment has {ours}; "
            f"train it again with: {meta.command}"
        )
    if size and size != policy.inputs:
        raise ConfigError(
            f"policy {quote(source)} expects observations of {policy.inputs} numbers, this "
            f"environment gives {size}"
        )
    if meta.knobs != context.space.knobs:
        other = sorted(set(meta.knobs) ^ set(context.space.knobs))
        raise ConfigError(
            f"policy {quote(source)} was trained for other knobs than this environment turns "
            f"({', '.join(other) or 'the same in another order'}); train it for these knobs"
        )


def _table(layout: str) -> str:
    _, scheme, digest = layout.split("/")
    return f"the knob table of scheme {scheme!r} ({digest})"


def _shipped(policy: str, summary: str) -> type[PolicyTuner]:
    """Return the tuner of a policy that comes with the package, under the policy's name."""

    class Shipped(PolicyTuner):
        Settings: ClassVar[type[TunerSettings]] = TunerSettings

        def _source(self) -> str:
            return policy

    Shipped.name, Shipped.summary = policy, f"a shipped policy: {summary}"
    return Shipped


_ON = "trained on mini-fb-hadoop and mini-llm-alltoall"
PpoMiniTuner = _shipped("ppo-mini", f"PPO, {_ON}")
SacMiniTuner = _shipped("sac-mini", f"SAC, {_ON}")
Td3MiniTuner = _shipped("td3-mini", f"TD3, {_ON}")
DqnMiniTuner = _shipped("dqn-mini", "DQN over a ladder of settings, trained on both mini scenarios")
