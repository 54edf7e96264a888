"""Several connections of each pair of hosts: messages take them in turn; each has a state."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

INCAST = {"kind": "incast", "hosts": [1, 2], "bytes": 200_000, "messages": 7, "rounds": 1}


def scenario(workload: dict[str, Any], **more: Any) -> Scenario:
    star = {"kind": "single-switch", "hosts": 3}
    return Scenario.model_validate({"topology": star, "workloads": [workload], **more})


def watched(chosen: Scenario) -> tuple[set[tuple[int, int]], IntervalReport]:
    """Return every queue pair seen within the first interval, and its report."""
    seen: set[tuple[int, int]] = set()

    def look(_: int, __: Any, flows: Any) -> None:
        seen.update(zip(flows["src"].tolist(), flows["queue_pair"].tolist(), strict=True))

    with closing(NativeBackend()) as backend:
        backend.open(chosen, 1)
        backend.apply(chosen.initial_setting())
        backend.watch(1_000_000, [], look)
        return seen, backend.advance()


@pytest.mark.parametrize("qp", ["pair", "flow"])
@pytest.mark.parametrize(("connections", "used"), [(1, 1), (3, 3), (50, 7)])
def test_messages_go_to_the_connections_in_turn(qp: str, connections: int, used: int) -> None:
    seen, report = watched(scenario({**INCAST, "connections": connections}, qp=qp))
    assert len(seen) == 2 * used
    assert len(report.finished.src) == 2 * 7
    assert {*report.finished.ordinal.tolist()} == set(range(7))


def test_rounds_go_on_where_the_last_one_ended() -> None:
    # 2 messages a round on 3 connections: 0 1, 2 0, 1 2
    rounds = {**INCAST, "hosts": [1], "messages": 2, "connections": 3, "bytes": 50_000}
    for n, used in ((1, 2), (2, 3), (3, 3)):
        assert len(watched(scenario({**rounds, "rounds": n}, qp="pair"))[0]) == used


def test_flows_of_a_poisson_source_take_turns() -> None:
    poisson = {
        "kind": "poisson", "cdf": {"name": "x", "points": [[40_000, 1.0]]}, "mean_gap_us": 40,
        "hosts": [1], "dsts": [0],
    }  # fmt: skip
    for connections in (1, 4):
        chosen = scenario({**poisson, "connections": connections}, qp="pair")
        assert len(watched(chosen)[0]) == connections


def test_dolce_rc_remembers_each_connection() -> None:
    def qualified(connections: int) -> int:
        workload = {**INCAST, "messages": 40, "connections": connections, "rounds": 0}
        report = watched(scenario(workload, scheme="dolce-rc", initial="dolce-rc"))[1]
        return report.scheme_counters["arm_0"]

    # the first CNP of each connection plays the first arm
    assert qualified(1) < qualified(20)


def test_one_connection_is_the_text_of_before() -> None:
    assert "connections" not in compile_scenario(scenario(INCAST))
    assert " connections=3 " in compile_scenario(scenario({**INCAST, "connections": 3}))
    assert "connections=256" in compile_scenario(load_scenario("osu-alltoall-16"))


def test_what_cannot_have_them_says_so() -> None:
    with pytest.raises((ConfigError, ValueError), match="connections"):
        scenario({"kind": "ring", "bytes": 9, "connections": 2})
    with pytest.raises((ConfigError, ValueError), match="connections"):
        scenario({**INCAST, "connections": 0})
