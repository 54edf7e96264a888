"""The keeper on the digital fabric: it sees what devices count, and what it holds is deployed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabrics import SMALL, fabric_of
from fleets import typed

from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.tuners.rule import advise


def test_it_runs_on_what_devices_count_and_leaves_the_rule_in_force(
    small: Scenario, tmp_path: Path
) -> None:
    file = tmp_path / "small-fabric.toml"
    file.write_text(SMALL)
    words = ["-s", str(file), "--intervals", "3", "--keep"]  # keeper is what it begins with
    with fabric_of(small) as fabric:
        out = ["--out", str(tmp_path / "out")]
        code, said = typed("tune", "--fleet", str(fabric.fleet), *words, *out)
        assert code == 0, said
    run = read_run(tmp_path / "out" / "run.jsonl")
    assert run.end is not None
    (decision,) = run.end["decisions"]
    assert f"hosts = {small.n_hosts} (tried: 12 to 128)" in decision
    expected = advise(facts_of(small), small.default_setting()).setting
    assert expected["rp_min_rate"] > 1
    assert [line["setting"]["rp_min_rate"] for line in run.intervals] == [
        expected["rp_min_rate"]
    ] * 3
    unknown = set(run.intervals[-1].get("unknown", ()))
    assert unknown
    assert not unknown & {"port_pause_ps", "rtt_sum_ps"}  # what it watches is counted there


def test_what_is_held_is_confirmed_by_the_operator_alone_and_is_the_next_run_s_base(
    small: Scenario, tmp_path: Path
) -> None:
    file = tmp_path / "small-fabric.toml"
    file.write_text(SMALL)
    advised = advise(facts_of(small), small.default_setting()).setting
    with fabric_of(small) as fabric:
        fleet = ["--fleet", str(fabric.fleet)]
        words = [*fleet, "-s", str(file), "--intervals", "2"]
        code, said = typed("tune", *words, "--hold", "60", "--out", str(tmp_path / "held"))
        assert code == 0, said
        assert "on trial for 60 s: `dcqcn-gym hw confirm` keeps it" in " ".join(said.split())
        assert (
            typed("apply", *fleet, "--dry-run", "--advised", str(file))[1].count(
                "nothing would change"
            )
            == 1
        )
        code, said = typed("tune", *words, "--out", str(tmp_path / "refused"))
        assert code == 1
        assert "not at its confirmed setting" in " ".join(said.split())
        assert typed("confirm", *fleet)[0] == 0
        words += ["--tuner", "default", "--out", str(tmp_path / "next")]
        code, said = typed("tune", *words)
        assert code == 0, said
        assert "the fleet has its setting before" in " ".join(said.split())
        code, said = typed("apply", *fleet, "--dry-run", "--advised", str(file))
        assert code == 0, said
        assert "nothing would change" in said
    assert f"rp_min_rate = {advised['rp_min_rate']:g} Mb/s" in said


def test_a_trial_that_nobody_confirms_goes_back(small: Scenario, tmp_path: Path) -> None:
    file = tmp_path / "small-fabric.toml"
    file.write_text(SMALL)
    with fabric_of(small) as fabric:
        fleet = ["--fleet", str(fabric.fleet)]
        words = [*fleet, "-s", str(file), "--intervals", "2", "--out", str(tmp_path / "held")]
        assert typed("tune", *words, "--hold", "60")[0] == 0
        assert typed("rollback", *fleet, "--trial-only")[0] == 0
        code, said = typed("apply", *fleet, "--dry-run", "--advised", str(file))
        facts = json.loads(typed("apply", *fleet, "--dry-run", "--advised", str(file), "--json")[1])
    assert code == 0, said
    assert "rp_min_rate" in said.split("what differs")[1]
    assert set(facts["why"]) == set(facts["advised"])
    places = {row["place"]: float(row["after"]) for row in facts["places"]["nic-0"]}
    assert places["rp_min_rate"] == facts["advised"]["rp_min_rate"]


@pytest.mark.parametrize("hosts", [3, 1])
def test_advice_is_refused_for_a_fleet_of_another_size(
    small: Scenario, tmp_path: Path, hosts: int
) -> None:
    file = tmp_path / "other.toml"
    file.write_text(SMALL.replace("hosts_per_tor = 2", f"hosts_per_tor = {hosts}"))
    with fabric_of(small) as fabric:
        code, said = typed(
            "apply", "--fleet", str(fabric.fleet), "--advised", str(file), "--dry-run"
        )
    assert code == 1
    assert f"the fleet has 4 NICs, the scenario {2 * hosts}" in " ".join(said.split())
