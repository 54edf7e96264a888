"""Several controllers on one network, each by its own devices, flow sizes and weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.agents import agents_of
from dcqcn_gym.core.clusters import Cluster, part_of
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.utility import o_tp, terms
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import make_tuner


def _two_jobs() -> Scenario:
    """Return the mini fabric with mice in rack 0 and an all-to-all of elephants in rack 1."""
    mice = {"kind": "poisson", "cdf": "SolarRPC_approx", "load": 0.2, "hosts": list(range(8))}
    elephants = {"kind": "alltoall", "hosts": list(range(8, 16)), "bytes": 1_500_000, "off_us": 100}
    return changed_scenario(
        load_scenario("mini-fb-hadoop"),
        {"workloads": [mice, elephants], "warmup_us": 2000, "intervals": 12},
        "test",
    )


JOBS = _two_jobs()
RACKS: dict[str, Any] = {
    "rpc": {
        "hosts": [0, 7],
        "groups": ["switch:16"],
        "weights": {"tp": 0.1, "rtt": 0.7, "pfc": 0.2},
    },
    "training": {
        "hosts": [8, 15],
        "groups": ["switch:17"],
        "weights": {"tp": 0.8, "rtt": 0.1, "pfc": 0.1},
    },
}


def _played(path: Path, clusters: dict[str, Any] = RACKS) -> tuple[bytes, list[dict[str, Any]]]:
    states: list[dict[str, Any]] = []
    spec = RunSpec(JOBS, "clusters", 3, 12, tuner_args={"clusters": clusters})
    run(spec, path, watch=lambda _line, state, _repeated: states.append(state))
    return path.read_bytes(), states


def test_each_cluster_is_judged_by_its_own_traffic_and_weights(tmp_path: Path) -> None:
    first, states = _played(tmp_path / "a")
    last = states[-1]
    assert list(last) == ["rpc", "training"]
    assert last["rpc"]["elephant_share"] < 0.1
    assert last["training"]["elephant_share"] == 1.0
    assert last["rpc"]["mu"] > 0.9  # PARALEON's own figure, from its cluster alone
    assert last["rpc"]["utility"] != last["training"]["utility"]
    done = read_run(tmp_path / "a")
    setting = done.intervals[-1]["setting"]
    assert list(setting) == [
        "cluster", *(f"nic:{h}" for h in range(8)), "switch:16",
        *(f"nic:{h}" for h in range(8, 16)), "switch:17",
    ]  # fmt: skip
    assert setting["switch:16"]["kmin"] != setting["switch:17"]["kmin"]
    assert setting["nic:0"]["rp_ai_rate"] == setting["nic:7"]["rp_ai_rate"]
    assert setting["nic:0"]["rp_ai_rate"] != setting["nic:8"]["rp_ai_rate"]
    # the same seed, the same bytes; other weights of one cluster, another run
    assert _played(tmp_path / "b")[0] == first
    other = {**RACKS, "rpc": {**RACKS["rpc"], "weights": {"tp": 1.0, "rtt": 0.0, "pfc": 0.0}}}
    assert _played(tmp_path / "c", other)[1][-1]["rpc"]["utility"] != last["rpc"]["utility"]


@pytest.mark.parametrize(
    "rules",
    [{}, {"rtt_base": "one-way"}, {"pfc_over": "paused"}, {"active_share": 0.3},
     {"rtt_base": "one-way", "pfc_over": "paused", "active_share": 0.3}],
    ids=lambda rules: "+".join(rules) or "usual",
)  # fmt: skip
def test_a_cluster_is_judged_by_the_rules_of_the_scenario(
    tmp_path: Path, rules: dict[str, Any]
) -> None:
    storm = changed_scenario(load_scenario("mini-storm"), {"warmup_us": 0, **rules}, "test")
    everything = {"hosts": [0, storm.fabric.n_hosts - 1], "groups": ["switches"],
                  "weights": storm.weights.model_dump()}  # fmt: skip
    arguments = {"tuner": "do-nothing", "clusters": {"all": everything}}
    for hosting in (Hosting(), Hosting(apart=True)):
        seen: list[tuple[float, float]] = []
        spec = RunSpec(storm, "clusters", 1, 3, tuner_args=arguments, hosting=hosting)
        run(
            spec, tmp_path / str(hosting.apart),
            watch=lambda line, state, _, seen=seen: seen.append(  # type: ignore[misc]
                (line["utility"], state["all"]["utility"])
            ),
        )  # fmt: skip
        assert len(seen) == 3
        for network, cluster in seen:
            assert cluster == pytest.approx(network, rel=1e-12)


def test_a_part_of_a_report() -> None:
    env = DcqcnEnv(JOBS)
    env.reset(seed=1)
    report = env.backend.advance()
    devices = JOBS.fabric.devices
    groups = (*(f"nic:{h}" for h in range(8)), "switch:16")
    (agent,) = agents_of({"rpc": groups}, devices, JOBS.turned, JOBS.table)
    part = Cluster.of(agent, devices.port_node)
    assert part.switches.tolist() == [16]
    unknown = FlowSizeDistribution(known=False)
    own = part_of(report, part, unknown)
    assert own.host_tx_bytes.tolist() == report.host_tx_bytes[:8].tolist()
    assert set(own.rtt_src.tolist()) <= set(range(8))
    assert set(own.port_node.tolist()) == set(range(9))  # 8 hosts and their ToR
    assert len(own.port_node) == 8 + 10
    assert len(own.finished.src) == np.count_nonzero(report.finished.src < 8)
    assert own.fsd.mice + own.fsd.elephants == len(own.finished.src)
    assert own.fsd.bins.sum() == len(own.finished.src)
    assert terms(own).tp == o_tp(own)
    # nothing finished: what was known before
    empty = part_of(report, Cluster(np.array([0]), np.array([], np.int64)), unknown)
    assert empty.fsd.known == bool(np.any(report.finished.src == 0))
    env.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tuner": "clusters"}, "has no end"),
        ({"tuner": "paraleon-tiers"}, "sets groups apart itself"),
        (
            {"clusters": {"a": {"hosts": [0, 3]}, "b": {"hosts": [3, 5]}}},
            "the NIC of host 3",
        ),
        ({"clusters": {"a": {"hosts": [0, 99]}}}, "names no device of this network"),
        ({"clusters": {"a": {"weights": {"tp": 0.5}}}}, "expected weights that add up to 1"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    context = RunSpec(JOBS, "clusters", 1, 4, "fake").context(DcqcnEnv(JOBS, "fake"))
    with pytest.raises(ConfigError, match=message):
        make_tuner("clusters", arguments).start(context)
