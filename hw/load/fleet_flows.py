"""A fleet's flows as jobs for its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.load.jobs import FLOWS
from dcqcn_gym.hw.load.schedule import poisson_flows

__all__ = ["jobs_of"]


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
