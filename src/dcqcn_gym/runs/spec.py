"""What a run is: everything that decides its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dcqcn_gym.core.groups import DeviceSetting, by_group
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.observation import OBSERVATION_VERSION, layout_name
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.monitor import NoMonitor
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.log import SCHEMA, Line
from dcqcn_gym.runs.log_line import setting_json
from dcqcn_gym.runs.plugin_host import Hosting, guarded_tuner
from dcqcn_gym.tuners import TunerContext
from dcqcn_gym.tuners.guard import GuardedTuner


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides the bytes of a run; and ``hosting``, which decides none of them.

    ``seed`` draws the traffic, ``tuner_seed`` what the tuner draws (None: the traffic's seed, from
    which a tuner could know the traffic).
    """

    scenario: Scenario
    tuner: str
    seed: int
    intervals: int
    backend: str = "native"
    tuner_args: dict[str, Any] = field(default_factory=dict)
    hosting: Hosting = field(default_factory=Hosting, compare=False)
    tuner_seed: int | None = None
    part: str = ""
    """Which part of a trace the scenario is, where one was cut to judge a setting on it."""
    fleet: str = ""
    """What a fleet's run was on: "devices", or "a digital fabric", whose time is simulated."""

    def header(self) -> Line:
        """Return the first line of the log."""
        header: Line = {
            "schema": SCHEMA,
            "kind": "run",
            "versions": {**code_versions(), "observation": OBSERVATION_VERSION},
            "scenario": self.scenario.model_dump(mode="json"),
            "tuner": self.tuner,
            "tuner_args": self.tuner_args,
            "seed": self.seed,
            "intervals": self.intervals,
            "backend": self.backend,
        }
        more = {
            "tuner_seed": self.tuner_seed,
            "part": self.part or None,
            "fleet": self.fleet or None,
        }
        return {**header, **{key: value for key, value in more.items() if value is not None}}

    def with_setting(self, setting: DeviceSetting, seed: int, intervals: int) -> RunSpec:
        """Return the spec of a run that only measures one setting, or one per group."""
        # a run of `fixed`, so that a log of it says all that is needed to repeat it
        groups = {name: setting_json(value) for name, value in by_group(setting)}
        arguments = groups.pop("cluster")
        if groups:
            arguments["groups"] = groups
        return replace(
            self, tuner="fixed", tuner_args=arguments, seed=seed, intervals=intervals,
            tuner_seed=None,
        )  # fmt: skip

    def context(self, env: DcqcnEnv) -> TunerContext:
        """Return what the tuner is given at the start."""
        return TunerContext(
            space=env.space,
            base=env.initial_setting,
            # a tuner that knows the traffic's seed could draw the same traffic beforehand
            seed=self.seed if self.tuner_seed is None else self.tuner_seed,
            intervals=self.intervals,
            cadence=self.scenario.cadence,
            trigger=self.scenario.trigger,
            observation_version=OBSERVATION_VERSION,
            groups=self.scenario.groups,
            devices=self.scenario.fabric.devices,
            observation_layout=layout_name(env.space),
            fabric=facts_of(self.scenario),
        )

    def offers(self, env: DcqcnEnv) -> frozenset[str]:
        """Return what a tuner can see here: what the backend shows, as far as it is monitored."""
        unseen = {"fsd"} if isinstance(self.scenario.monitor, NoMonitor) else set()
        return env.backend.offers - unseen

    @contextmanager
    def started(self) -> Iterator[tuple[GuardedTuner, DcqcnEnv]]:
        """Give the tuner and the environment, warmed up and started."""
        with closing(self.make_tuner()) as tuner, closing(self.make_env()) as env:
            observation, _ = env.reset(seed=self.seed)
            tuner.start(replace(self.context(env), observation=observation), self.offers(env))
            yield tuner, env

    def check(self) -> None:
        """Raise what a run would raise at its start; simulates and writes nothing."""
        with closing(self.make_env()) as env, closing(self.make_tuner()) as tuner:
            env.backend.open(self.scenario, self.seed)
            tuner.start(self.context(env), self.offers(env))

    def make_env(self) -> DcqcnEnv:
        """Return the environment, not yet reset."""
        return DcqcnEnv(self.scenario, self.backend, intervals=self.intervals)

    def make_tuner(self) -> GuardedTuner:
        """Return a fresh tuner; close it after use."""
        return guarded_tuner(self.tuner, self.tuner_args, self.hosting)
