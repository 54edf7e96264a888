"""A job: a graph of transfers, computation and joins, repeated round after round."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo
from typing_extensions import Self

from dcqcn_gym.core.collectives import Collective
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import MOST_BYTES
from dcqcn_gym.core.iterations import Operations
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.hosts import HostSet, select_hosts
from dcqcn_gym.envs.scenario.job_graph import JobGraph, NodeKind
from dcqcn_gym.envs.scenario.jobs.description import DescribedGraph, JobDescription, described_graph
from dcqcn_gym.envs.scenario.jobs.model import COLLECTIVES, MESSAGE
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.rounds import Closed
from dcqcn_gym.envs.scenario.servers import Servers
from dcqcn_gym.envs.scenario.tables import Cdf, path_of
from dcqcn_gym.envs.scenario.workload import items, listed, stop_ps

_PACKED = "zlib:"
"""How a graph begins in a log, in base64: no path of a scenario file does."""
_LINE = 3 * 2**14
"""Bytes of a graph on one line of the compiled text; a multiple of 3 needs no padding."""


def _to_graph(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, Mapping):
        return described_graph(JobDescription.model_validate(value))
    if not isinstance(value, str):
        return value
    if not value.startswith(_PACKED):
        return JobGraph.from_file(path_of(value, info))
    try:
        data = base64.b64decode(value[len(_PACKED) :], validate=True)
        return JobGraph.from_bytes(zlib.decompressobj().decompress(data, MOST_BYTES))
    except (ValueError, zlib.error) as error:
        raise ConfigError(f"{quote(value)} is no job graph: {error}") from None


def _packed(graph: JobGraph) -> Any:
    if isinstance(graph, DescribedGraph):
        return graph.source
    return _PACKED + base64.b64encode(zlib.compress(graph.to_bytes(), 9)).decode()


GraphField = Annotated[
    JobGraph,
    BeforeValidator(_to_graph, json_schema_input_type=str | JobDescription),
    PlainSerializer(_packed),
    Field(description="the path of a job graph, or a table from which one is made"),
]


class JobLoad(Closed):
    """A job graph, whose endpoints are placed on ``hosts`` in their order.

    ``rounds`` counts iterations; the next one starts ``off_us`` after all of one is done. Each
    connection of the graph is ``qps`` queue pairs: a message is split over them (``split``) or
    they take turns, and with ``qp = "pair"`` they keep their rate. With ``admission`` a receiver
    lets in so many transfers at a time, 0: all.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    kind: Literal["job"] = "job"
    graph: GraphField
    hosts: HostSet = "all"
    placement: Literal["round-robin", "packed"] = "packed"
    qps: int = Field(default=1, ge=1, le=1024, description="queue pairs of a connection")
    split: bool = False
    admission: int = Field(default=0, ge=0, le=2**30, description="transfers let in at a time")

    def resolve(self, net: Fabric) -> tuple[int, ...]:
        """Return the host of every endpoint."""
        hosts = select_hosts(net, self.hosts, placement=self.placement)
        need = self.graph.endpoints
        if len(hosts) < need or (self.hosts != "all" and len(hosts) > need):
            raise ConfigError(f"a job of {need} endpoints on {len(hosts)} hosts; expected as many")
        return hosts[:need]

    def check(self, net: Fabric, servers: Servers | None) -> None:
        """Raise :class:`ConfigError` for missing hosts, and local transfers between servers."""
        super().check(net, servers)
        graph = self.graph
        local = np.flatnonzero(graph.kind == NodeKind.LOCAL)
        if servers is None and len(local):
            raise ConfigError("the job has transfers inside servers; expected a table [servers]")
        if servers is not None:
            server = np.array(self.resolve(net)) // servers.gpus
            wrong = server[graph.src[local]] != server[graph.dst[local]]
            if np.any(wrong):
                node = int(local[np.argmax(wrong)])
                raise ConfigError(
                    f"node {node} of the job is local between endpoints {graph.src[node]} and "
                    f"{graph.dst[node]}, which are not in one server of {servers.gpus} GPUs"
                )

    def lines(self, net: Fabric, cdfs: Sequence[Cdf]) -> Iterator[str]:
        """Yield the lines of the compiled text: the job, then its graph in base64, with a sum."""
        hosts = items(hosts=listed(self.resolve(net)))
        how = {"qps": self.qps, "split": int(self.split), "admission": self.admission}
        yield self._line(self.kind, hosts, **how)
        data = self.graph.to_bytes()
        for at in range(0, len(data), _LINE):
            piece = data[at : at + _LINE]
            yield f"graph {base64.b64encode(piece).decode().rstrip('=')} {zlib.adler32(piece)}"

    def least_iteration_ms(self, line_rate_bps: float) -> float:
        """Return what a rank computes, or sends at the rate of its NIC if more: the longest."""
        graph = self.graph
        sends = np.where(graph.kind == NodeKind.TRANSFER, graph.sizes, 0)
        seconds = [
            float(np.bincount(graph.src, of * graph.executions * unit).max(initial=0.0))
            for of, unit in ((graph.delay_ps, 1e-12), (sends, 8 / line_rate_bps))
        ]
        return 1e3 * max(seconds)

    @property
    def takes_scale(self) -> bool:
        """Whether it is made from a plan that has no scale."""
        return isinstance(self.graph, DescribedGraph) and "scale" not in self.graph.source["plan"]

    def scaled(self, scale: float) -> Self:
        """Return the job with this scale in its plan; one that is made from none, as it is."""
        if not isinstance(self.graph, DescribedGraph):
            return self
        source = {**self.graph.source, "plan": {**self.graph.source["plan"], "scale": scale}}
        graph = described_graph(JobDescription.model_validate(source))
        return self.model_copy(update={"graph": graph})

    def as_collective(self, net: Fabric, number: int) -> Collective:
        """Return the iteration; its bytes are what a rank sends over the fabric, on average."""
        graph = self.graph
        on_fabric = graph.kind == NodeKind.TRANSFER
        sent = count((graph.sizes * graph.executions)[on_fabric].tolist()) // graph.endpoints
        return replace(
            self._collective(net, number, "iteration", sent, 0),
            start_ps=us_to_ps(self.start_us),
            stop_ps=stop_ps(self.stop_us),
            rounds=self.rounds,
            operations=Operations(
                graph.kind <= NodeKind.LOCAL, graph.src, graph.dst, graph.label, graph.labels,
                (*COLLECTIVES, MESSAGE), self.resolve(net),
            ),
        )  # fmt: skip

    def largest_flow(self, net: Fabric) -> tuple[int, int]:
        """Return the bytes of the largest message."""
        transfers = self.graph.kind == NodeKind.TRANSFER
        if np.any(self.graph.connection[transfers] >= 65_536 // self.qps):
            raise ConfigError(f"qps = {self.qps}; expected connections x qps of at most 65536")
        return int(self.graph.value[transfers].max(initial=0)), 1
