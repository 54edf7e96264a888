"""ACC (SIGCOMM'21) as a tuner: a small Q-network chooses marking curves from figures of ports.

``acc`` is the distributed design: every egress port of every switch has an agent, all run the same
network on what they see themselves. ``acc-central`` is the paper's C-ACC: one network sees all
sides of the fabric and sets the ports of a side alike. NIC knobs stay at the setting in force.
Networks are trained by ``dcqcn-gym train --tuner acc`` and run here without torch; with
``adapt=true`` the agents go on learning from their own rewards while the network runs.
docs/reference/decisions.md says what the paper leaves open.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dcqcn_gym.core.agents import Agent, agents_of, joint_setting
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import ConfigError, did_you_mean, quote
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.core.interval import FloatArray, IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.port_view import Past, PortView
from dcqcn_gym.core.sums import count
from dcqcn_gym.tuners.acc_state import (
    CENTRAL,
    HISTORY,
    TEMPLATES,
    joint_actions,
    layout,
    place_of,
    sides_of,
    sizes,
)
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.ddqn import Ddqn, DdqnSettings, Layers
from dcqcn_gym.tuners.policy import Policy, load_policy

CURVE = ("kmin", "kmax", "pmax")
FOLDER = CONFIGS / "acc"


def load_network(name_or_path: str) -> Policy:
    """Return a network of the package by name, or that of a file or a training's directory.

    Raises ConfigError in one sentence if there is none.
    """
    shipped = sorted(path.stem for path in FOLDER.glob("*.npz"))
    if name_or_path in shipped:
        return load_policy(FOLDER / f"{name_or_path}.npz")
    if not Path(name_or_path).exists():
        raise ConfigError(
            f"network {quote(name_or_path)} is neither a file nor a network of the package"
            f"{did_you_mean(name_or_path, shipped)}"
        )
    return load_policy(name_or_path)


class _AccSettings(TunerSettings):
    file: str = Field(
        default="acc-mini",
        description="a shipped network, an .npz file, or the directory of a training",
    )
    adapt: bool = Field(default=False, description="go on learning while the network runs")
    epsilon: float = Field(
        default=0.05, ge=0, le=1, description="with adapt: share of decisions that are drawn"
    )
    updates: int = Field(default=1, ge=0, le=100, description="with adapt: updates per decision")


class _CentralSettings(_AccSettings):
    file: str = Field(
        default="acc-central-mini",
        description="a shipped network, an .npz file, or the directory of a training",
    )


class AccTuner(Tuner[Proposal]):
    """D-ACC: an agent per port, one shared network."""

    name = "acc"
    summary = "ACC: an agent per switch port chooses its marking curve (SIGCOMM'21)"
    needs = frozenset({"per_switch"})
    Settings: ClassVar[type[TunerSettings]] = _AccSettings
    templates = TEMPLATES

    def start(self, context: TunerContext) -> None:
        """Load the network; raise ConfigError if it was made for other agents."""
        super().start(context)
        if context.devices is None:
            raise ConfigError(f"tuner {self.name!r} has to know the network's devices")
        self._options = cast(_AccSettings, self.settings)
        rate = context.space.line_rate_bps
        self._settings = [
            context.base.replace(t).check(rate, f"tuner {self.name!r}") for t in self.templates
        ]
        self._agents = self._who(context.devices, context)
        self._view = PortView(self._agents)
        self._past = Past(len(self._agents), HISTORY, 1)
        self._chosen = np.full(len(self._agents), -1, dtype=np.int64)
        self._used = np.zeros((len(self._agents), len(self.templates)), dtype=np.int64)
        self._random = context.generator()
        self._brain = Ddqn(self._load(), DdqnSettings(memory=10_000))
        self._acted: tuple[FloatArray, npt.NDArray[np.int64]] | None = None
        self._seen = False

    def _who(self, devices: Devices, context: TunerContext) -> tuple[Agent, ...]:
        return agents_of("port", devices, CURVE, context.space.table)

    def _wanted(self) -> tuple[str, tuple[int, ...]]:
        """Return the layout and the layers that a network must have here."""
        return layout(), sizes()

    def _load(self) -> Layers:
        source = self._options.file
        policy = load_network(source)
        expected, widths = self._wanted()
        found = (policy.inputs, *(len(bias) for _, bias in policy.layers))
        if policy.meta.layout != expected or found != widths:
            raise ConfigError(
                f"policy {quote(source)} was trained for {quote(policy.meta.layout)} with layers "
                f"{list(found)}; tuner {self.name!r} needs {quote(expected)} with {list(widths)} "
                "on this network: train one with `dcqcn-gym train --tuner acc`"
            )
        return [(w.astype(np.float64), b.astype(np.float64)) for w, b in policy.layers]

    def ask(self) -> Proposal | None:
        """Return a curve for every port; None before anything was seen."""
        if not self._seen:
            return None
        x = self._inputs()
        action = self._brain.act(x, self._options.epsilon * self._options.adapt, self._random)
        self._acted = (x, action)
        self._chosen = self._templates_of(action)
        self._used[np.arange(len(self._agents)), self._chosen] += 1
        return self._joined(self._chosen)

    def tell(self, outcome: Outcome) -> None:
        """Look at the ports; with ``adapt`` learn from the agents' own rewards."""
        super().tell(outcome)
        report = outcome.report
        self._past.add(
            self._view.figures(report), place_of(self._chosen, len(self.templates))[:, None]
        )
        self._seen = True
        if self._options.adapt and self._acted is not None:
            self._brain.memory.add(*self._acted, self._rewards(report), self._inputs())
            for _ in range(self._options.updates):
                self._brain.learn(self._random)

    def recommend(self) -> Proposal:
        """Return, for a network without agents, the curve that each port had most often."""
        if not self._used.any():
            return self.context.base
        return self._joined(np.argmax(self._used, axis=1))

    def state(self) -> dict[str, Any]:
        """Return how much was learnt, and the mean place of the curves in the list (0..1)."""
        places = place_of(self._chosen, len(self.templates))
        return {
            "agents": len(self._agents),
            "updates": self._brain.updates,
            "mean_place": float(places.mean()),
        }

    def _inputs(self) -> FloatArray:
        return self._past.flat()

    def _rewards(self, report: IntervalReport) -> FloatArray:
        return self._view.rewards(report)

    def _templates_of(self, action: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return action

    def _joined(self, chosen: npt.NDArray[np.int64]) -> Proposal:
        each: dict[Agent, Setting] = {
            agent: self._settings[int(i)] for agent, i in zip(self._agents, chosen, strict=True)
        }
        return joint_setting(self.context.base, each)


class AccCentralTuner(AccTuner):
    """C-ACC: one agent for the fabric; the ports of a side of a tier have the same curve."""

    name = "acc-central"
    summary = "C-ACC: one agent sets all uplinks or downlinks of a tier alike (SIGCOMM'21)"
    Settings: ClassVar[type[TunerSettings]] = _CentralSettings
    templates = CENTRAL

    def _who(self, devices: Devices, context: TunerContext) -> tuple[Agent, ...]:
        sides = sides_of(devices)
        self._joint = joint_actions(len(sides))
        return agents_of(sides, devices, CURVE, context.space.table)

    def _wanted(self) -> tuple[str, tuple[int, ...]]:
        return layout(len(self._agents)), sizes(len(self._agents))

    def _inputs(self) -> FloatArray:
        return super()._inputs().reshape(1, -1)

    def _rewards(self, report: IntervalReport) -> FloatArray:
        return np.asarray(super()._rewards(report).mean(keepdims=True), dtype=np.float64)

    def _templates_of(self, action: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.asarray(self._joint[int(action[0])], dtype=np.int64)


def cost(layers: Layers, decisions_per_s: float, inputs_bytes: int) -> dict[str, float]:
    """Return what one agent costs: bytes/s of figures read, FLOP/s of deciding, model bytes.

    ``inputs_bytes`` are read per decision. Weights are float32; a multiply-add is two operations;
    a model is the network that acts and its target, as ACC's 30 KB for two.
    """
    weights = count(w.size for w, _ in layers)
    biases = count(b.size for _, b in layers)
    return {
        "read_bytes_per_s": inputs_bytes * decisions_per_s,
        "flops": 2.0 * weights * decisions_per_s,
        "model_bytes": 2.0 * 4.0 * (weights + biases),
    }
