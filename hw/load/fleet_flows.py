"""A fleet's flows as jobs for its agents: a Poisson process, drawn once, by the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.load.jobs import FLOWS

# Every host begins flows with exponential gaps, to the others with equal probability, of sizes from
# a distribution whose probability is linear between its points: what a scenario's `poisson`
# workload does in simulation, with draws of its own for each host.
MOST_FLOWS = 4000
"""Of one host; they go to its agent in one message."""


@dataclass(frozen=True)
class Schedule:
    """Flows of one host, in the order of their beginning."""

    at_us: tuple[int, ...]
    """Microseconds from the start of the load."""
    to: tuple[int, ...]
    """Number of the host that gets it."""
    bytes: tuple[int, ...]

    @property
    def n(self) -> int:
        """How many."""
        return len(self.at_us)


def poisson_flows(
    host: int,
    n_hosts: int,
    points: Sequence[tuple[int, float]],
    flows_per_s: float,
    seconds: float,
    seed: int,
) -> Schedule:
    """Return a host's flows; ``points`` are (bytes, probability up to here), ending at 1.

    Raises ConfigError for fewer than two hosts, or for more than :data:`MOST_FLOWS` flows.
    """
    if n_hosts < 2:
        raise ConfigError(f"{n_hosts} host; expected two or more to send to each other")
    if flows_per_s * seconds > MOST_FLOWS:
        raise ConfigError(
            f"{flows_per_s:,.0f} flows a second and host for {seconds:g} s; expected at most "
            f"{MOST_FLOWS} of a host: a lower load, fewer seconds, or larger flows"
        )
    random = np.random.Generator(np.random.PCG64([seed, host]))
    at: list[float] = []
    now = 0.0
    while (now := now + random.exponential(1.0 / flows_per_s)) < seconds and len(at) < MOST_FLOWS:
        at.append(now)
    others = random.integers(0, n_hosts - 1, len(at))
    to = others + (others >= host)
    sizes = np.interp(random.random(len(at)), [p for _, p in points], [b for b, _ in points])
    return Schedule(
        tuple(int(t * 1e6) for t in at),
        tuple(int(peer) for peer in to),
        tuple(max(1, round(size)) for size in sizes),
    )


def jobs_of(
    nics: Mapping[str, str],
    points: Sequence[tuple[int, float]],
    flows_per_s: float,
    seconds: float,
    seed: int,
    options: Mapping[str, str],
) -> dict[str, Any]:
    """Return NIC -> its job; ``nics`` are names and addresses, ``points`` a CDF of sizes."""
    jobs = {}
    for host, name in enumerate(nics):
        drawn = poisson_flows(host, len(nics), points, flows_per_s, seconds, seed)
        flows = pb.Flows(
            peers=nics.values(), seconds=seconds, to=drawn.to, bytes=drawn.bytes, at_us=drawn.at_us
        )
        jobs[name] = pb.LoadJob(program=FLOWS, options={**options, "own": str(host)}, flows=flows)
    return jobs
