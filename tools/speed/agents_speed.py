"""How fast the multi-agent environment steps, and how much of that is not the engine."""

from __future__ import annotations

import time

import numpy as np

from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.extras.learn.parallel import AgentsEnv

COLUMNS = ("agents", "number", "steps", "steps/s and core", "outside the engine")


def agents_speed(
    scenario: str, kind: str, steps: int, decision_us: float | None
) -> tuple[str, ...]:
    """Return the row of one kind: random actions of all agents in one thread, without resets."""
    backend = NativeBackend()
    env = AgentsEnv(scenario, backend, agents=kind, intervals=2**30, decision_us=decision_us)
    env.reset(seed=1)
    random, members = np.random.default_rng(1), env.members
    drawn = [
        {a.name: random.uniform(-1.0, 1.0, len(a.knobs)) for a in members} for _ in range(steps)
    ]
    engine, begin, done = backend.engine_s, time.thread_time(), 0
    while done < steps and env.agents:
        env.step(drawn[done])
        done += 1
    cpu = time.thread_time() - begin
    outside = 1 - (backend.engine_s - engine) / cpu
    env.close()
    return (kind, f"{len(members)}", f"{done}", f"{done / cpu:.0f}", f"{outside:.1%}")
