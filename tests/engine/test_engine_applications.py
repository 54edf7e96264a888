"""Storage and parameter server, worked out by hand on one switch: order, depth, times."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from engine_worlds import ENGINES, MS, NO_MARKS, US, add_report, one_switch, start

WIRE_PS = 80  # per byte at 100 Gb/s
ACK = 66 * WIRE_PS
SMALL = (64 + 62) * WIRE_PS  # a request or a reply
BLOCK = (1000 + 62) * WIRE_PS


def hop(frame: int) -> int:
    """Return the time of a frame from host to host: stored and forwarded once, 5 us each."""
    return 2 * frame + 10 * US


def storage(dsts: str, hosts: str = "0", **keys: Any) -> str:
    words = {"depth": 1, "copies": 0, "read_share": 1, "block_min": 1000, "block_max": 1000,
             "bytes": 64, "rounds": 4} | keys  # fmt: skip
    return f"workload storage hosts={hosts} dsts={dsts} " + " ".join(
        f"{k}={v}" for k, v in words.items()
    )


def flows_of(engine: str, workload: str, hosts: int = 4) -> list[tuple[int, int, int, int, int]]:
    """Return (start, finish, src, dst, bytes) of every flow, by start."""
    sim = start(one_switch(hosts, [workload]), engine=engine, **NO_MARKS)
    sim.advance(50 * MS)
    assert sim.done
    f = sim.report()["finished"]
    ends = f["start_ps"] + f["fct_ps"]
    columns = (f["start_ps"], ends, f["src"], f["dst"], f["bytes"])
    return sorted(zip(*(c.tolist() for c in columns), strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_reads_one_at_a_time(engine: str) -> None:
    # the ACK of what has come is sent before what it makes a host send
    served = hop(SMALL)
    back = served + ACK + hop(BLOCK)
    period = ACK + hop(SMALL) + ACK + hop(BLOCK)
    expected = []
    for k in range(4):
        asked = 0 if k == 0 else back + (k - 1) * period
        at_node = served if k == 0 else asked + ACK + hop(SMALL)
        expected.append((asked, at_node + hop(ACK), 0, 3, 64))
        expected.append((at_node, at_node + ACK + hop(BLOCK) + hop(ACK), 3, 0, 1000))
    assert (back, period) == (20_195_360, 20_200_640)
    assert flows_of(engine, storage("3")) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_two_reads_at_a_time_are_served_in_order(engine: str) -> None:
    found = flows_of(engine, storage("3", depth=2))
    requests = [f for f in found if f[2] == 0]
    first, second = hop(SMALL), hop(SMALL) + SMALL
    # the second request is there while the first block is sent: its ACK goes before its block
    one = first + ACK + hop(BLOCK)
    two = first + ACK + BLOCK + ACK + hop(BLOCK)
    assert second < first + ACK + BLOCK
    assert [f[0] for f in requests] == [0, 0, one, two]
    assert (one, two) == (20_195_360, 20_285_600)
    assert [f[:4] for f in found[2:4]] == [
        (first, one + hop(ACK), 3, 0),
        (second, two + hop(ACK), 3, 0),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_write_with_a_copy(engine: str) -> None:
    at_node = hop(BLOCK)
    at_copy = at_node + ACK + hop(BLOCK)
    replied = at_copy + ACK + hop(SMALL)
    over = replied + ACK + hop(SMALL)
    assert over == 40_396_000
    found = flows_of(engine, storage("2,3", read_share=0, copies=1, rounds=2))
    node = found[0][3]
    other = 5 - node
    assert found[:4] == [
        (0, at_node + hop(ACK), 0, node, 1000),
        (at_node, at_copy + hop(ACK), node, other, 1000),
        (at_copy, replied + hop(ACK), other, node, 64),
        (replied, over + hop(ACK), node, 0, 64),
    ]
    assert found[4][0] == over
    assert found[4][2] == 0
    assert len(found) == 8


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("depth", [1, 128])
def test_a_host_always_has_so_many_ios(engine: str, depth: int) -> None:
    # IOs issued = depth + IOs that came back, and the ACK of the last flow of an IO is back a
    # crossing of the switch later, in which it waits for at most three frames
    ios, late = 512, hop(ACK) + 3 * BLOCK
    found = flows_of(engine, storage("1,2,3", read_share=0.5, copies=2, depth=depth, rounds=ios))
    issued = np.array(sorted(f[0] for f in found if f[2] == 0))
    acked = np.array(sorted(f[1] for f in found if f[3] == 0))
    assert len(issued) == len(acked) == ios
    assert np.count_nonzero(issued == 0) == depth
    for k, now in enumerate(issued[depth:].tolist(), start=depth + 1):
        assert k - np.count_nonzero(acked <= now) >= depth
        assert k - np.count_nonzero(acked <= now + late) <= depth


@pytest.mark.parametrize("engine", ENGINES)
def test_an_iteration_of_a_parameter_server(engine: str) -> None:
    gap = 100 * US
    line = f"workload parameter-server hosts=0,1 dst=3 bytes=1000 off_ps={gap} rounds=2"
    found = flows_of(engine, line)
    heard = hop(BLOCK) + BLOCK  # both come to the switch together
    answers = [heard + ACK + hop(BLOCK), heard + ACK + BLOCK + hop(BLOCK)]
    assert answers == [20_430_080, 20_515_040]  # the round robin begins with the second worker
    pushes, pulls = ([f for f in found if (f[2] == 3) == pull] for pull in (False, True))
    assert [f[0] for f in pushes] == [0, 0, *(a + gap for a in answers)]
    assert [f[:4] for f in pulls[:2]] == [
        (heard, a + hop(ACK), 3, 1 - place) for place, a in enumerate(answers)
    ]
    # the second iteration waits for the slower worker
    assert pulls[2][0] == pulls[3][0] == answers[1] + gap + hop(BLOCK)


@pytest.mark.parametrize("qp", ["flow", "pair"])
def test_both_engines_give_the_same_bytes(qp: str) -> None:
    runs = []
    for engine in ENGINES:
        lines = [
            storage("5,6,7", "0,1,2,3", depth=16, copies=2, read_share=0.4, rounds=0,
                    block_min=512, block_max=65536, stop_ps=2 * MS),
            f"workload parameter-server hosts=0,1,2 dst=4 bytes=90000 stop_ps={2 * MS}",
            f"transport qp={qp}",
        ]  # fmt: skip
        sim = start(one_switch(8, lines), engine=engine)
        sim.advance(3 * MS)
        runs.append(sim.report())
    assert len(runs[0]["finished"]["src"]) > 500
    assert runs[0]["marks"] > 0
    digests = [hashlib.sha256() for _ in runs]
    for digest, report in zip(digests, runs, strict=True):
        add_report(digest, report)
    assert digests[0].digest() == digests[1].digest()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_order_of_ios_does_not_depend_on_the_setting(engine: str) -> None:
    """The k-th IO of a host has the same node and size, however fast the network is."""
    issued = []
    for kmin in (0, 4e9):
        line = storage("3,4,5", "0,1", depth=4, read_share=0, block_min=512, block_max=65536,
                       rounds=60)  # fmt: skip
        sim = start(one_switch(6, [line]), engine=engine, kmin=kmin, kmax=kmin + 1e3, pmax=1)
        sim.advance(50 * MS)
        assert sim.done
        f = sim.report()["finished"]
        order = np.lexsort((f["ordinal"], f["src"]))
        issued.append([(int(f["src"][i]), int(f["dst"][i]), int(f["bytes"][i]))
                       for i in order if f["src"][i] < 2])  # fmt: skip
    assert issued[0] == issued[1]
    assert len(issued[0]) == 120
    assert len(set(issued[0])) > 60
