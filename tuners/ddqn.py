"""A small double deep Q-network in plain numpy: value network, replay memory, learning step.

Double DQN of van Hasselt, Guez and Silver (AAAI'16) with Adam and clipped errors. The networks of
ACC have a few thousand weights, so numpy is quick enough to learn while a network runs, and the
same seed gives the same bytes; torch is not needed. Sums are numpy's, not those of BLAS, whose
order of additions depends on the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dcqcn_gym.core.config import StrictModel

Array: TypeAlias = npt.NDArray[np.float64]
Layers: TypeAlias = list[tuple[Array, Array]]
"""(weight of shape (out, in), bias) of every layer; ReLU between them."""


class DdqnSettings(StrictModel):
    """How it learns. ACC's numbers are not public; these are ours."""

    learning_rate: float = Field(default=1e-3, gt=0, description="step size of Adam")
    gamma: float = Field(default=0.9, ge=0, lt=1, description="discount from decision to decision")
    batch: int = Field(default=64, ge=1, description="remembered steps per update")
    memory: int = Field(default=50_000, ge=1, description="steps that are remembered")
    target_every: int = Field(default=200, ge=1, description="updates between two target networks")


def new_layers(sizes: Sequence[int], random: np.random.Generator) -> Layers:
    """Return random layers (He, uniform), biases 0."""
    layers = []
    for n_in, n_out in pairwise(sizes):
        bound = np.sqrt(6.0 / n_in)
        layers.append((random.uniform(-bound, bound, (n_out, n_in)), np.zeros(n_out)))
    return layers


def forward(layers: Layers, x: npt.ArrayLike) -> list[Array]:
    """Return the input and what every layer gives, the last one the values of the actions.

    ``x`` has one row per state.
    """
    seen = [np.asarray(x, dtype=np.float64)]
    for i, (weight, bias) in enumerate(layers):
        out = (seen[-1][:, None, :] * weight).sum(axis=2) + bias
        seen.append(np.maximum(out, 0.0) if i + 1 < len(layers) else out)
    return seen


@dataclass
class ReplayBuffer:
    """The last ``size`` steps: state, action, reward, next state."""

    state: Array
    action: npt.NDArray[np.int64]
    reward: Array
    after: Array
    count: int = 0

    @classmethod
    def empty(cls, size: int, inputs: int) -> ReplayBuffer:
        """Return a memory without a step."""
        wide = np.zeros((size, inputs))
        return cls(wide, np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros_like(wide))

    def add(self, state: Array, action: npt.NDArray[np.int64], reward: Array, after: Array) -> None:
        """Remember one step per row."""
        at = (self.count + np.arange(len(action))) % len(self.action)
        self.state[at], self.action[at] = state, action
        self.reward[at], self.after[at] = reward, after
        self.count += len(action)

    def draw(self, n: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return the places of ``n`` remembered steps."""
        return random.integers(min(self.count, len(self.action)), size=n)


class Ddqn:
    """Learns the values of actions; ``layers`` is the network that acts."""

    def __init__(self, layers: Layers, settings: DdqnSettings) -> None:
        self.settings = settings
        self.layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in layers]
        self.target = [(w.copy(), b.copy()) for w, b in self.layers]
        self.memory = ReplayBuffer.empty(settings.memory, self.layers[0][0].shape[1])
        self.updates = 0
        flat = [part for layer in self.layers for part in layer]
        self._mean = [np.zeros_like(part) for part in flat]
        self._square = [np.zeros_like(part) for part in flat]

    def act(self, x: Array, epsilon: float, random: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return an action per row: the best one, or with probability ``epsilon`` any."""
        values = forward(self.layers, x)[-1]
        best = np.argmax(values, axis=1)
        other = random.integers(values.shape[1], size=len(best))
        return np.where(random.random(len(best)) < epsilon, other, best).astype(np.int64)

    def learn(self, random: np.random.Generator) -> None:
        """Take one step of Adam on a batch from the memory; nothing before there is one."""
        memory, settings = self.memory, self.settings
        if memory.count < settings.batch:
            return
        at = memory.draw(settings.batch, random)
        rows = np.arange(len(at))
        after = memory.after[at]
        chosen = np.argmax(forward(self.layers, after)[-1], axis=1)
        future = forward(self.target, after)[-1][rows, chosen]
        seen = forward(self.layers, memory.state[at])
        wanted = memory.reward[at] + settings.gamma * future
        error = np.clip(seen[-1][rows, memory.action[at]] - wanted, -1.0, 1.0)
        slope = np.zeros_like(seen[-1])
        slope[rows, memory.action[at]] = error / len(at)
        self._adam(_gradients(self.layers, seen, slope))
        self.updates += 1
        if self.updates % settings.target_every == 0:
            self.target = [(w.copy(), b.copy()) for w, b in self.layers]

    def _adam(self, gradients: list[Array]) -> None:
        t = self.updates + 1
        flat = [part for layer in self.layers for part in layer]
        for part, mean, square, g in zip(flat, self._mean, self._square, gradients, strict=True):
            mean += 0.1 * (g - mean)
            square += 0.001 * (g * g - square)
            size = self.settings.learning_rate / (1.0 - 0.9**t)
            part -= size * mean / (np.sqrt(square / (1.0 - 0.999**t)) + 1e-8)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays that :meth:`restore` needs to go on to the bit; all are of floats."""
        parts: dict[str, npt.NDArray[Any]] = {
            "counts": np.array([self.updates, self.memory.count], dtype=np.float64),
            "state": self.memory.state, "action": self.memory.action.astype(np.float64),
            "reward": self.memory.reward, "after": self.memory.after,
        }  # fmt: skip
        for name, arrays in self._groups().items():
            parts |= {f"{name}{i}": array for i, array in enumerate(arrays)}
        return parts

    def restore(self, parts: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what :meth:`state` gave; raises KeyError or ValueError if it does not fit."""
        self.updates, self.memory.count = (int(n) for n in parts["counts"])
        for name in ("state", "action", "reward", "after"):
            getattr(self.memory, name)[:] = parts[name]
        for name, arrays in self._groups().items():
            for i, array in enumerate(arrays):
                array[:] = parts[f"{name}{i}"]

    def _groups(self) -> dict[str, list[Array]]:
        return {
            "layer": [part for layer in self.layers for part in layer],
            "target": [part for layer in self.target for part in layer],
            "mean": self._mean,
            "square": self._square,
        }


def _gradients(layers: Layers, seen: list[Array], slope: Array) -> list[Array]:
    """Return the gradient of every weight and bias, in order, from that of the last layer."""
    found: list[Array] = []
    for i in reversed(range(len(layers))):
        found = [(slope[:, :, None] * seen[i][:, None, :]).sum(axis=0), slope.sum(axis=0), *found]
        slope = (slope[:, :, None] * layers[i][0]).sum(axis=1) * (seen[i] > 0.0)
    return found
