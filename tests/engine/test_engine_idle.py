"""Flows that are alone: completion times to the picosecond, paths, priorities, strict order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from engine_worlds import (
    ENGINES,
    HPCC_WIRE,
    MS,
    NO_MARKS,
    US,
    compiled,
    finish,
    flow_list,
    leaf_spine,
    one_switch,
    start,
)

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def test_one_megabyte_by_hand(engine: str) -> None:
    # 1000 packets of 1048 B at 80 ps/B, once more 83.84 ns at the switch, four links of 5 us, and
    # an ACK of 60 B on two links
    sim = start(one_switch(2, [flow_list([(0, 1, 1_000_000, 0)])], wire=HPCC_WIRE), engine=engine)
    flows = finish(sim)
    by_hand = 1000 * 83_840 + 83_840 + 4 * 5_000_000 + 2 * 4800
    assert by_hand == 103_933_440
    assert flows["fct_ps"].tolist() == flows["ideal_fct_ps"].tolist() == [by_hand]


@pytest.mark.parametrize("ppb", [800, 320, 200, 160, 80, 40, 20, 10])
def test_every_speed_by_hand(engine: str, ppb: int) -> None:
    # 10 to 800 Gb/s, 2 links and 4 links; data 1062 B, ACK 66 B, the last packet carries 1 B
    size, packets, last = 20_001, 21, 63
    links = [(0, 2, ppb, US), (1, 4, ppb, US), (2, 3, ppb, US), (3, 4, ppb, US)]
    text = compiled(2, links, [flow_list([(0, 1, size, 7)])])
    flows = finish(start(text, engine=engine, **NO_MARKS))
    # At each hop the short packet finds the one before it gone; its ACK finds the ACK before it
    # on the wire, as 63 B < 66 B: it comes 3 B of time later than alone.
    lone = ((packets - 1) * 1062 + 4 * last + 4 * 66) * ppb + 8 * US
    wait = 3 * 1062 * ppb - 3 * last * ppb  # full packets ahead at each of three more hops
    assert flows["fct_ps"].tolist() == [lone + wait + 3 * ppb]
    assert flows["ideal_fct_ps"].tolist() == flows["fct_ps"].tolist()


def test_mixed_rates_and_sizes_match_the_ideal(engine: str) -> None:
    # 25 -> 100 -> 50 -> 200 Gb/s; one flow after another
    links = [(0, 2, 320, US), (2, 3, 80, 5 * US), (3, 4, 160, 2 * US), (4, 1, 40, US)]
    sizes = [1, 2, 64, 999, 1000, 1001, 1003, 1500, 2000, 65_537, 300_000]
    rows = [(0, 1, size, i * MS) for i, size in enumerate(sizes)]
    rows += [(1, 0, size, (i + len(sizes)) * MS) for i, size in enumerate(sizes)]
    flows = finish(start(compiled(2, links, [flow_list(rows)]), engine=engine, **NO_MARKS))
    assert flows["bytes"].tolist() == sizes * 2
    assert flows["fct_ps"].tolist() == flows["ideal_fct_ps"].tolist()


def test_full_rate_drain(engine: str) -> None:
    # N x 10 MB into one port without marks: the port never idles. 2 x 10,000 packets of 83.84 ns,
    # the first has to arrive, the last has to go on and be acknowledged.
    rows = [(h, 2, 10_000_000, 0) for h in range(2)]
    text = one_switch(3, [flow_list(rows)], wire=HPCC_WIRE)
    flows = finish(start(text, engine=engine, **NO_MARKS))
    makespan = 83_840 + 20_000 * 83_840 + 4 * 5_000_000 + 2 * 4800
    assert int((flows["start_ps"] + flows["fct_ps"]).max()) == makespan


def test_ecmp_uses_every_spine_in_both_directions(engine: str) -> None:
    rows = [(0, 4, 1000, i * 50 * US) for i in range(400)]
    sim = start(leaf_spine(2, 4, 4, [flow_list(rows)]), engine=engine)
    sim.advance(25 * MS)
    report, ports = sim.report(), sim.port_table()
    up = [i for i in range(sim.n_ports) if ports["node"][i] == 8 and ports["peer"][i] >= 10]
    counts = report["port_tx_packets"][up]
    assert counts.sum() == 400
    assert ((counts - 100) ** 2 / 100).sum() < 27  # chi-square, 3 degrees of freedom
    # ACKs choose their own way: 400 flows x (4 links there + 4 back)
    assert report["packet_hops"] == 3200
    assert report["finished"]["fct_ps"].size == 400


def test_parallel_links_share_the_load(engine: str) -> None:
    links = [(h, 4 + h // 2, 80, US) for h in range(4)] + [(4, 5, 160, US)] * 2
    rows = [(s, 2, 1000, i * 10 * US) for i, s in product(range(200), (0, 1))]
    sim = start(compiled(4, links, [flow_list(rows)]), engine=engine, **NO_MARKS)
    sim.advance(10 * MS)
    report, ports = sim.report(), sim.port_table()
    both = [i for i in range(sim.n_ports) if ports["node"][i] == 4 and ports["peer"][i] == 5]
    counts = report["port_tx_packets"][both]
    assert counts.sum() == 400
    assert abs(int(counts[0]) - 200) < 50  # five standard deviations


def test_eight_priorities_share_a_port_packet_by_packet(engine: str) -> None:
    # one sender per priority into one port: the k-th completions are a few packets apart
    workloads = [flow_list([(p, 8, 200_000, 0)], priority=p) for p in range(8)]
    pfc = "pfc enabled=1 lossless=0,1,2,3,4,5,6,7 alpha=0.125 reserve=4096 resume_offset=3072"
    text = one_switch(9, workloads, pfc=pfc, buffer=32 << 20)
    flows = finish(start(text, engine=engine, **NO_MARKS))
    ends = np.sort(flows["start_ps"] + flows["fct_ps"])
    assert ends.size == 8
    assert ends[-1] - ends[0] <= 8 * 1062 * 80
    # a priority that is alone in its class gets 1/2 of the port against any number in another
    two = [flow_list([(p, 8, 400_000, 0) for p in range(7)], priority=3)]
    two.append(flow_list([(7, 8, 400_000, 0)], priority=5))
    text = one_switch(9, two, pfc=pfc, buffer=32 << 20)
    flows = finish(start(text, engine=engine, **NO_MARKS))
    alone = flows["fct_ps"][flows["src"] == 7][0]
    assert alone == pytest.approx(2 * 400 * 1062 * 80 + 20 * US, rel=0.01)


def test_acks_and_cnps_pass_queued_data(engine: str) -> None:
    # Host 2 sends to host 1 at line rate, while 1 acknowledges the data of host 0: the ACKs wait
    # for the packet on the wire at most, at the host and at the switch.
    rows = [
        (1, 2, 3_000_000, 0),
        (3, 0, 1_500_000, 0),
        (2, 0, 1_500_000, 0),
        (0, 1, 1000, 100 * US),
    ]
    flows = finish(start(one_switch(4, [flow_list(rows)]), engine=engine, **NO_MARKS))
    probe = flows["bytes"] == 1000
    extra = int((flows["fct_ps"] - flows["ideal_fct_ps"])[probe][0])
    # the way of the ACK: host 1's link and the port to host 0 behind 100 us of queue
    assert 0 <= extra <= 2 * 1062 * 80 + 4 * 66 * 80
    # data on the same port did wait
    assert (flows["fct_ps"] - flows["ideal_fct_ps"])[flows["src"] == 3][0] > 50 * US


def test_window_by_hand(engine: str) -> None:
    # ten packets per round trip: a packet of the next window leaves when its ACK comes, 100 times
    trip = (2 * 1062 + 2 * 66) * 80 + 20 * US
    items = [flow_list([(0, 1, 1_000_000, 0)]), "transport window=10000"]
    flows = finish(start(one_switch(2, items), engine=engine))
    assert flows["fct_ps"].tolist() == [100 * trip + 9 * 1062 * 80]


@pytest.mark.parametrize("qp", ["flow", "pair"])
def test_a_pair_keeps_its_rate(engine: str, qp: str) -> None:
    # after an incast, a small flow of the same pair: a fresh QP starts at line rate, a kept one
    # at what its CNPs have left it
    rows = [(0, 2, 2_000_000, 0), (1, 2, 2_000_000, 0), (0, 2, 10_000, 1000 * US)]
    text = one_switch(3, [flow_list(rows), f"transport qp={qp}"])
    flows = finish(start(text, engine=engine, kmin=20e3, kmax=100e3))
    late = flows["bytes"] == 10_000
    slow = flows["fct_ps"][late] > flows["ideal_fct_ps"][late]
    assert slow.tolist() == [qp == "pair"]


@pytest.mark.parametrize(("near", "far"), [(81, 143), (143, 81), (7, 11), (8000, 3)])
def test_a_lone_flow_is_ideal_at_odd_rates(engine: str, near: int, far: int) -> None:
    # pacing at line rate must not be slower than a wire whose rate is no whole number of bit/s
    links = [(0, 2, near, US), (1, 3, near, US), (2, 3, far, US)]
    flows = finish(start(compiled(2, links, [flow_list([(0, 1, 1_000_001, 0)])]), engine=engine))
    assert flows["fct_ps"].tolist() == flows["ideal_fct_ps"].tolist()
