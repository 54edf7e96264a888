"""How fast the multi-agent environment steps, and how much of that is not the engine."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.extras.learn.parallel import AgentsEnv

__all__ = ["AgentsSpeed", "agents_speed"]


@dataclass(frozen=True)
class AgentsSpeed:
    """Random actions of all agents in one thread; resets are left out."""

    scenario: str
    kind: str
    agents: int
    steps: int
    cpu_s: float
    engine_s: float

    @property
    def per_cpu_s(self) -> float:
        """Steps per CPU second, so per second and core."""
        return self.steps / self.cpu_s

    @property
    def outside_share(self) -> float:
        """Share of the CPU time that is spent outside the engine."""
        return 1.0 - self.engine_s / self.cpu_s


def agents_speed(scenario: str, kind: str, steps: int, decision_us: float | None) -> AgentsSpeed:
    """Step one environment with random actions, drawn beforehand; one CPU clock for all of it."""
    backend = NativeBackend()
    env = AgentsEnv(scenario, backend, agents=kind, intervals=2**30, decision_us=decision_us)
    env.reset(seed=1)
    random = np.random.default_rng(1)
    drawn = [
        {a.name: random.uniform(-1.0, 1.0, len(a.knobs)) for a in env.members} for _ in range(steps)
    ]
    engine, begin = backend.engine_s, time.thread_time()
    done = 0
    for actions in drawn:
        env.step(actions)
        done += 1
        if not env.agents:
            break
    cpu = time.thread_time() - begin
    found = AgentsSpeed(
        env.scenario.name, kind, len(env.members), done, cpu, backend.engine_s - engine
    )
    env.close()
    return found
