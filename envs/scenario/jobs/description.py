"""A job graph that a table of a scenario describes: a plan, algorithms, servers.

A log holds the table, from which the same graph follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import Field

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.envs.scenario.job_graph import JobGraph
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.model import Job
from dcqcn_gym.envs.scenario.jobs.transformer import JobTable


class JobDescription(StrictModel):
    """A plan, how its collectives run, and how many neighbouring ranks share a server."""

    plan: JobTable
    collectives: Algorithms = Algorithms()
    server: int = Field(default=8, ge=1, le=1024, description="ranks of a server, as in [servers]")

    @property
    def job(self) -> Job:
        """The operations of an iteration."""
        # most scenarios have no job: what makes one is loaded when it is wanted
        from dcqcn_gym.envs.scenario.jobs.transformer_job import job_of_plan

        return job_of_plan(self.plan)


@dataclass(frozen=True, eq=False)
class DescribedGraph(JobGraph):
    """A graph that knows its table."""

    source: Mapping[str, Any]


def described_graph(job: JobDescription) -> DescribedGraph:
    """Return the graph of a described job; raise :class:`ConfigError` if it cannot be made."""
    # by what was written: tables that differ in a key that has its default are equal as models
    return _described(job.model_dump_json(exclude_unset=True))


@lru_cache(8)
def _described(text: str) -> DescribedGraph:
    from dcqcn_gym.envs.scenario.jobs.lowering import graph_of

    job = JobDescription.model_validate_json(text)
    graph = graph_of(job.job, job.collectives, job.server)
    columns = {name: getattr(graph, name) for name in JobGraph.__dataclass_fields__}
    return DescribedGraph(**columns, source=job.model_dump(exclude_unset=True))
