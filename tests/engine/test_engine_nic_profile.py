"""Profiles of NICs: what they fill in; what messages cost and losses do, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

from dcqcn_gym import _core
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.nic import nic_names
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

ENGINES = ("window", "event")
US, MS = 10**6, 10**9
STAR = {"topology": {"kind": "single-switch", "hosts": 3, "delay_us": 1}, "warmup_us": 0}
PAIRS = {"kind": "pairs", "pairs": [[0, 1, 1000]]}


def scenario(**changes: Any) -> Scenario:
    return validate({**STAR, "workloads": [PAIRS], **changes}, Scenario, source="test")


def started(made: Scenario, engine: str) -> _core.Simulation:
    sim = _core.Simulation(compile_scenario(made), 1, engine)
    sim.apply(*same_everywhere(made.initial_setting(), sim.n_hosts, sim.n_ports))
    return sim


@pytest.mark.parametrize("name", nic_names())
def test_a_profile_fills_in_what_is_not_given(name: str) -> None:
    plain, own = scenario(nic=name), scenario(nic=name, wire={"gap_bytes": 7})
    assert plain.transport.message_us > 0
    assert plain.initial
    assert (own.wire.gap_bytes, own.wire.payload_bytes) == (7, plain.wire.payload_bytes)
    assert scenario(nic=name, initial="expert").initial == "expert"
    assert Scenario.model_validate(plain.model_dump(mode="json")) == plain


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(ConfigError, match=r"connectx-6.*did you mean 'connectx-5'"):
        scenario(nic="connectx-6")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_message_costs_its_time_where_none_is_before_it(engine: str) -> None:
    """Three messages posted at once: the first waits for the NIC, the others for it."""
    three = {**PAIRS, "messages": 3}
    times = []
    for cost in (0.0, 2.5):
        sim = started(scenario(workloads=[three], transport={"message_us": cost}), engine)
        sim.advance(50 * US)
        flows = sim.report()["finished"]
        assert flows["fct_ps"][0] == flows["ideal_fct_ps"][0]
        times.append(flows["fct_ps"])
    assert (times[1] - times[0]).tolist() == [2_500_000] * 3


@pytest.mark.parametrize("engine", ENGINES)
def test_losses_slow_senders_down(engine: str) -> None:
    """Two endless flows into one port without PFC or marks: half of all was lost for ever."""
    network = {
        "switch": {"pfc": False, "buffer_bytes": 500_000, "alpha": 8},
        "initial": {"kmin": 100_000, "kmax": 100_000, "rp_byte_reset": 0},
        "workloads": [{"kind": "streams", "flows": 2, "hosts": [1, 2], "dsts": [0]}],
    }
    shares = {}
    for loss in ("ignored", "cut"):
        made = scenario(**network, transport={"loss": loss})
        assert bool(made.warnings) == (loss == "ignored")
        sim = started(made, engine)
        sim.advance(5 * MS)
        sim.report()
        sim.advance(15 * MS)
        report = sim.report()
        lost = report["drops"] / report["data_packets"]
        shares[loss] = report["delivered_bytes"] * 8e3 / (10 * MS), lost
    assert shares["ignored"][0] < 10
    assert shares["ignored"][1] > 0.4
    assert shares["cut"][0] > 45
    assert shares["cut"][1] < 0.1


def test_only_lossy_roce_is_warned_of() -> None:
    assert load_scenario("lossy-incast").warnings
    assert not load_scenario("incast").warnings
    assert not load_scenario("tcp-incast").warnings
