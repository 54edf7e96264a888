"""Flows without an end: counted apart everywhere, and the networks of the papers that have them."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.utility import is_idle
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.base import live_flows_of
from dcqcn_gym.envs.backends.report_dict import report_from_dict, report_to_dict
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.learn.parallel import AgentsEnv
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.simulation.run import simulate

ENDLESS = {"kind": "streams", "flows": 5, "hosts": [1, 2, 3], "dsts": [0]}
SOME = {"kind": "flows", "flows": [(1, 0, 40_000, 0.0), (2, 0, "unlimited", 10_000.0)]}


def scenario(*workloads: dict[str, Any], **more: Any) -> Scenario:
    return Scenario.model_validate(
        {"topology": {"kind": "single-switch", "hosts": 4}, "workloads": workloads, **more}
    )


def reports_of(chosen: Scenario, n: int) -> list[IntervalReport]:
    with closing(make_backend("native")) as backend:
        backend.open(chosen, 1)
        backend.apply(chosen.initial_setting())
        found = [backend.advance() for _ in range(n)]
        live = live_flows_of(backend)
        assert live is not None
        assert len(live.src) == found[-1].active_flows
    return found


def test_they_are_no_active_flows_and_never_finish() -> None:
    first, second = reports_of(scenario(ENDLESS, SOME), 2)
    assert (first.unlimited_flows, second.unlimited_flows) == (6, 6)
    assert (first.active_flows, len(first.finished.src)) == (0, 1)
    assert second.delivered_bytes > 5e6  # of 11.8 MB that the link carries
    assert not is_idle(second)


def test_a_network_that_holds_them_back_is_not_idle() -> None:
    report = reports_of(scenario(ENDLESS), 1)[0]
    stopped = report_from_dict(
        {**report_to_dict(report), "host_tx_bytes": [0] * 4, "data_packets": 0}
    )
    assert (stopped.active_flows, stopped.unlimited_flows) == (0, 5)
    assert not is_idle(stopped)
    with pytest.raises(ConfigError, match="'unlimited_flows': expected a whole number"):
        report_from_dict({**report_to_dict(report), "unlimited_flows": -1})


def test_a_run_tells_them_apart_from_unfinished_flows(tmp_path: Path) -> None:
    run(RunSpec(scenario(ENDLESS, SOME, warmup_us=0), "default", 1, 2), tmp_path / "run.jsonl")
    found = read_run(tmp_path / "run.jsonl")
    assert {line["unlimited_flows"] for line in found.intervals} == {6}
    assert found.end is not None
    assert found.end["unfinished"]["bytes"] == []


def test_episodes_go_on_with_them_alone(tmp_path: Path) -> None:
    chosen = scenario(ENDLESS, warmup_us=0, intervals=4)
    run(RunSpec(chosen, "default", 1, 4), tmp_path / "run.jsonl")
    assert len(read_run(tmp_path / "run.jsonl").intervals) == 4
    with closing(DcqcnEnv(chosen)) as env:
        env.reset(seed=1)
        ended = [env.step(env.action_space.sample())[2:4] for _ in range(4)]
    assert ended == [(False, False)] * 3 + [(False, True)]
    with closing(AgentsEnv(chosen, intervals=4)) as agents:
        agents.reset(seed=1)
        steps = 0
        while agents.agents:
            agents.step({name: agents.action_space(name).sample() for name in agents.agents})
            steps += 1
    assert steps == 4


def test_until_done_waits_for_the_others(tmp_path: Path) -> None:
    summary = simulate(scenario(ENDLESS, SOME), tmp_path / "a")
    assert (summary["finished_flows"], summary["unfinished_flows"]) == (1, 0)
    assert summary["unlimited_flows"] == 6
    assert json.loads((tmp_path / "a" / "summary.json").read_text()) == summary
    with pytest.raises(ConfigError, match=r"workloads\[0\] \(streams\).* never ends"):
        simulate(scenario(ENDLESS), tmp_path / "b")


@pytest.mark.parametrize("scheme", ["dcqcn", "dcqcn-plus", "timely", "dolce-rc", "dolce-rc-plus"])
def test_every_scheme_goes_on(scheme: str) -> None:
    reports = reports_of(scenario(ENDLESS, scheme=scheme), 20)
    last = reports[-1]
    assert count(report.delivered_bytes for report in reports[10:]) > 0
    assert (last.active_flows, last.unlimited_flows) == (0, 5)


def test_the_clos_of_2410_nodes() -> None:
    net = load_scenario("plus-clos-2410").fabric
    assert (net.n_nodes, net.n_hosts) == (2410, 2000)
    assert sorted(net.tiers) == [0] * 200 + [1] * 200 + [2] * 10
    into = [link for link in net.links if link.b >= 2400]
    assert len(into) == 200  # every core has a link to each of the 20 groups


def test_the_leaves_have_four_links_to_the_spine() -> None:
    net = load_scenario("osu-alltoall-16").fabric
    assert (net.n_hosts, net.n_nodes) == (8, 11)
    assert [(link.a, link.b) for link in net.links[8:]] == [(8, 10)] * 4 + [(9, 10)] * 4
