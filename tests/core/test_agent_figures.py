"""Who sees and sets what, and what a report looks like to an agent."""

from __future__ import annotations

import numpy as np
import pytest

from dcqcn_gym.core.agents import AgentSpec, agents_of, joint_setting
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import Devices, check_group_names, members, resolve
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS, TUNED_KNOBS, default_setting
from dcqcn_gym.core.port_view import PortView, queue_score
from dcqcn_gym.envs.scenario.scenario import load_scenario
from hand_made import blank_report

MINI = load_scenario("mini-fb-hadoop").fabric.devices
STAR = Devices(
    4,
    [0, 1, 2, 3, 4, 4, 4, 4],
    [0, 0, 0, 0, 0, 1, 2, 3],
    {4: 0},
    port_up=[True] * 4 + [False] * 4,
)


def test_uplinks_and_downlinks_of_a_leaf_spine() -> None:
    """16 hosts, two racks of 8, two spines: ports 16..25 and 26..35 are ToRs', 36..39 spines'."""
    assert members("tor-downlinks", MINI) == ((), (*range(16, 24), *range(26, 34)))
    assert members("tor-uplinks", MINI) == ((), (24, 25, 34, 35))
    assert members("spine-downlinks", MINI) == ((), (36, 37, 38, 39))
    assert members("spine-uplinks", MINI) == ((), ())
    assert members("hosts", MINI) == (tuple(range(16)), ())
    assert members("cluster", MINI) == (tuple(range(16)), tuple(range(16, 40)))


def test_uplinks_of_a_fat_tree() -> None:
    """Of 16 ports each: 128 edge and 128 aggregation switches, 8 links up; 64 cores."""
    fat = load_scenario("fat-tree-1024").fabric
    assert len(members("tor-uplinks", fat.devices)[1]) == 1024
    assert len(members("spine-uplinks", fat.devices)[1]) == 1024
    assert len(members("core-downlinks", fat.devices)[1]) == 1024
    assert not members("core-uplinks", fat.devices)[1]


def test_a_side_is_narrower_than_its_tier_and_wider_than_a_switch() -> None:
    base = default_setting()
    marks = {
        "cluster": 1.0, "switches": 2.0, "tor": 3.0, "tor-uplinks": 4.0,
        "switch:17": 5.0, "port:17:0": 6.0,
    }  # fmt: skip
    groups = {name: base.replace({"kmin": kmin}) for name, kmin in marks.items()}
    kmin = resolve(groups, MINI)[1][:, ECN_KNOBS.index("kmin")].tolist()
    assert kmin[:16] == [1.0] * 16  # a NIC does not mark
    assert kmin[16:26] == [3.0] * 8 + [4.0] * 2
    assert kmin[26:36] == [6.0] + [5.0] * 9
    assert kmin[36:] == [2.0] * 4


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("tor-uplink", "unknown group of devices 'tor-uplink'; did you mean 'tor-uplinks'"),
        ("port:16:10", "names no device"),
        ("switch:016", "names no device"),
        ("nic:-1", "names no device"),
        ("switch:" + "9" * 5000, "names no device"),
    ],
)
def test_groups_that_are_not_there(group: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_group_names([group], MINI)


def test_devices_that_do_not_know_their_sides_refuse_them() -> None:
    plain = Devices(1, [0, 1], [0, 0], {1: 0})
    with pytest.raises(ConfigError, match="does not tell uplinks from downlinks"):
        check_group_names(["tor-uplinks"], plain)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("switch", ["switch:16", "switch:17", "switch:18", "switch:19"]),
        ("port", [f"port:{n}:{i}" for n in range(16, 20) for i in range(10 if n < 18 else 2)]),
        ("nic", [f"nic:{h}" for h in range(16)]),
        (["tor", "spine", "hosts"], ["tor", "spine", "hosts"]),
        ({"edge": "tor", "rest": ["spine", "hosts"]}, ["edge", "rest"]),
    ],
)  # fmt: skip
def test_agents_come_in_a_fixed_order(spec: AgentSpec, names: list[str]) -> None:
    found = agents_of(spec, MINI, TUNED_KNOBS, DCQCN)
    assert [a.name for a in found] == names
    for agent in found:
        assert set(agent.knobs) <= set(TUNED_KNOBS)
        assert any(DCQCN[k].is_ecn for k in agent.knobs) == agent.switches
        assert any(not DCQCN[k].is_ecn for k in agent.knobs) == bool(agent.hosts)


