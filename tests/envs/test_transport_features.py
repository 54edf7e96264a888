"""Rings, kept connections, windows, ACK every N, large packets and losses, on the engine."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.interval import FinishedFlows, IntervalReport
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

pytest.importorskip("dcqcn_gym._core")

SINGLE = {"kind": "single-switch", "hosts": 6, "gbps": 100, "delay_us": 1}


def scenario_of(workloads: list[dict[str, Any]], **tables: Any) -> Scenario:
    return Scenario.model_validate({"topology": SINGLE, "workloads": workloads, **tables})


def run(scenario: Scenario, ms: int = 20) -> IntervalReport:
    """Return one report of the whole run, whose work must be finite."""
    backend = make_backend("native")
    backend.open(scenario, 7)
    backend.apply(scenario.initial_setting())
    report = backend.advance(ms * 10**9)
    assert backend.done
    backend.close()
    return report


def rows(flows: FinishedFlows) -> list[tuple[int, ...]]:
    """Return (start, finish, src, dst, bytes, ordinal) of every flow, by finish."""
    return list(
        zip(
            flows.start_ps.tolist(),
            (flows.start_ps + flows.fct_ps).tolist(),
            flows.src.tolist(),
            flows.dst.tolist(),
            flows.bytes.tolist(),
            flows.ordinal.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("qp", ["flow", "pair"])
@pytest.mark.parametrize(
    ("collective", "steps"), [("all-reduce", 6), ("reduce-scatter", 3), ("all-gather", 3)]
)
def test_ring_goes_round_step_by_step(collective: str, steps: int, qp: str) -> None:
    ring = {
        "kind": "ring",
        "collective": collective,
        "bytes": 400_000,
        "hosts": [4, 1, 0, 2],
        "rounds": 2,
        "off_us": 30,
    }
    flows = rows(run(scenario_of([ring], qp=qp)).finished)
    assert Counter((src, dst) for _, _, src, dst, _, _ in flows) == dict.fromkeys(
        [(4, 1), (1, 0), (0, 2), (2, 4)], 2 * steps
    )
    assert {size for *_, size, _ in flows} == {100_000}
    first, second = flows[: 4 * steps], flows[4 * steps :]
    assert min(f[0] for f in first) == 0
    assert min(f[0] for f in second) == max(f[1] for f in first) + 30_000_000
    # an idle ring of equal links works in lockstep: the next step starts when a chunk arrived,
    # which is one ACK (66 B over two links) before the sender knows
    starts = sorted({f[0] for f in first})
    assert len(starts) == steps
    ack = 2 * (66 * 80 + 1_000_000)
    for begin, following in pairwise(starts):
        assert following == max(f[1] for f in first if f[0] == begin) - ack


def test_two_rings_on_one_pair_of_hosts_do_not_mix_their_steps() -> None:
    ring = {"kind": "ring", "hosts": [0, 1, 2], "bytes": 30_000, "rounds": 3}
    workloads = [ring, {**ring, "bytes": 90_000, "rounds": 2}]
    alltoall = {"kind": "alltoall", "hosts": [0, 1, 2], "bytes": 5_000, "rounds": 4}
    report = run(scenario_of([*workloads, alltoall], qp="pair"))
    sizes = Counter(report.finished.bytes.tolist())
    assert sizes == {10_000: 3 * 4 * 3, 30_000: 2 * 4 * 3, 5_000: 4 * 6}


def test_messages_share_a_connection_and_finish_in_order() -> None:
    pair = {"kind": "pairs", "pairs": [[0, 1, 50_000]], "messages": 5}
    flows = rows(run(scenario_of([pair])).finished)
    assert [f[5] for f in flows] == [0, 1, 2, 3, 4]
    assert {f[0] for f in flows} == {0}
    # back to back: 50 packets of 1062 bytes at 80 ps per byte from one completion to the next
    assert {b[1] - a[1] for a, b in pairwise(flows)} == {50 * 1062 * 80}


def test_a_kept_connection_keeps_its_rate() -> None:
    """Fresh connections meet at line rate in every round, kept ones only in the first."""
    setting = {"kmin": 5, "kmax": 20, "pmax": 1, "rp_min_rate": 5000}
    incast = {"kind": "incast", "dst": 0, "bytes": 200_000}

    def marks(qp: str, rounds: int) -> int:
        workload = {**incast, "rounds": rounds}
        return run(scenario_of([workload], qp=qp, initial=setting), ms=8000).marks

    first = marks("flow", 1)
    assert first == marks("pair", 1) > 0
    assert marks("flow", 2) == pytest.approx(2 * first, rel=0.1)
    assert marks("pair", 2) < 1.5 * first


def test_window_limits_what_is_in_flight() -> None:
    pair = {"kind": "pairs", "pairs": [[0, 1, 1_000_000]]}

    def fct(window: int) -> int:
        transport = {"window_bytes": window}
        return int(run(scenario_of([pair], transport=transport)).finished.fct_ps[0])

    # a packet and its ACK over two links of 1 us: one packet per round trip
    round_trip = 2 * (1062 * 80 + 66 * 80) + 4 * 1_000_000
    assert fct(1000) == 1000 * round_trip
    assert fct(0) == fct(100_000) < fct(20_000) < fct(1000)


def test_ack_every_thins_the_acks_but_not_the_last() -> None:
    flows = {"kind": "pairs", "pairs": [[0, 1, 10_500], [2, 3, 800]]}  # 11 packets and 1
    acks = {}
    for every in (1, 4, 100):
        report = run(scenario_of([flows], transport={"ack_every": every}))
        acks[every] = report.acks
        assert report.finished.bytes.tolist() == [800, 10_500]
        assert np.array_equal(report.finished.fct_ps, report.finished.ideal_fct_ps)
    assert acks == {1: 12, 4: 2 + 1 + 1, 100: 2}


def test_a_window_of_exactly_one_ack_does_not_stall() -> None:
    pair = {"kind": "pairs", "pairs": [[0, 1, 1_000_000], [2, 1, 999_999]]}
    transport = {"ack_every": 16, "window_bytes": 16_000}
    assert run(scenario_of([pair], transport=transport)).finished.bytes.size == 2


@pytest.mark.parametrize("payload", [64, 1000, 4096])
def test_payload_size(payload: int) -> None:
    pair = {"kind": "pairs", "pairs": [[0, 1, 100_000]]}
    report = run(scenario_of([pair], wire={"payload_bytes": payload}))
    assert report.data_packets == -(-100_000 // payload)
    assert report.host_tx_bytes[0] == 100_000 + 62 * report.data_packets
    assert np.array_equal(report.finished.fct_ps, report.finished.ideal_fct_ps)


def test_window_follows_the_rate_without_stalling() -> None:
    incast = {"kind": "incast", "dst": 0, "bytes": 300_000, "rounds": 2}
    transport = {"window_bytes": 50_000, "window_scaling": True}
    setting = {"kmin": 5, "kmax": 20, "pmax": 1}
    report = run(scenario_of([incast], transport=transport, initial=setting), ms=4000)
    assert report.finished.bytes.size == 10
    assert report.marks > 0


def test_nic_wide_gap_thins_the_cnps() -> None:
    incast = {"kind": "incast", "dst": 0, "bytes": 500_000, "rounds": 1}
    setting = {"kmin": 5, "kmax": 20, "pmax": 1}

    def cnps(gap_us: float) -> int:
        cnp = {"port_gap_us": gap_us}
        return run(scenario_of([incast], cnp=cnp, initial=setting), ms=8000).cnps

    assert cnps(0) > cnps(20) > 0


@pytest.mark.parametrize("every", [1, 8])
def test_without_pfc_everything_arrives_in_spite_of_drops(every: int) -> None:
    incast = {"kind": "incast", "dst": 0, "bytes": 400_000, "rounds": 2}
    switch = {"pfc": False, "buffer_bytes": 300_000}
    transport = {"rto_us": 200, "ack_every": every}
    report = run(scenario_of([incast], switch=switch, transport=transport), ms=8000)
    assert report.pauses == 0
    assert report.drops > 0
    assert report.retransmitted_packets > 0
    assert report.finished.bytes.size == 10
    assert report.delivered_bytes == 10 * 400_000


def test_what_the_shared_scenarios_are_for() -> None:
    def first_ms(name: str, intervals: int = 4) -> list[IntervalReport]:
        scenario = load_scenario(name)
        backend = make_backend("native")
        backend.open(scenario, 1)
        backend.apply(scenario.initial_setting())
        return [backend.advance() for _ in range(intervals)]

    storm = first_ms("mini-storm")
    assert all(r.pauses > 50 for r in storm)
    assert min(float(np.mean(r.port_pause_ps)) for r in storm) > 0.1 * 10**9
    lossy = first_ms("lossy-incast")
    assert sum(r.drops for r in lossy) > 1000
    assert sum(r.pauses for r in lossy) == 0


@pytest.mark.parametrize(
    "monitor",
    [
        {"kind": "netflow", "sample_one_in": 10, "export_us": 100},
        {"kind": "chameleon", "local_us": 100, "upload_us": 200},
        {"kind": "elastic", "unit": "packets", "heavy_bytes": 64, "light_bytes": 1},
        {"kind": "exact", "pe_weight": "survival", "sizes_cdf": "FB_Hadoop", "max_flows": 10},
    ],
    ids=lambda m: str(m["kind"]),
)
def test_monitor_options_reach_the_engine(monitor: dict[str, Any]) -> None:
    data = load_scenario("mini-fb-hadoop").model_dump(mode="json")
    scenario = Scenario.model_validate({**data, "monitor": monitor, "monitor_interval_us": 200})
    backend = make_backend("native")
    backend.open(scenario, 3)
    backend.apply(scenario.initial_setting())
    reports = [backend.advance() for _ in range(6)]
    assert any(r.fsd.known and r.fsd.bins.sum() > 0 for r in reports)


@pytest.mark.parametrize("qp", ["flow", "pair"])
def test_round_trips_of_probes_are_samples_of_those_of_all_packets(qp: str) -> None:
    """Two senders fill a queue at host 2: the traffic is the same, a packet in 20 us is timed."""
    flows = [
        {"kind": "incast", "bytes": 1_000_000, "hosts": [0, 1], "dst": 2, "rounds": 2},
    ]
    every, probed = (
        run(scenario_of(flows, qp=qp, transport={"rtt_probe_us": period})) for period in (0, 20)
    )
    assert rows(every.finished) == rows(probed.finished)
    assert every.rtt_count.sum() == every.data_packets == 4000
    longest = int(np.max(every.finished.fct_ps))
    for count, whole in zip(probed.rtt_count, every.rtt_count, strict=True):
        assert 4 <= count <= 2 * (longest // 20_000_000 + 2) < whole / 4
    assert np.all(probed.rtt_sum_ps > probed.rtt_count * probed.rtt_base_ps)
    assert np.all(probed.rtt_sum_ps < every.rtt_sum_ps)


def test_keys_that_came_later_are_in_a_dump_only_where_they_are_used() -> None:
    plain = load_scenario("mini-fb-hadoop")
    assert "rtt_base" not in plain.model_dump()
    assert "rtt_probe_us" not in plain.model_dump()["transport"]
    used = plain.model_copy(
        update={
            "rtt_base": "one-way",
            "transport": plain.transport.model_copy(update={"rtt_probe_us": 50.0}),
        }
    )
    again = Scenario.model_validate(used.model_dump(mode="json"))
    assert again == used
    assert (again.rtt_base, again.transport.rtt_probe_us) == ("one-way", 50.0)
