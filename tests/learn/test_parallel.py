"""The multi-agent face: PettingZoo's own tests, seeds, hand-checked intervals, bad input."""

from __future__ import annotations

import hashlib
import math
import sys
from typing import Any

import numpy as np
import pytest

import dcqcn_gym
from dcqcn_gym.core.errors import ConfigError, MissingExtraError, StateError
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.learn.parallel import AgentsEnv, Reward

MINI = load_scenario("mini-fb-hadoop")
DUMBBELL = MINI.model_copy(
    update={"topology": Scenario.model_validate({
        "topology": {"kind": "dumbbell", "left": 3, "right": 3, "host_gbps": 25,
                     "bottleneck_gbps": 25},
        "workloads": [{"kind": "permutation", "bytes": 200_000}],
    }).topology}
)  # fmt: skip
FABRICS = {
    "leaf-spine": (load_scenario("mini-llm-alltoall"), "port"),
    "dumbbell": (DUMBBELL, "switch"),
    "pause storm": (load_scenario("mini-storm"), "nic"),
}
LADDER = [{"kmin": 20 * 2**i, "kmax": 80 * 2**i, "pmax": 0.5} for i in range(5)]


def one_flow(**changes: Any) -> Scenario:
    """1 MB from host 0 to host 1 through one switch at 100 Gb/s, from time 0."""
    return Scenario.model_validate({
        "topology": {"kind": "single-switch", "hosts": 3, "delay_us": 1.0},
        "workloads": [{"kind": "pairs", "pairs": [[0, 1, 1_000_000]]}],
        "warmup_us": 0, "intervals": 4, **changes,
    })  # fmt: skip


def rollout(env: Any, seed: int | None, steps: int = 3) -> str:
    """Return a hash of all that agents see in fixed random actions."""
    digest = hashlib.sha256()
    observations, _ = env.reset(seed=seed)
    for i in range(steps):
        for name, seen in observations.items():
            digest.update(name.encode() + seen.tobytes())
        actions = {}
        for k, name in enumerate(env.agents):
            env.action_space(name).seed(1000 * i + k)
            actions[name] = env.action_space(name).sample()
        observations, rewards, _, _, infos = env.step(actions)
        digest.update(repr((rewards, infos)).encode())
    return digest.hexdigest()


@pytest.mark.parametrize("name", FABRICS)
def test_pettingzoo_tests_pass(name: str) -> None:
    pettingzoo = pytest.importorskip("pettingzoo.test")
    scenario, agents = FABRICS[name]
    env = dcqcn_gym.parallel_env(scenario, agents=agents, intervals=3)
    pettingzoo.parallel_api_test(env, num_cycles=4)
    pettingzoo.parallel_seed_test(
        lambda: dcqcn_gym.parallel_env(scenario, agents=agents, intervals=3), num_cycles=4
    )
    env.close()


def test_without_pettingzoo_one_sentence_names_the_extra(monkeypatch: Any) -> None:
    from dcqcn_gym.extras.learn import parallel

    parallel._env_class.cache_clear()
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtraError, match=r"\[multiagent\]'"):
        dcqcn_gym.parallel_env("mini-fb-hadoop")
    AgentsEnv("mini-fb-hadoop").close()  # needs nothing


def test_same_seed_same_bytes_and_streams_go_on() -> None:
    first, second = (AgentsEnv(MINI, agents="switch", intervals=5) for _ in range(2))
    with_seed = rollout(first, 3)
    assert rollout(second, 3) == with_seed
    assert rollout(first, 4) != with_seed
    rollout(second, 4)
    again = rollout(first, None)  # the next draw of seed 4
    assert rollout(second, None) == again
    assert rollout(first, 3) == with_seed
    never_seeded = AgentsEnv(MINI, agents="switch", intervals=5)
    assert rollout(never_seeded, None) == rollout(first, 0)


def test_one_flow_worked_out_by_hand() -> None:
    """1 MB is 1000 packets of 1062 B on the wire; 12.5 MB fit into 1 ms at 100 Gb/s."""
    env = AgentsEnv(one_flow(), agents="port")
    observations, _ = env.reset(seed=1)
    assert env.possible_agents == ["port_0", "port_1", "port_2"]
    assert not observations["port_1"].any()  # nothing has happened yet
    base = env.members[0]
    actions = {a.name: env._space[a.knobs].encode(env.initial_setting) for a in env.members}
    observations, rewards, ended, cut, _ = env.step(actions)
    share = 1_062_000 / 12_500_000
    assert len(base.knobs) == 3
    newest = observations["port_1"].reshape(4, 7)[0]
    assert newest[:4].tolist() == pytest.approx([0.0, share, 0.0, 0.0], abs=1e-7)
    assert newest[4:].tolist() == pytest.approx(actions["port_1"].tolist(), abs=1e-6)
    assert not observations["port_1"].reshape(4, 7)[1:].any()
    assert observations["port_2"][:4].tolist() == [0.0] * 4
    assert rewards["port_1"] == pytest.approx(0.5 * share + 0.5)
    assert rewards["port_2"] == 0.5
    assert all(ended.values())  # the megabyte took 90 us
    assert not any(cut.values())
    assert env.agents == []
    with pytest.raises(StateError, match="reset"):
        env.step(actions)