@pytest.mark.parametrize(
    ("spec", "knobs", "message"),
    [
        ("switches", TUNED_KNOBS, r"agents = 'switches'; did you mean 'switch'"),
        (["tor", "switch:16"], TUNED_KNOBS, "'tor' and 'switch:16' both set port 0 of switch 16"),
        (["hosts", "nic:3"], TUNED_KNOBS, "both set the NIC of host 3"),
        (["core"], TUNED_KNOBS, r"agent 'core': \['core'\] holds no device"),
        (["tor", "tor"], TUNED_KNOBS, "no group twice"),
        ("nic", ("kmin", "kmax"), "has NICs alone, and none of the knobs"),
        ("port", ("rp_ai_rate",), "has switches alone, and none of the knobs"),
        ([], TUNED_KNOBS, "none of them"),
        (["torr"], TUNED_KNOBS, "did you mean 'tor'"),
    ],
)  # fmt: skip
def test_agents_that_cannot_be(spec: AgentSpec, knobs: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        agents_of(spec, MINI, knobs, DCQCN)


def test_the_joint_setting_holds_every_group_of_every_agent() -> None:
    base, other = default_setting(), default_setting().replace({"kmin": 1.0})
    edge, rest = agents_of({"edge": "tor", "rest": ["spine", "hosts"]}, MINI, TUNED_KNOBS, DCQCN)
    found = joint_setting(base, {edge: base, rest: other})
    assert found == {"cluster": base, "tor": base, "spine": other, "hosts": other}


def test_figures_of_ports_worked_out_by_hand() -> None:
    """100 Gb/s for 1 ms is 12.5 MB. 3 KB and 63 KB in the queue are 2/16 and 6/16."""
    report = blank_report(
        port_queue_bytes=[0, 0, 0, 0, 3_000, 63_000, 0, 0],
        port_tx_bytes=[9, 9, 9, 9, 12_500_000, 6_250_000, 0, 0],
        port_marked_bytes=[0, 0, 0, 0, 0, 1_250_000, 0, 0],
        port_pause_ps=[5, 5, 5, 5, 0, 250_000_000, 0, 0],
    )
    ports = PortView(agents_of("port", STAR, TUNED_KNOBS, DCQCN))
    assert ports.figures(report).tolist() == [
        [0.125, 1.0, 0.0, 0.0], [0.375, 0.5, 0.1, 0.25], [0.0] * 4, [0.0] * 4,
    ]  # fmt: skip
    # D is 1 below 20 KB and 1 - 2/10 from 40 to 80 KB
    assert ports.rewards(report).tolist() == [1.0, 0.65, 0.5, 0.5]
    whole = PortView(agents_of("switch", STAR, TUNED_KNOBS, DCQCN), throughput_weight=1.0)
    # (3 + 63) / 4 = 16.5 KB on average: 1 + 16.5 lies at 1.5/16 between 16 and 32, so 4 + 0.09375
    assert whole.figures(report).tolist() == [[4.09375 / 16, 0.375, 0.025, 0.0625]]
    assert whole.rewards(report).tolist() == [0.375]


def test_figures_of_nics_worked_out_by_hand() -> None:
    """Host 0 sees four times its base RTT: log2 of 4 is 2; host 1 has no sample."""
    report = blank_report(
        rtt_src=[0, 0, 2], rtt_dst=[1, 2, 3], rtt_count=[1, 1, 2],
        rtt_sum_ps=[30_000, 50_000, 20_000], rtt_base_ps=[10_000, 10_000, 10_000],
        port_tx_bytes=[1_250_000, 0, 0, 0, 0, 0, 0, 0],
    )  # fmt: skip
    view = PortView(agents_of("nic", STAR, TUNED_KNOBS, DCQCN))
    assert view.figures(report)[:, :2].tolist() == [[0.2, 0.1], [0, 0], [0, 0], [0, 0]]
    assert view.rewards(report).tolist() == [0.175, 0.5, 0.5, 0.5]


def test_the_score_of_a_queue_falls_at_every_step_of_the_ladder() -> None:
    at = [0, 19_999, 20_000, 39_999, 40_000, 10_239_999, 10_240_000, 10**9]
    assert np.round(queue_score(at), 9).tolist() == [1.0, 1.0, 0.9, 0.9, 0.8, 0.1, 0.0, 0.0]


def test_a_report_of_another_network_is_refused() -> None:
    view = PortView(agents_of("port", MINI, TUNED_KNOBS, DCQCN))
    with pytest.raises(ConfigError, match="the backend reports 8 ports"):
        view.figures(blank_report())
    with pytest.raises(ConfigError, match="throughput_weight = nan"):
        PortView([], float("nan"))
