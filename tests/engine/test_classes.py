"""Traffic classes: weights, shares and TCP-like flows, the same in both engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from engine_worlds import (
    ENGINES,
    MS,
    NO_MARKS,
    PFC,
    US,
    Flow,
    compiled,
    flow_list,
    one_switch,
    start,
)

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario

BIG = 1_000_000_000
FRAME = 1062 * 80


def shared(weights: dict[int, int], flows: dict[int, Flow], more: Sequence[str] = ()) -> str:
    """Return flows by priority into one port; all of them lossless."""
    items = [f"class {p} weight={w}" for p, w in weights.items()]
    items += [flow_list([flow], p) for p, flow in flows.items()]
    pfc = PFC.replace("lossless=3", "lossless=2,3,4")
    return one_switch(4, [*items, *more], pfc=pfc)


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_share_a_port(engine: str) -> None:
    """1 : 2 : 5 of the frames that leave while all three have some, whatever PFC does."""
    flows = {p: (p - 2, 3, BIG, 0) for p in (2, 3, 4)}
    text = shared({2: 1, 3: 2, 4: 5}, flows, ["transport window=2000000"])
    sim = start(text, engine=engine, **NO_MARKS)
    sim.advance(MS)
    sim.report()
    sim.advance(5 * MS)
    report = sim.report()
    hosts = report["port_tx_packets"][:3].astype(float)
    assert hosts / hosts.sum() == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.01)


TCP = "class 0 weight=1 transport=tcp"


@pytest.mark.parametrize("engine", ENGINES)
def test_slow_start_by_hand(engine: str) -> None:
    """30 packets: 10 leave, each ACK lets two more go, and then the link is full."""
    sim = start(one_switch(2, [TCP, flow_list([(0, 1, 30_000, 0)], 0)]), engine=engine)
    sim.advance(MS)
    flows = sim.report()["finished"]
    ack = 66 * 80
    trip = 2 * (FRAME + ack) + 4 * 5 * US
    # 10 packets, a round trip after its start the next; 20 more leave one behind the other
    assert int(flows["fct_ps"][0]) == 2 * trip + 19 * FRAME


@pytest.mark.parametrize("engine", ENGINES)
def test_losses_heal(engine: str) -> None:
    """Two flows overflow a small share; all data comes, each packet once to its reader."""
    flows = [(0, 2, 3_000_000, 0), (1, 2, 3_000_000, 0)]
    text = one_switch(3, [TCP + " alpha=0.5", flow_list(flows, 0)], buffer=800_000)
    sim = start(text, engine=engine)
    sim.advance(40 * MS)
    report = sim.report()
    assert report["drops"] > 0
    assert len(report["finished"]["fct_ps"]) == 2
    assert report["delivered_bytes"] == 6_000_000


def test_both_engines_agree_beside_roce() -> None:
    items = [TCP + " alpha=0.5", "class 3 weight=3 ecn=20000:80000:0.2", "class 4 alpha=0.25"]
    items += [flow_list([(s, 3, 2_000_000, s * US) for s in range(3)], p) for p in (0, 3)]
    found = []
    for engine in ENGINES:
        pfc = PFC + " ack_class=data-cnp-first"
        sim = start(one_switch(4, items, buffer=1_500_000, pfc=pfc), engine=engine)
        sim.advance(20 * MS)
        found.append(sim.report())
    event, window = found
    assert event["drops"] > 0
    assert event["cnps"] > 0
    assert event.keys() == window.keys()
    for name in ("drops", "marks", "cnps", "packet_hops"):
        assert event[name] == window[name], name
    assert np.array_equal(event["finished"]["fct_ps"], window["finished"]["fct_ps"])
    assert len(event["finished"]["fct_ps"]) == 6


BASE = {
    "topology": {"kind": "single-switch", "hosts": 3},
    "workloads": [{"kind": "alltoall", "bytes": 100_000, "priority": 1}],
}


def test_a_scenario_names_its_classes() -> None:
    one = {"priority": 1, "transport": "tcp", "alpha": 1.0}
    other = {"priority": 3, "weight": 4, "ecn": [1000, 2000, 0.5], "dscp": 24}
    scenario = Scenario.model_validate({**BASE, "classes": [one, other]})
    lines = compile_scenario(scenario).splitlines()
    assert [line for line in lines if line.startswith("class ")] == [
        "class 1 weight=1 transport=tcp dscp=0 alpha=1.0",
        "class 3 weight=4 transport=roce dscp=24 ecn=1000:2000:0.5",
    ]
    assert Scenario.model_validate(scenario.model_dump(mode="json")) == scenario
    assert "classes" not in Scenario.model_validate(BASE).model_dump(mode="json")


def test_priority_0_is_a_lossy_class_as_on_sonic() -> None:
    flows = {**BASE["workloads"][0], "priority": 0}  # type: ignore[index]
    lossy = {"priority": 0, "transport": "tcp"}
    scenario = Scenario.model_validate({**BASE, "workloads": [flows], "classes": [lossy]})
    lines = compile_scenario(scenario).splitlines()
    assert "class 0 weight=1 transport=tcp dscp=0" in lines
    assert any(line.startswith("workload alltoall") and "priority=0" in line for line in lines)


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ([{"priority": 3, "transport": "tcp"}], r"classes\[0\]: transport = 'tcp' in a lossless"),
        ([{"priority": 1}, {"priority": 1}], r"classes\[1\]: a second one of priority 1"),
        ([{"priority": 1, "transport": "tcp", "ecn": [1, 2, 0.1]}], "none with TCP"),
        ([{"priority": 1, "ecn": [3, 2, 0.1]}], "expected kmin <= kmax"),
    ],
)
def test_what_cannot_be_is_refused(classes: list[dict[str, object]], words: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=words):
        Scenario.model_validate({**BASE, "classes": classes})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("frames", [120, 150])
def test_a_timeout_in_a_recovery_is_followed_by_a_full_link(engine: str, frames: int) -> None:
    """One long flow, 122 frames on their way at full rate; it stayed at 3.6 of 10 Gb/s for ever.

    The threshold was half of a flight inflated by what the receiver held already.
    """
    links = [(0, 2, 80, 25 * US), (1, 2, 800, 25 * US)]
    items = [TCP + " alpha=1", flow_list([(0, 1, 10**9, 0)], 0), "transport rto_ps=4000000000"]
    wire = "wire payload=1000 data=42 ack=42 cnp=78 pfc=64 cnp_in_ack=0"
    pfc = "pfc enabled=0 lossless=3 alpha=0.125 reserve=0 resume_offset=3072"
    text = compiled(2, links, items, buffer=2 * frames * 1042, wire=wire, pfc=pfc)
    sim = start(text, engine=engine)
    sim.advance(50 * MS)
    assert sim.report()["drops"] > 0
    sim.advance(150 * MS)
    assert sim.report()["delivered_bytes"] > 0.95 * 100e-3 * 10e9 / 8 * 1000 / 1042