def test_a_queue_and_its_marks_worked_out_from_the_report() -> None:
    env = AgentsEnv("mini-storm", agents="port", history=2)
    env.reset(seed=1)
    actions = {name: np.full(3, -1.0, np.float32) for name in env.agents}
    first, *_ = env.step(actions)
    second, *_ = env.step(actions)
    (report,) = env.reports
    ports = env.scenario.fabric.devices
    assert report.port_marked_bytes.sum() > 0
    for i, (name, agent) in enumerate(zip(env.possible_agents, env.members, strict=True)):
        node, index = map(int, agent.groups[0].split(":")[1:])
        p = [*zip(ports.port_node, ports.port_index, strict=True)].index((node, index))
        kb = report.port_queue_bytes[p] / 1e3
        floor = math.floor(math.log2(1 + kb))
        queue = (floor + (1 + kb) / 2**floor - 1) / 16
        capacity = 25e9 / 8 * 1e-3
        expected = [
            queue,
            min(report.port_tx_bytes[p] / capacity, 1.0),
            report.port_marked_bytes[p] / capacity,
            report.port_pause_ps[p] / 1e9,
            -1.0, -1.0, -1.0,
        ]  # fmt: skip
        assert second[name][:7].tolist() == pytest.approx(expected, abs=1e-6), i
        assert second[name][7:].tolist() == first[name][:7].tolist()  # the past moves on


@pytest.mark.parametrize("name", ["mini-fb-hadoop", "dumbbell", "fat tree", "fb-hadoop-uplink30"])
def test_ports_and_uplinks_are_those_of_the_engine(name: str) -> None:
    """Agents name ports by the scenario's list; the engine tells which node each leads to."""
    fat = {"kind": "fat-tree", "k": 4}
    others = {
        "dumbbell": DUMBBELL,
        "fat tree": one_flow(topology=fat),
    }
    scenario = others[name] if name in others else load_scenario(name)
    backend, fabric = NativeBackend(), scenario.fabric
    backend.open(scenario, 1)
    table = backend._opened("test").simulation.port_table()
    devices = fabric.devices
    assert list(table["node"]) == list(devices.port_node)
    assert list(table["index"]) == list(devices.port_index)
    tier = [-1] * fabric.n_hosts + list(fabric.tiers)
    pairs = zip(table["node"], table["peer"], strict=True)
    assert list(devices.port_up) == [tier[peer] >= tier[node] for node, peer in pairs]


def test_every_agent_sets_its_own_devices_alone() -> None:
    env = AgentsEnv(MINI, agents=["tor", "nic:3"])
    env.reset(seed=0)
    assert env.observation_space("nic:3").shape == (4 * (4 + len(env.members[1].knobs)),)
    low = {a.name: np.full(len(a.knobs), -1.0) for a in env.members}
    env.step(low)
    setting = env.setting
    assert isinstance(setting, dict)
    base = env.initial_setting
    assert setting["cluster"] == base
    assert setting["tor"] != base
    assert [k for k in base if setting["tor"][k] != base[k]] == ["kmin", "kmax", "pmax"]
    assert not {k for k in base if setting["nic:3"][k] != base[k]} & {"kmin", "kmax", "pmax"}


def test_a_decision_may_be_shorter_or_longer_than_a_monitor_interval() -> None:
    short = AgentsEnv(MINI, decision_us=500, intervals=2)
    short.reset(seed=0)
    lasts = []
    while short.agents:
        short.step({n: np.zeros(3) for n in short.agents})
        lasts += [r.duration_ps for r in short.reports]
    assert lasts == [500_000_000] * 4
    long = AgentsEnv(MINI, decision_us=2000, intervals=4, reward=Reward(shared=1.0))
    long.reset(seed=0)
    _, rewards, _, _, infos = long.step({n: np.zeros(3) for n in long.agents})
    assert [r.duration_ps for r in long.reports] == [1_000_000_000] * 2
    assert set(rewards.values()) == {infos["switch_0"]["utility"]}
    assert long.agents
    *_, cut, _ = long.step({n: np.zeros(3) for n in long.agents})
    assert all(cut.values())


