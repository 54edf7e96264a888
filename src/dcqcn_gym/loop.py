"""The main path: ask the tuner, step the network, tell the tuner, record. Everything starts here.

A resumed run walks the same path from the start: fresh tuner, fresh network, same seed. Recorded
intervals are repeated and compared byte by byte, then the log goes on, so its bytes are those of
a run that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import dcqcn_gym
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.observation import OBSERVATION_VERSION
from dcqcn_gym.envs.scenarios import Scenario
from dcqcn_gym.knobs import Setting
from dcqcn_gym.record import SCHEMA, WIRE_FIELDS, Line, LogWriter, Run, interval_line, setting_json
from dcqcn_gym.tuners import TunerContext, make_tuner
from dcqcn_gym.tuners.base import Outcome, Proposal
from dcqcn_gym.tuners.guard import GuardedTuner
from dcqcn_gym.utility import Terms

__all__ = ["OFFERED", "RunSpec", "Timing", "Watch", "run"]

OFFERED = frozenset({"fsd", "per_switch"})
"""What simulated worlds show a tuner (see :data:`dcqcn_gym.tuners.base.NEEDS`)."""

Watch: TypeAlias = Callable[[Line, dict[str, Any], bool], None]
"""Called after every interval: its log line, the tuner's state, True if it was a repetition."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides the bytes of a run."""

    scenario: Scenario
    tuner: str
    seed: int
    intervals: int
    backend: str = "native"
    tuner_args: dict[str, Any] = field(default_factory=dict)

    def header(self) -> Line:
        """Return the first line of the log."""
        return {
            "schema": SCHEMA,
            "kind": "run",
            "versions": {"dcqcn_gym": dcqcn_gym.__version__, "observation": OBSERVATION_VERSION},
            "scenario": self.scenario.model_dump(mode="json"),
            "tuner": self.tuner,
            "tuner_args": self.tuner_args,
            "seed": self.seed,
            "intervals": self.intervals,
            "backend": self.backend,
        }

    def with_setting(self, setting: Setting, seed: int, intervals: int) -> RunSpec:
        """Return the spec of a run that only measures one setting."""
        arguments = setting_json(setting)
        return replace(self, tuner="fixed", tuner_args=arguments, seed=seed, intervals=intervals)

    def context(self, env: DcqcnEnv) -> TunerContext:
        """Return what the tuner is told at the start."""
        return TunerContext(
            space=env.space,
            base=env.initial_setting,
            seed=self.seed,
            intervals=self.intervals,
            cadence=self.scenario.cadence,
            trigger=self.scenario.trigger,
            observation_version=OBSERVATION_VERSION,
        )

    def check(self) -> None:
        """Raise what a run would raise at its start; simulates and writes nothing."""
        with closing(self.make_env()) as env:
            env.backend.open(self.scenario, self.seed)
            self.make_tuner().start(self.context(env), OFFERED)

    def make_env(self) -> DcqcnEnv:
        """Return the environment, not yet reset."""
        return DcqcnEnv(self.scenario, self.backend, intervals=self.intervals)

    def make_tuner(self) -> GuardedTuner:
        """Return a fresh tuner."""
        return GuardedTuner(self.tuner, make_tuner(self.tuner, self.tuner_args))


@dataclass(frozen=True)
class Timing:
    """Seconds of one run on this machine; never part of a log."""

    wall_s: float
    cpu_s: float
    tuner_cpu_s: float
    intervals: int


def run(
    spec: RunSpec, path: Path, *, replay: Run | None = None, watch: Watch | None = None
) -> Timing:
    """Carry out a run and write its event log to ``path``; ``replay`` continues a log.

    The log appears once the warm-up is over and the tuner has started. An error later leaves the
    log with every finished interval.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    tuner = spec.make_tuner()
    summary = _Summary()
    with closing(spec.make_env()) as env:
        observation, _ = env.reset(seed=spec.seed)
        setting: Proposal = env.initial_setting
        tuner.start(replace(spec.context(env), observation=observation), OFFERED)
        window = _Window(spec.scenario.cadence)
        with LogWriter(path, spec.header(), replay) as log:
            for i in range(spec.intervals):
                if window.ready:
                    setting = _canonical(_or(tuner.ask(), setting))
                    window.open(setting)
                observation, reward, terminated, _, info = env.step_setting(
                    setting, tuning=tuner.tuning
                )
                line = interval_line(
                    i, setting, reward, info["terms"], info["report"], idle=info["idle"],
                    wire={name: info[name] for name in WIRE_FIELDS}, rounds=info["rounds"],
                )  # fmt: skip
                repeated = log.replaying
                log.append(line)
                summary.add(line)
                outcome = window.add(reward, observation, info)
                if outcome is not None:
                    tuner.tell(outcome)
                if watch is not None:
                    watch(line, tuner.state(), repeated)
                if terminated:
                    break
            log.append({"end": summary.end(tuner.recommend())})
    return Timing(
        time.perf_counter() - wall, time.process_time() - cpu, tuner.cpu_s, summary.intervals
    )


def _or(proposal: Proposal | None, setting: Proposal) -> Proposal:
    return setting if proposal is None else proposal


def _canonical(setting: Proposal) -> Proposal:
    """Return the setting as a log can hold it, so that a replay applies the same bits."""
    if isinstance(setting, Setting):
        return Setting.from_nvidia(setting.to_nvidia())
    return {group: Setting.from_nvidia(value.to_nvidia()) for group, value in setting.items()}


class _Window:
    """Gathers the intervals of one proposal: ``cadence`` of them, at least one with data."""

    def __init__(self, cadence: int) -> None:
        self._cadence = cadence
        self.ready = True

    def open(self, setting: Proposal) -> None:
        """Begin with a new proposal."""
        self._setting = setting
        self._seen = 0
        self._busy: list[tuple[float, Terms, bool]] = []
        self.ready = False

    def add(self, reward: float, observation: Any, info: Any) -> Outcome | None:
        """Add an interval; return the outcome once the proposal has had its time."""
        self._seen += 1
        if not info["idle"]:
            self._busy.append((reward, info["terms"], info["report"].fsd.triggered))
            self._last = observation, info["report"]
        if self._seen < self._cadence or not self._busy:
            return None
        self.ready = True
        n = len(self._busy)
        terms = [t for _, t, _ in self._busy]
        return Outcome(
            setting=self._setting,
            utility=sum(u for u, _, _ in self._busy) / n,
            terms=Terms(*(sum(getattr(t, x) for t in terms) / n for x in ("tp", "rtt", "pfc"))),
            observation=self._last[0],
            report=self._last[1],
            intervals=n,
            triggered=any(k for _, _, k in self._busy),
        )


class _Summary:
    """Figures of the whole run for its last line."""

    def __init__(self) -> None:
        self.intervals = 0
        self._utilities: dict[int, float] = {}

    def add(self, line: Line) -> None:
        """Count one interval."""
        self.intervals += 1
        if not line["idle"]:
            self._utilities[line["i"]] = line["utility"]

    def end(self, recommended: Setting) -> Line:
        """Return what the last line holds."""
        scored = self._utilities
        best = max(scored, key=scored.__getitem__, default=None)
        return {
            "recommended": setting_json(recommended),
            "intervals": self.intervals,
            "mean_utility": sum(scored.values()) / len(scored) if scored else None,
            "best_utility": None if best is None else scored[best],
            "best_interval": best,
        }
