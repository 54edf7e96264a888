"""`dcqcn-gym why`: each cause is found where it alone is at work, and the parts add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.traffic.causes import COLLISIONS, MARKS, PAUSES, Division, divide, shares
from dcqcn_gym.extras.traffic.why import read

US = 1_000_000
FABRIC = {"kind": "leaf-spine", "tors": 2, "hosts_per_tor": 4, "spines": 2}


def scenario(flows: list[tuple[int, int, int, int]], **more: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "why", "description": "", "monitor_interval_us": 500,
            "topology": FABRIC, "workloads": [{"kind": "flows", "flows": flows}], "intervals": 10,
            **more,
        }
    )  # fmt: skip


def whole(of: Scenario, **knobs: float) -> dict[str, Division]:
    setting = of.initial_setting().replace(kmin=4e6, kmax=4e6).replace(knobs)
    found = divide(of, setting, 1, of.intervals)
    for d in found:
        parts = (d.idle or 0.0) + sum(d.causes.values()) + d.rest
        assert parts == pytest.approx(d.now, rel=1e-9)
    return {d.name: d for d in found}


def loss(d: Division) -> float:
    return d.now - (d.idle or 0.0)


def test_two_flows_that_one_uplink_was_given_lose_by_collision_alone() -> None:
    flows = [(0, 4, 2_000_000, 0), (1, 5, 2_000_000, 0)]
    hashed = scenario(flows, switch={"buffer_bytes": 64 * 2**20})
    same = [(8, 0, 4, 0, 4, "data"), (8, 1, 5, 0, 4, "data")]
    both = scenario(flows, switch={"buffer_bytes": 64 * 2**20, "ecmp_table": same})
    d = whole(both)["elephants"]
    assert d.causes[COLLISIONS] == pytest.approx(loss(d), rel=0.02)
    assert abs(d.causes[MARKS]) + abs(d.causes[PAUSES]) < 0.02 * loss(d)
    assert hashed.switch.ecmp_table == ()  # the scenario itself is left as it is


def test_a_queue_that_marks_at_once_loses_by_marks() -> None:
    flows = [(0, 4, 4_000_000, 0), (1, 4, 4_000_000, 0)]
    d = whole(scenario(flows), kmin=1, kmax=2, pmax=1)["elephants"]
    assert d.causes[MARKS] > 0.5 * loss(d)
    assert d.causes[MARKS] > 10 * abs(d.causes[COLLISIONS])


def test_a_flow_behind_a_pause_that_is_not_its_own_loses_by_pauses() -> None:
    # 1 to 3 pause their ToR's uplinks for host 4; the flow to host 5 waits with them
    flows = [(h, 4, 4_000_000, 0) for h in (1, 2, 3)] + [(0, 5, 500_000, 20_000)]
    small = scenario(flows, switch={"buffer_bytes": 1_200_000})
    d = whole(small)["middle flows"]
    assert d.causes[PAUSES] > 0.3 * loss(d) > 0
    assert whole(scenario(flows, switch={"buffer_bytes": 256 * 2**20}))["middle flows"].causes[
        PAUSES
    ] == pytest.approx(0, abs=0.5)


def test_on_one_path_nothing_collides() -> None:
    flows = [(0, 1, 200_000, 0), (2, 1, 200_000, 0)]
    found = divide(scenario(flows), scenario(flows).initial_setting(), 1, 10)
    assert list(found[0].causes) == [MARKS, PAUSES]


def test_rounds_of_a_collective_are_divided_as_well() -> None:
    of = load_scenario("mini-llm-alltoall")
    found = {d.name: d for d in divide(of, of.initial_setting(), 1, 12)}
    rounds = found["all-to-all of workload 0"]
    assert rounds.idle is None
    assert sum(rounds.causes.values()) + rounds.rest == pytest.approx(rounds.now)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_what_two_causes_do_together_is_shared_between_them(order: tuple[str, str]) -> None:
    # by hand: a alone takes 6 of 10, b alone 2, both 10: a has (6 + 8) / 2, b (2 + 4) / 2
    values = {(): 10.0, ("a",): 4.0, ("b",): 8.0, ("a", "b"): 0.0}
    assert shares({frozenset(k): v for k, v in values.items()}, order) == {"a": 7.0, "b": 3.0}


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def test_the_command_reads_runs_of_simulate_and_tune_and_says_what_differs(tmp_path: Path) -> None:
    a, b, tuned = (tmp_path / name for name in ("a", "b", "tuned"))
    case = ("--scenario", "mini-fb-hadoop", "--intervals", 6, "--quiet")
    assert run("simulate", *case, "--out", a).exit_code == 0
    assert run("simulate", *case, "--set", "kmin=20", "--set", "kmax=60", "--out", b).exit_code == 0
    done = run("why", a, "--quiet")
    assert done.exit_code == 0, done.output
    assert "collisions of paths" in done.stdout
    assert "elephants:" in done.stdout
    both = run("why", a, b, "--quiet")
    assert "us (+" in both.stdout or "us (−" in both.stdout
    assert run("tune", *case, "--eval-seeds", 0, "--out", tuned).exit_code == 0
    assert run("why", tuned, "--quiet").exit_code == 0


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="simulate or tune"):
        read(tmp_path)
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(RunError, match=r"study\.json"):
        read(tmp_path)
