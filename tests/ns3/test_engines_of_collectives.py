"""Every collective of jobs: the same reports from both native engines and from ns-3."""

from __future__ import annotations

from typing import Any

import pytest
from test_parity import differing_fields

from dcqcn_gym import _core
from dcqcn_gym.core.config import validate
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.job_graph import JobGraph, JobGraphBuilder
from dcqcn_gym.envs.scenario.jobs.collectives import add_collective
from dcqcn_gym.envs.scenario.jobs.links import Algorithms, Links
from dcqcn_gym.envs.scenario.jobs.model import COLLECTIVES
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.ns3.parity import run

INTERVALS = 12


class PlainEngine(NativeBackend):
    """The engine that checks the default one."""

    def _simulate(self, compiled: str, seed: int) -> _core.Simulation:
        return _core.Simulation(compiled, seed, "event")


HOW: dict[str, tuple[int, dict[str, Any]]] = {
    "ring": (1, {"all_reduce": "ring", "channels": 3, "protocol": "ll", "chunks": True}),
    "tree": (1, {"all_reduce": "tree", "channels": 2, "protocol": "ll128"}),
    "halving-doubling": (1, {"all_reduce": "halving-doubling"}),
    "hierarchical": (2, {"all_reduce": "hierarchical", "all_to_all": "pxn"}),
}
"""GPUs of a server, algorithms."""


def one_after_another(server: int, how: dict[str, Any]) -> JobGraph:
    """Return a graph in which 8 ranks run each kind of collective when the one before is over."""
    links = Links(JobGraphBuilder(8), Algorithms.model_validate(how), server)
    before = links.builder.join([], 0)
    for kind in COLLECTIVES:
        links.label = links.builder.label(f"{kind} 300000 x")
        done = add_collective(links, kind, tuple(range(8)), 300_000, before)
        before = links.join(done.values(), 0)
    return links.builder.build()


@pytest.mark.parametrize("name", HOW)
def test_engines_and_ns3_agree_on_every_collective(name: str) -> None:
    server, how = HOW[name]
    values = {
        "topology": {"kind": "servers", "servers": 4, "gpus": 2, "attach": "tor", "spines": 1,
                     "servers_per_unit": 2, "host_gbps": 25, "uplink_gbps": 25},
        "servers": {"gpus": 2}, "qp": "pair", "intervals": INTERVALS,
        "workloads": [{"kind": "job", "graph": one_after_another(server, how), "rounds": 1}],
    }  # fmt: skip
    scenario = validate(values, Scenario, source="collectives")
    setting = scenario.initial_setting()
    window, plain, ns3 = (
        run(backend, scenario, 1, INTERVALS, setting)
        for backend in ("native", PlainEngine(), "ns3")
    )
    assert list(differing_fields(window, plain)) == []
    assert list(differing_fields(window, ns3)) == []
    rows = [row for report in window for row in report.job_spans.rows()]
    assert {row[1] for row in rows} == set(range(len(COLLECTIVES) + 1))
    assert sum(report.marks for report in window) > 0
