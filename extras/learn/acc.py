"""Training of ACC's networks: agents in the multi-agent environment, one double DQN for all.

Offline, as ACC (SIGCOMM'21) trains before it deploys: every episode draws a scenario and traffic,
every decision of every port is remembered, and the network learns after each. The centralised
agent is the same with one state and one joint action. Numpy alone; same command, same bytes.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.parallel import AgentsEnv, Reward
from dcqcn_gym.extras.learn.spec import TrainDir, check_training, training_digest
from dcqcn_gym.report.figures import Line, lines_figure
from dcqcn_gym.runs.table import as_csv
from dcqcn_gym.tuners.acc_state import (
    CENTRAL,
    HISTORY,
    TEMPLATES,
    joint_actions,
    layout,
    sides_of,
    sizes,
)
from dcqcn_gym.tuners.ddqn import Array, Ddqn, DdqnSettings, new_layers
from dcqcn_gym.tuners.policy import Policy, PolicyMeta
from dcqcn_gym.tuners.policy_file import read_arrays

SCHEMA = 2
"""Of ``train.json`` and the checkpoint; 2 since a checkpoint names its training."""
MOST_BYTES = 2**30
"""Of a checkpoint, whose replay memory is larger than any network: 91 MB for three tiers."""
FINAL_EPSILON = 0.05


@dataclass(frozen=True)
class AccSpec:
    """A training. ``decisions`` are steps of a whole network, 500 us each by default as in ACC.

    Exploration falls in a straight line from 1 to 0.05 over the first half of the decisions.
    ``weight`` is that of throughput in the agents' reward.
    """

    scenarios: tuple[str, ...]
    central: bool = False
    decisions: int = 4000
    seed: int = 1
    episode: int = 20
    decision_us: float = 500.0
    weight: float = 0.5
    updates: int = 2
    backend: str = "native"

    def command(self) -> str:
        """Return the command that makes this training."""
        words = ["dcqcn-gym", "train", "--tuner", "acc-central" if self.central else "acc"]
        words += ["--scenario", ",".join(self.scenarios), "--steps", str(self.decisions)]
        standard = AccSpec(self.scenarios)
        for name in ("seed", "episode", "decision_us", "weight", "updates", "backend"):
            value = getattr(self, name)
            if value != getattr(standard, name):
                plain = name in ("seed", "episode", "backend")
                words += [f"--{name}", str(value)] if plain else ["--algo-arg", f"{name}={value}"]
        return shlex.join([*words, "--out", "DIR"])

    def header(self) -> dict[str, Any]:
        """Return what ``train.json`` holds and a resumed training must repeat.

        The number of decisions is part of it: exploration depends on it.
        """
        return {
            "schema": SCHEMA,
            "versions": {**code_versions()},
            **asdict(self),
            "scenarios": [load_scenario(name).model_dump(mode="json") for name in self.scenarios],
        }

    def sizes(self, sides: int) -> tuple[int, ...]:
        """Return the layers of the network, for so many sides (0: an agent per port)."""
        return sizes(sides)

    def make_env(self, scenario: str) -> AgentsEnv:
        """Return the environment of a scenario; raises ConfigError as that does."""
        loaded = load_scenario(scenario)
        sides = sides_of(loaded.fabric.devices)
        return AgentsEnv(
            loaded, self.backend,
            agents=sides if self.central else "port",
            intervals=self.episode,
            decision_us=self.decision_us,
            history=HISTORY,
            reward=Reward(self.weight),
            templates=CENTRAL if self.central else TEMPLATES,
        )  # fmt: skip


@dataclass(frozen=True)
class Episode:
    """One line of the learning curve: means over the decisions and agents of an episode."""

    decisions: int
    """Decisions since the start, this episode included."""
    scenario: str
    epsilon: float
    reward: float
    """Mean own reward of an agent, 0..1."""
    utility: float
    """Mean utility of the network, 0..1."""


class Training:
    """Everything that changes: the learner, the random stream, the curve. Close it after use."""

    def __init__(self, spec: AccSpec) -> None:
        if not spec.scenarios or min(spec.decisions, spec.episode) < 1:
            raise ConfigError("a training needs a scenario, and at least one decision and interval")
        self.spec = spec
        self.envs = {name: spec.make_env(name) for name in spec.scenarios}
        sides = {len(env.possible_agents) for env in self.envs.values()} if spec.central else {0}
        if len(sides) > 1:
            raise ConfigError(
                f"one centralised agent cannot learn for networks with {sorted(sides)} sides of "
                "tiers; train one for each"
            )
        self.sides = sides.pop()
        self.random = np.random.Generator(
            np.random.PCG64(np.random.SeedSequence([spec.seed, 0xACC]))
        )
        self.brain = Ddqn(new_layers(spec.sizes(self.sides), self.random), DdqnSettings())
        self.curve: list[Episode] = []

    @property
    def decisions(self) -> int:
        """How many were made so far."""
        return self.curve[-1].decisions if self.curve else 0

    def start(self) -> None:
        """Start every network once; raise ConfigError if one is of another network."""
        for env in self.envs.values():
            env.reset(seed=self.spec.seed)

    def episode(self) -> Episode:
        """Run one episode, learning after every decision."""
        spec, random = self.spec, self.random
        name = spec.scenarios[int(random.integers(len(spec.scenarios)))]
        env = self.envs[name]
        observations, _ = env.reset(seed=int(random.integers(2**31)))
        x, done = self._rows(observations), self.decisions
        own: list[float] = []
        utility: list[float] = []
        while env.agents:
            epsilon = max(FINAL_EPSILON, 1.0 - (1.0 - FINAL_EPSILON) * 2.0 * done / spec.decisions)
            action = self.brain.act(x, epsilon, random)
            names = env.agents
            chosen = joint_actions(self.sides)[int(action[0])] if self.sides else action
            observations, rewards, *_, infos = env.step(
                {n: int(i) for n, i in zip(names, chosen, strict=True)}
            )
            reward = np.array([rewards[n] for n in names])
            if self.sides:
                reward = reward.mean(keepdims=True)
            after = self._rows(observations)
            self.brain.memory.add(x, action, reward, after)
            for _ in range(spec.updates):
                self.brain.learn(random)
            x, done = after, done + 1
            own.append(float(reward.mean()))
            utility.append(infos[names[0]]["utility"])
        self.curve.append(
            Episode(done, name, epsilon, float(np.mean(own)), float(np.mean(utility)))
        )
        return self.curve[-1]

    def greedy(self, env: AgentsEnv, seed: int) -> float:
        """Return the mean utility of an episode in which the agents only do what they know."""
        observations, _ = env.reset(seed=seed)
        found: list[float] = []
        while env.agents:
            action = self.brain.act(self._rows(observations), 0.0, self.random)
            names = env.agents
            chosen = joint_actions(self.sides)[int(action[0])] if self.sides else action
            observations, _, _, _, infos = env.step(
                {n: int(i) for n, i in zip(names, chosen, strict=True)}
            )
            found.append(infos[names[0]]["utility"])
        return mean(found)

    def close(self) -> None:
        """Release the networks."""
        for env in self.envs.values():
            env.close()

    def _rows(self, observations: dict[str, npt.NDArray[np.float32]]) -> Array:
        rows = np.array(list(observations.values()), dtype=np.float64)
        return rows.reshape(1, -1) if self.sides else rows

    def save(self, path: Path) -> None:
        """Write everything that :meth:`load` needs; the file appears whole or not at all."""
        parts = self.brain.state()
        rest = {
            "training": training_digest(self.spec),
            "random": self.random.bit_generator.state,
            "curve": [asdict(e) for e in self.curve],
        }
        parts["rest"] = np.frombuffer(json.dumps(rest).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, **parts)  # type: ignore[arg-type]
        _replace(path, buffer.getvalue())

    def load(self, path: Path) -> None:
        """Go on from a checkpoint; raise RunError if it is damaged or of another training."""
        try:
            parts = read_arrays(path, MOST_BYTES)
            rest = json.loads(parts["rest"].tobytes())
            check_training(path, rest["training"], self.spec)
            self.brain.restore(parts)
            self.random.bit_generator.state = rest["random"]
            self.curve = [Episode(**line) for line in rest["curve"]]
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path} is damaged ({error}); give --force") from None


def train(
    spec: AccSpec,
    out: TrainDir,
    *,
    resume: bool = False,
    force: bool = False,
    every: int = 10,
    watch: Callable[[Episode], None] = lambda _: None,
) -> Policy:
    """Train in ``out`` and return the network; write it, the curve and checkpoints there.

    A checkpoint is written every ``every`` episodes and at the end; ``resume`` goes on from the
    last one and comes to the same bytes. Raises RunError if the directory does not fit, ConfigError
    if a network does not.
    """
    with closing(Training(spec)) as training:
        out.check(spec, resume=resume, force=force)
        checkpoint = out.root / "checkpoint.npz"
        if resume and checkpoint.exists():
            training.load(checkpoint)
            _write_results(training, out)  # a kill may have come between the checkpoint and these
        else:
            training.start()  # before anything is written or removed
            if force:
                _remove_old(out)
        out.root.mkdir(parents=True, exist_ok=True)
        _replace(out.header, json.dumps(spec.header(), indent=1).encode())
        while training.decisions < spec.decisions:
            watch(training.episode())
            if len(training.curve) % every == 0 or training.decisions >= spec.decisions:
                training.save(checkpoint)
                _write_results(training, out)
    return export(training.brain, spec, training.decisions)


def _remove_old(out: TrainDir) -> None:
    """Remove what a training that is replaced has left, before a header says whose it is."""
    for name in ("checkpoint.npz", "policy.npz", "curve.csv", "curve.svg"):
        (out.root / name).unlink(missing_ok=True)


def _write_results(training: Training, out: TrainDir) -> None:
    """Write the network and the curve as they are after the checkpoint."""
    network = export(training.brain, training.spec, training.decisions)
    _replace(out.policy, network.to_bytes())
    _write_curve(training.curve, out.root / "curve.csv")


def export(brain: Ddqn, spec: AccSpec, decisions: int) -> Policy:
    """Return the network as a policy file holds it: float32, with the command that made it."""
    outputs = len(brain.layers[-1][1])
    sides = len(brain.layers[0][0][0]) // sizes()[0] if spec.central else 0
    meta = PolicyMeta(
        algo="acc-central" if spec.central else "acc",
        observation_version=1,
        layout=layout(sides),
        knobs=("template",),
        output="argmax",
        steps=decisions,
        scenarios=spec.scenarios,
        command=spec.command(),
        versions={**code_versions(), "numpy": np.__version__},
    )
    layers = tuple((w.astype(np.float32), b.astype(np.float32)) for w, b in brain.layers)
    places = np.linspace(-1.0, 1.0, outputs, dtype=np.float32).reshape(-1, 1)
    return Policy(meta, layers, places).check("the trained network")


def _write_curve(curve: list[Episode], path: Path) -> None:
    _replace(path, as_csv([asdict(curve[0]), *(asdict(e).values() for e in curve)]))


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)


SPAN = 10
"""Episodes of one scenario that a point of the line is the mean of."""
COLOURS = 8


def draw_curve(curve: Path, picture: Path) -> None:
    """Draw ``curve.csv`` of a training as SVG: reward and utility per scenario, and exploration.

    Lines are means over the last ten episodes of a scenario.
    """
    with curve.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    reward: list[Line] = []
    utility: list[Line] = []
    for i, scenario in enumerate(sorted({row["scenario"] for row in rows})):
        own = [row for row in rows if row["scenario"] == scenario]
        x = np.array([float(row["decisions"]) for row in own])
        for lines, key in ((reward, "reward"), (utility, "utility")):
            y = np.array([float(row[key]) for row in own])
            smooth = [float(y[max(0, k + 1 - SPAN) : k + 1].mean()) for k in range(len(y))]
            lines.append(Line(f"c{i % COLOURS}", scenario, x, np.array(smooth)))
    decisions = np.array([float(row["decisions"]) for row in rows])
    epsilon = np.array([float(row["epsilon"]) for row in rows])
    panels = [
        ("Reward of an agent", reward),
        ("Utility of the network", utility),
        ("Exploration", [Line("default", "exploration", decisions, epsilon)]),
    ]
    chart = lines_figure(panels, "decisions of a network")
    picture.write_text(chart.file(), encoding="utf-8")
