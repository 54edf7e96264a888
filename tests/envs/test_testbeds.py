"""The papers' testbeds by name: what they are, NCCL's bandwidths, phases of SolarRPC, 20 s."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.collectives import CollectiveRound, RoundTracker
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.monitor import ChameleonMonitor
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.workloads import collectives_of
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.tuners.chameleon import SlowChameleonTuner

TESTBEDS = ("nccl-alltoall-128", "paraleon-testbed", "paraleon-testbed-solar")


def seen(scenario: Scenario, intervals: int) -> list[IntervalReport]:
    backend = NativeBackend()
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    reports = [backend.advance() for _ in range(intervals)]
    backend.close()
    return reports


@pytest.mark.parametrize("name", TESTBEDS)
def test_a_testbed_is_what_its_paper_says(name: str) -> None:
    scenario = load_scenario(name)
    net = scenario.fabric
    assert (scenario.wire.payload_bytes, scenario.qp) == (4096, "pair")
    assert {link.rate_bps for link in net.links} == {400e9}
    hosts, tors = (128, 16) if name.startswith("nccl") else (256, 8)
    assert net.n_hosts == hosts
    assert len(net.links) == 2 * hosts  # 1:1: as many links above the ToRs as below
    assert len({net.tor(host) for host in range(hosts)}) == tors


@pytest.mark.parametrize(
    ("name", "ranks", "size"),
    [("nccl-alltoall-128", 128, 512_000_000), ("paraleon-testbed", 32, 4_000_000_000)],
)
def test_the_message_is_that_of_nccl_tests(name: str, ranks: int, size: int) -> None:
    """S is the buffer of a rank, a part of which stays where it is."""
    scenario = load_scenario(name)
    (one,) = collectives_of(scenario.workloads, scenario.fabric)
    assert (one.kind, one.ranks, one.bytes) == ("all-to-all", ranks, size)
    assert one.bus_factor == pytest.approx((ranks - 1) / ranks)


def test_the_bandwidths_of_an_exchange_of_a_testbed() -> None:
    """A card sends 31 of 32 parts over a link of 400 Gb/s: busbw comes near 50 GB/s, not above."""
    exchange = {"kind": "alltoall", "hosts": 32, "bytes": 500_000, "rounds": 1}
    scenario = changed_scenario(
        load_scenario("paraleon-testbed"),
        {"monitor_interval_us": 2000, "workloads": [exchange]},
        "one round",
    )
    tracker = RoundTracker(collectives_of(scenario.workloads, scenario.fabric))
    done: list[CollectiveRound] = []
    for report in seen(scenario, 2):
        done += tracker.add(report.finished)
    (one,) = done
    seconds = one.time_ps * 1e-12
    assert one.algbw == pytest.approx(32 * 500_000 / seconds)
    assert one.busbw == pytest.approx(31 * 500_000 / seconds)
    assert 20e9 < one.busbw < 50e9


def test_solar_comes_and_goes_beside_the_exchange() -> None:
    """The testbed's three phases, in 1/5000 of the time."""
    scenario = load_scenario("paraleon-testbed-solar")
    training, solar = (one.model_dump(mode="json") for one in scenario.workloads)
    phase_us = 50 * scenario.monitor_interval_us
    assert (solar["start_us"], solar["stop_us"]) == (phase_us, 2 * phase_us)
    assert scenario.intervals * scenario.monitor_interval_us == 3 * phase_us
    assert max(size for size, _ in solar["cdf"]["points"]) <= 128 * 1024
    training |= {"bytes": 20_000}
    solar |= {"start_us": phase_us / 5000, "stop_us": 2 * phase_us / 5000}
    changes: dict[str, Any] = {"monitor_interval_us": 100, "workloads": [training, solar]}
    reports = seen(changed_scenario(scenario, changes, "short"), 9)
    flows = [report.finished for report in reports]
    rpc = np.concatenate([f.workload for f in flows]) == 1
    start_us = np.concatenate([f.start_ps for f in flows]) * 1e-6
    assert rpc.sum() > 500
    assert (start_us[rpc] >= 300).all()
    assert (start_us[rpc] < 600).all()
    assert (start_us[~rpc] < 300).any()
    assert (start_us[~rpc] > 600).any()


def test_chameleons_run_is_200_rounds_of_100_ms() -> None:
    scenario = load_scenario("chameleon-20s")
    monitor = scenario.monitor
    assert isinstance(monitor, ChameleonMonitor)
    every = SlowChameleonTuner.Settings().model_dump()["average"] * scenario.cadence
    assert every * scenario.monitor_interval_us == monitor.upload_us == 100_000
    assert monitor.local_us == 10_000
    assert scenario.intervals / every == 200
    assert scenario.intervals * scenario.monitor_interval_us == 20e6
    other = load_scenario("alltoall-20x100mb")
    assert (scenario.fabric.n_hosts, scenario.workloads) == (128, other.workloads)
