"""ACC's fabrics and loads: the shipped files, and what the functions behind them make."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.benchmarks.papers.acc_loads import (
    FABRICS,
    LOADS,
    VARYING,
    steady,
    swapped,
    varying,
)
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.workloads import Poisson
from dcqcn_gym.runs.entries import changed_scenario


def _same(name: str, workloads: list[Any]) -> None:
    scenario = load_scenario(name)
    assert changed_scenario(scenario, {"workloads": workloads}, "test") == scenario


def test_fabrics() -> None:
    for name, (hosts, switches, uplinks) in {
        "acc-288": (288, 18, 72),
        "acc-96": (96, 6, 24),
        "acc-96-3to1": (96, 6, 8),
    }.items():
        topology = dict(FABRICS[name])
        made = {"topology": topology, "workloads": steady("WebSearch", 0.9)}
        net = Scenario.model_validate(made).fabric
        assert (net.n_hosts, len(net.tiers)) == (hosts, switches)
        assert len(net.links) == hosts + uplinks
        ratio = 24 * 25e9 / net.uplink_bps[hosts]
        assert ratio == (3.0 if name.endswith("3to1") else 1.0)
    assert load_scenario("acc-288-datamining").fabric.n_hosts == 288
    assert load_scenario("acc-96-swap").fabric.n_hosts == 96


def test_steady_load_is_a_share_of_the_host_links() -> None:
    assert LOADS == (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    _same("acc-288-websearch", steady("WebSearch", 0.6))
    _same("acc-16-datamining-b", steady("DataMining_b", 0.6))
    scenario = load_scenario("acc-288-datamining")
    (workload,) = scenario.workloads
    assert isinstance(workload, Poisson)
    offered = workload.cdf.mean_bytes * 8 / (workload.mean_gap_ps(scenario.fabric) * 1e-12)
    assert offered == pytest.approx(0.6 * 25e9)


def test_swaps() -> None:
    _same("acc-96-swap", swapped(0.6))
    _same("acc-16-swap", swapped(0.6, 0.01))
    found = [w for w in load_scenario("acc-96-swap").workloads if isinstance(w, Poisson)]
    assert [(w.cdf.name, w.start_us, w.stop_us) for w in found] == [
        ("WebSearch", 0.0, 4.5e6),
        ("DataMining_a", 4.5e6, 8.5e6),
        ("WebSearch", 8.5e6, 9.5e6),
        ("DataMining_a", 9.5e6, None),
    ]


def test_varying() -> None:
    _same("acc-16-varying", varying(16, "WebSearch", 3, 20_000.0, 1))
    one = varying(96, "DataMining_a", 10, 1000.0, 7)
    assert one == varying(96, "DataMining_a", 10, 1000.0, 7)
    assert one != varying(96, "DataMining_a", 10, 1000.0, 8)
    assert len(one) == 960
    for window in range(10):
        own = [w for w in one if w["start_us"] == window * 1000.0]
        assert {w["stop_us"] for w in own} == {(window + 1) * 1000.0}
        assert [w["hosts"] for w in own] == [[host] for host in range(96)]  # everybody sends
        assert {w["dsts"] for w in own} == {"all"}
    loads = Counter(w["load"] for w in one)
    assert set(loads) == set(VARYING)
    assert min(loads.values()) > 180  # 240 each, drawn


def test_phases_of_rpcs_beside_training() -> None:
    """SolarRPC begins from 5 to 10 ms of every 20 ms alone; the all-to-all goes on throughout."""
    scenario, backend = load_scenario("solar-training"), NativeBackend()
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    done = [backend.advance().finished for _ in range(30)]
    backend.close()
    size = np.concatenate([flows.bytes for flows in done])
    start_ms = np.concatenate([flows.start_ps for flows in done]) * 1e-9
    training = scenario.workloads[0].model_dump()["bytes"]
    rpcs, exchanges = start_ms[size != training], start_ms[size == training]
    assert len(rpcs) > 500
    phase = rpcs % 20.0
    assert ((phase >= 5.0) & (phase < 10.0)).all()
    assert {int(start // 20.0) for start in rpcs} == {0, 1}
    assert (exchanges % 20.0 < 5.0).any()
    assert (exchanges % 20.0 >= 10.0).any()
