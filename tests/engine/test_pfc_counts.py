"""PFC frames by port, worked out by hand: who sends them, who takes them, and when."""

from __future__ import annotations

import numpy as np
import pytest
from engine_worlds import ENGINES, MS, NO_MARKS, US, compiled, flow_list, start

# two senders into one receiver; the switch's shared buffer holds a few packets
LINKS = [(h, 3, 80, US) for h in range(3)]
PFC = "pfc enabled=1 lossless=3 alpha=0.5 reserve=4096 resume_offset=3072"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_switch_pauses_its_senders(engine: str) -> None:
    flows = flow_list([(0, 2, 200_000, 0), (1, 2, 200_000, 0)])
    text = compiled(3, LINKS, [flows], buffer=3 * (4096 + 37_500) + 60_000, pfc=PFC)
    sim = start(text, engine=engine, **NO_MARKS)
    sim.advance(MS)
    report = sim.report()
    sent, received = report["port_pfc_sent"], report["port_pfc_received"]
    # ports 0 to 2 are the hosts', 3 to 5 the switch's towards them
    assert report["port_node"].tolist() == [0, 1, 2, 3, 3, 3]
    assert sent[:3].tolist() == [0, 0, 0]
    assert received[3:].tolist() == [0, 0, 0]
    assert sent[5] == received[2] == 0
    assert sent[3] > 0
    assert sent[4] > 0
    assert sent[3:].tolist() == received[:3].tolist()  # nothing is on its way any more
    assert int(sent.sum()) == report["pauses"] + report["resumes"]
    assert np.all((report["port_pause_ps"] > 0) == [True, True, False, False, False, False])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_frame_on_its_way_is_sent_and_not_received(engine: str) -> None:
    flows = flow_list([(0, 2, 200_000, 0), (1, 2, 200_000, 0)])
    text = compiled(3, LINKS, [flows], buffer=3 * (4096 + 37_500) + 60_000, pfc=PFC)
    sim = start(text, engine=engine, **NO_MARKS)
    sent = received = 0
    pending = set()
    for step in range(1, 200):
        sim.advance(step * US // 4)
        report = sim.report()
        sent += int(report["port_pfc_sent"].sum())
        received += int(report["port_pfc_received"].sum())
        pending.add(sent - received)
    # a frame needs 1 us and 64 B x 80 ps, so some interval of 250 ns ends while it is on its way
    assert min(pending) == 0
    assert max(pending) > 0
