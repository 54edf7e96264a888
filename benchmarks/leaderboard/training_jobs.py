"""Training jobs of drawn scenarios: small transformers on eight GPUs, split in different ways.

A scenario's file holds the graph itself, packed as in a log, so that nothing beside it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dcqcn_gym.envs.scenario.job import JobLoad
from dcqcn_gym.envs.scenario.job_graph import JobGraph, NodeKind
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.envs.scenario.jobs.transformer import JobTable
from dcqcn_gym.envs.scenario.jobs.transformer_job import job_of_plan

_MODEL = {"layers": 2, "hidden": 1024, "ffn": 4096, "heads": 8}
JOBS: Mapping[str, Mapping[str, Any]] = {
    "data-parallel": {"model": _MODEL, "dp": 8, "batch": 8},
    "sharded": {"model": _MODEL, "dp": 8, "batch": 8, "zero": 3},
    "experts": {"model": _MODEL | {"experts": 8, "active": 2}, "dp": 8, "ep": 8, "batch": 8},
    "pipeline": {"model": _MODEL, "pp": 2, "dp": 4, "batch": 16},
    "tensor-parallel": {"model": _MODEL, "tp": 2, "dp": 4, "batch": 4},
}
"""Plans by name: gradients in rings, weights gathered, all-to-all of experts, stages, tensors."""


def packed_job(name: str, size: float, tflops: float) -> str:
    """Return the graph of a job whose busiest rank sends about ``size`` bytes an iteration."""
    whole = _graph(name, 1.0, 1.0)
    sent = whole.kind == NodeKind.TRANSFER
    most = np.bincount(whole.src[sent], weights=whole.value[sent]).max()
    graph = _graph(name, min(1.0, float(size / most)), tflops)
    return str(JobLoad(graph=graph).model_dump()["graph"])


@lru_cache(64)
def _graph(name: str, scale: float, tflops: float) -> JobGraph:
    plan = JobTable(**JOBS[name], sequence=1024, scale=scale, tflops=tflops)
    return graph_of(job_of_plan(plan), Algorithms(), 1)
