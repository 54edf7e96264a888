"""algbw, busbw and iterations per second: by hand, and on the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.collectives import Collective, RoundTracker, no_round
from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.workloads import collectives_of


def flows(*rows: tuple[int, int, int]) -> FinishedFlows:
    """(workload, start, finish) in picoseconds."""
    table = np.array(sorted(rows, key=lambda r: r[2]), dtype=np.int64).reshape(-1, 3)
    return FinishedFlows(
        workload=table[:, 0], start_ps=table[:, 1], fct_ps=table[:, 2] - table[:, 1]
    )


MS = 10**9


@pytest.mark.parametrize(
    ("kind", "factor"),
    [("all-reduce", 1.5), ("reduce-scatter", 0.75), ("all-gather", 0.75), ("all-to-all", 0.75)],
)
def test_bandwidths_of_a_round(kind: str, factor: float) -> None:
    tracker = RoundTracker([Collective(0, kind, ranks=4, bytes=10**9, flows=2, pause_ps=MS)])
    (done,) = tracker.add(flows((0, 5 * MS, 100 * MS), (0, 5 * MS, 105 * MS)))
    assert (done.number, done.start_ps, done.time_ps) == (0, 5 * MS, 100 * MS)
    assert done.algbw == pytest.approx(1e10)
    assert done.busbw == pytest.approx(factor * 1e10)


def test_rounds_across_intervals_and_workloads() -> None:
    jobs = [
        Collective(0, "all-reduce", ranks=2, bytes=1000, flows=2, pause_ps=10 * MS),
        Collective(2, "all-to-all", ranks=2, bytes=1000, flows=1, pause_ps=MS),
    ]
    tracker = RoundTracker(jobs)
    assert tracker.add(flows((0, 0, 10 * MS), (1, 0, 3 * MS))) == []
    done = tracker.add(flows((0, 0, 20 * MS), (2, 5 * MS, 12 * MS)))
    assert [(r.collective.workload, r.time_ps) for r in done] == [(2, 7 * MS), (0, 20 * MS)]
    (last,) = tracker.add(flows((0, 30 * MS, 70 * MS), (0, 30 * MS, 41 * MS)))
    assert (last.number, last.time_ps) == (1, 40 * MS)
    first, second = tracker.summary()
    assert first["rounds"] == 2
    assert first["time_ns_mean"] == 30e6
    assert (first["time_ns_min"], first["time_ns_max"]) == (20e6, 40e6)
    # two rounds of 60 ms together, each followed by 10 ms
    assert first["iterations_per_s"] == pytest.approx(2 / 0.08)
    assert first["algbw_gbytes_per_s"] == pytest.approx(1000 / 0.03 * 1e-9)
    assert second["rounds"] == 1


def test_nothing_finished() -> None:
    (row,) = RoundTracker([Collective(0, "all-gather", 2, 10, 2, 1)]).summary()
    assert row["rounds"] == 0
    assert row["algbw_gbytes_per_s"] is row["busbw_gbytes_per_s"] is row["iterations_per_s"] is None
    assert RoundTracker([]).add(flows((0, 0, 1))) == []


def scenario_of(*workloads: dict[str, Any]) -> Scenario:
    topology = {"kind": "single-switch", "hosts": 4, "delay_us": 1}
    return Scenario.model_validate({"topology": topology, "workloads": workloads})


def run(scenario: Scenario) -> RoundTracker:
    pytest.importorskip("dcqcn_gym._core")
    tracker = RoundTracker(collectives_of(scenario.workloads, scenario.fabric))
    backend = make_backend("native")
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    for _ in range(4000):
        if backend.done:
            break
        tracker.add(backend.advance().finished)
    assert backend.done
    return tracker


def test_what_counts_as_a_collective() -> None:
    poisson = {"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.1}
    incast = {"kind": "incast", "bytes": 10}
    permutation = {"kind": "permutation", "bytes": 10}
    alltoall = {"kind": "alltoall", "bytes": 1000, "hosts": 3, "messages": 2, "off_us": 7}
    ring = {"kind": "ring", "bytes": 1001, "collective": "all-gather"}
    scenario = scenario_of(poisson, incast, alltoall, permutation, ring)
    assert collectives_of(scenario.workloads, scenario.fabric) == [
        Collective(2, "all-to-all", 3, bytes=6000, flows=12, pause_ps=7_000_000),
        Collective(4, "all-gather", 4, bytes=1001, flows=12, pause_ps=1_000_000),
    ]


@pytest.mark.parametrize("messages", [1, 3])
def test_all_to_all_on_an_idle_switch_reaches_the_goodput_of_its_links(messages: int) -> None:
    work = {"kind": "alltoall", "bytes": 600_000 // messages, "messages": messages, "rounds": 3}
    (row,) = run(scenario_of({**work, "hosts": 2, "off_us": 50})).summary()
    assert row["rounds"] == 3
    # two ranks: half of S leaves each of them, ACKs beside it, and the last ACK comes 4 us later
    seconds = 600 * (1062 + 66) * 80e-12 + 4e-6
    assert row["busbw_gbytes_per_s"] == pytest.approx(600_000 / seconds * 1e-9, rel=0.01)
    assert row["iterations_per_s"] == pytest.approx(1e9 / (row["time_ns_mean"] + 50_000))


def test_ring_all_reduce_takes_its_steps() -> None:
    ring = {"kind": "ring", "bytes": 400_000, "rounds": 2}
    (row,) = run(scenario_of(ring)).summary()
    chunk_ns = 100 * 1062 * 0.08  # on the wire of 100 Gb/s
    steps = 6
    assert row["rounds"] == 2
    assert steps * chunk_ns < row["time_ns_min"] < steps * (chunk_ns * 1.07 + 2_300) + 2_100
    assert row["busbw_gbytes_per_s"] / row["algbw_gbytes_per_s"] == pytest.approx(1.5)


def test_mini_llm_alltoall_counts_iterations() -> None:
    scenario = load_scenario("mini-llm-alltoall")
    (job,) = collectives_of(scenario.workloads, scenario.fabric)
    assert (job.kind, job.ranks, job.bytes, job.flows) == ("all-to-all", 8, 8_000_000, 56)


def test_without_a_round_it_is_said_how_many_intervals_one_needs() -> None:
    of = {"collective": "all-reduce", "ranks": 4, "bytes": 10**6}
    said = "no round of the all-reduce of 4 ranks finished in 12 intervals"
    # 4 ranks send 6 chunks of a quarter each
    assert no_round(of, 12, 600_000) == f"{said}: one takes about 120"
    assert no_round({**of, "collective": "all-to-all"}, 12, 600_000).endswith("about 60")
    assert no_round(of, 12, 0.0) == no_round(of, 12, None) == f"{said}: give many more"
