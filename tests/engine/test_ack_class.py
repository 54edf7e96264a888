"""ACKs in the data class of switches, worked out by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from engine_worlds import ENGINES, NO_MARKS, PFC, US, compiled, finish, flow_list, start

from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario

# hosts 2 and 3 fill the port towards host 0, which sends one packet to host 1
LINKS = [(h, 4, 80, US) for h in range(4)]
FLOWS = flow_list([(2, 0, 100_000, 0), (3, 0, 100_000, 0), (0, 1, 1000, 0)])
FRAME, ACK = 1062 * 80, 66 * 80


def incast(ack_class: str) -> str:
    return compiled(4, LINKS, [FLOWS], pfc=f"{PFC} ack_class={ack_class}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("ack_class", "before"), [("control", 25), ("data", 50)])
def test_an_ack_waits_for_the_data_before_it(engine: str, ack_class: str, before: int) -> None:
    # the first two packets reach the switch together, then two per frame time; host 1's ACK comes
    # after two hops of a frame and one of its own
    first = FRAME + US
    comes = 2 * (FRAME + US) + ACK + US
    frames = (comes - first) // FRAME + 1
    assert frames == 25  # are sent or being sent, and as many wait
    flows = finish(start(incast(ack_class), engine=engine, **NO_MARKS))
    lone = np.flatnonzero(flows["dst"] == 1)
    assert flows["fct_ps"][lone].tolist() == [first + before * FRAME + ACK + US]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_marked_ack_is_counted_and_ignored(engine: str) -> None:
    marks = {}
    for ack_class in ("control", "data"):
        sim = start(incast(ack_class), engine=engine, kmin=0, kmax=0, pmax=1)
        sim.advance(8 * US)  # the ACK has left the switch in both
        report = sim.report()
        assert int(report["port_marked_packets"].sum()) == report["marks"]
        assert np.all(report["port_marked_packets"] <= report["port_tx_packets"])
        marks[ack_class] = report["marks"], report["cnps"]
    frames, cnps = marks["control"]
    assert frames > 0
    assert marks["data"] == (frames + 1, cnps)  # the one ACK, and no CNP for it


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("ack_class", "more"), [("control", 0), ("data", 66)])
def test_an_ack_has_its_place_in_the_queue(engine: str, ack_class: str, more: int) -> None:
    sim = start(incast(ack_class), engine=engine, **NO_MARKS)
    sim.advance(3_200_000)  # after the ACK has come, before the next two frames
    assert sim.report()["port_queue_bytes"].tolist() == [0, 0, 0, 0, 25 * 1062 + more, 0, 0, 0]


SWITCH = {
    "name": "slow",
    "topology": {"kind": "single-switch", "hosts": 3, "gbps": 10, "delay_us": 1},
    "workloads": [{"kind": "incast", "bytes": 1000}],
}


@pytest.mark.parametrize(
    ("wire", "lossless"),
    [
        ({}, [3]),
        ({}, [3, 4]),
        ({"profile": "hpcc"}, [3]),
        ({"payload_bytes": 64, "cnp_bytes": 500}, [3]),
    ],
)
def test_headroom_is_what_the_engine_calls_enough(
    wire: dict[str, Any], lossless: list[int]
) -> None:
    """With ACKs in the data class the engine refuses a byte less."""
    switch = {"lossless": lossless, "ack_class": "data", "headroom_factor": 0}
    text = compile_scenario(Scenario.model_validate({**SWITCH, "wire": wire, "switch": switch}))
    start(text)
    enough = re.search(r"headroom=(\d+)", text)
    assert enough
    short = text.replace(enough[0], f"headroom={int(enough[1]) - 1}")
    with pytest.raises(ValueError, match=f"needs a headroom of {enough[1]} B"):
        start(short)
