"""What classes cost the engine: instructions per packet-hop with one class and with more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine_speed import JOBS, Job
from scheme_cost import instructions_between

from dcqcn_gym import _core
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = ["CLASSES", "COLUMNS", "class_rows"]

BASE: Job = JOBS["all-to-all"]
BEGIN_US, END_US = 200, 600
"""Between these instants is counted: once the pipes are full."""


def _second(nbytes: int) -> dict[str, Any]:
    return {"workloads": [
        dict(BASE.workload),
        {"kind": "pairs", "pairs": [[0, 1, nbytes]], "priority": 4},
    ]}  # fmt: skip


CLASSES: Mapping[str, Mapping[str, Any]] = {
    "one class": {},
    "one flow of 1 kB in a second": _second(1000),
    "ACKs and CNPs in the class of their data": {"switch": {"ack_class": "data"}},
    "one class with a weight": {"classes": [{"priority": 3, "weight": 1}]},
    "half of the bytes in a second, with weights": {
        "workloads": [{**BASE.workload, "bytes": 6_000_000, "priority": p} for p in (3, 4)],
        "switch": {"lossless": [3, 4]},
        "classes": [{"priority": 3, "weight": 2}, {"priority": 4, "weight": 1}],
    },
}
"""What is changed of the all-to-all of 20 hosts, by what it is."""

COLUMNS = ("all-to-all of 20 x 19 x 12 MB", "instructions per packet-hop", "against one class")


def class_rows() -> list[tuple[str, str, str]]:
    """Measure all of them with valgrind; RunError without it."""
    found = {name: _per_hop(changes) for name, changes in CLASSES.items()}
    one = found["one class"]
    return [(name, f"{x:.1f}", f"{x / one:.3f}") for name, x in found.items()]


def _per_hop(changes: Mapping[str, Any]) -> float:
    base = BASE.scenario().model_dump(mode="json")
    switch = {**base["switch"], **changes.get("switch", {})}
    scenario = Scenario.model_validate({**base, **changes, "switch": switch}, context={})
    ends = (BEGIN_US * 10**6, END_US * 10**6)
    simulation = _core.Simulation(compile_scenario(scenario), 1)
    setting = scenario.initial_setting()
    simulation.apply(*same_everywhere(setting, simulation.n_hosts, simulation.n_ports))
    hops = []
    for end in ends:
        simulation.advance(end)
        simulation.report()  # adds up the totals
        hops.append(int(simulation.totals()["packet_hops"]))
    return instructions_between(scenario, *ends) / (hops[1] - hops[0])