def test_templates_make_a_discrete_face() -> None:
    env = AgentsEnv(MINI, agents="port", templates=LADDER)
    observations, _ = env.reset(seed=0)
    assert env.action_space("port_0").n == 5  # type: ignore[attr-defined]
    assert observations["port_0"].shape == (20,)
    assert observations["port_0"][4] == -1.0  # the default is not on the ladder
    observations, *_ = env.step({n: 1 + (i > 0) for i, n in enumerate(env.agents)})
    assert observations["port_0"][4] == 0.25
    assert observations["port_1"][4] == 0.5
    setting = env.setting
    assert isinstance(setting, dict)
    assert setting["port:16:0"]["kmax"] == 160
    assert setting["port:16:1"]["kmax"] == 320


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"switch_99": np.zeros(3)}, r"unknown agent in the actions 'switch_99'; did you mean"),
        ({"switch_1": None}, "the actions lack 1 of 4 agents"),
        ({"switch_1": [0, math.nan, 0]}, r"agent 'switch_1': action\[1\] \(kmax\) = nan"),
        ({"switch_1": [0, 0, math.inf]}, r"agent 'switch_1': action\[2\] \(pmax\) = inf"),
        ({"switch_1": [0, 0]}, r"agent 'switch_1': an action has shape \(2,\)"),
        ({"switch_1": "up"}, "agent 'switch_1'"),
        ({"switch_1": [[0, 1], [2]]}, "agent 'switch_1'"),
    ],
)
def test_bad_actions_are_one_sentence_and_change_nothing(change: Any, message: str) -> None:
    env, spared = (AgentsEnv(MINI) for _ in range(2))
    for face in (env, spared):
        face.reset(seed=2)
    bad = {name: np.full(3, 0.5) for name in env.agents} | change
    bad = {name: action for name, action in bad.items() if action is not None}
    before = env.setting
    with pytest.raises(ConfigError, match=message) as error:
        env.step(bad)
    assert "\n" not in str(error.value)
    assert env.setting is before
    good = {name: np.zeros(3) for name in env.agents}
    assert repr(env.step(good)) == repr(spared.step(good))


@pytest.mark.parametrize("action", [-1, 5, 1.0, True, None, "2", [1]])
def test_bad_templates_are_one_sentence(action: Any) -> None:
    env = AgentsEnv(MINI, templates=LADDER)
    env.reset(seed=2)
    with pytest.raises(ConfigError, match=r"agent 'switch_0': action .*expected a whole number"):
        env.step(dict.fromkeys(env.agents, action))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"decision_us": 300}, "decision_us = 300: expected a divisor or a multiple"),
        ({"decision_us": 0}, "decision_us = 0"),
        ({"decision_us": math.nan}, "decision_us = nan"),
        ({"history": 0}, "history = 0: expected 1 to 64"),
        ({"reward": Reward(shared=math.nan)}, "shared = nan: expected 0 to 1"),
        ({"reward": Reward(shared=2)}, "shared = 2"),
        ({"intervals": 0}, "intervals = 0"),
        ({"intervals": 2.5}, "intervals = 2.5: expected 1 to .*, a whole number"),
        ({"intervals": "3"}, "intervals = '3'"),
        ({"history": 2.5}, "history = 2.5"),
        ({"agents": "swich"}, "did you mean 'switch'"),
        ({"agents": ["tor-downlink"]}, "did you mean"),
        ({"templates": LADDER[:1]}, "at least two"),
        ({"templates": [*LADDER, {"kmin": 3}]}, "all with the same knobs"),
        ({"templates": [{"kmin": 3, "kmax": 1}] * 2}, "kmin"),
        ({"scenario": "mini"}, "unknown scenario"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AgentsEnv(**{"scenario": MINI, **arguments})


@pytest.mark.parametrize("seed", [-1, 1.5, 2**64, "3"])
def test_a_wrong_seed_is_one_sentence(seed: Any) -> None:
    with pytest.raises(ConfigError, match=r"seed = .*: expected 0 to .*, a whole number"):
        AgentsEnv(MINI).reset(seed=seed)


def test_a_world_with_other_ports_says_what_to_use() -> None:
    with pytest.raises(ConfigError, match="32 ports, so it is another network"):
        AgentsEnv(MINI, "fake").reset(seed=1)


def test_calls_out_of_order_name_the_missing_call() -> None:
    env = AgentsEnv(MINI)
    with pytest.raises(StateError, match="call reset"):
        env.step({})
    with pytest.raises(ConfigError, match="unknown agent 'switch:1'"):
        env.action_space("switch:1")
    env.close()
