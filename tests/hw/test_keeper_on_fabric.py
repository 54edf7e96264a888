"""The keeper on the digital fabric: it sees what devices count, and what it holds is deployed."""

from __future__ import annotations

from pathlib import Path

from fabrics import SMALL, fabric_of
from fleets import typed

from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.tuners.advice import advise


def test_it_runs_on_what_devices_count_and_leaves_the_rule_in_force(
    small: Scenario, tmp_path: Path
) -> None:
    file = tmp_path / "small-fabric.toml"
    file.write_text(SMALL)
    words = ["-s", str(file), "--tuner", "keeper", "--intervals", "3", "--keep"]
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
