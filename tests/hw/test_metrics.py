"""Metrics of agents, fleets and runs are true; alerts and dashboard use no others."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from fleets import controller_of, fleet_file, fleet_of, nic_agent_file, typed
from guarded import WHO

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.hw.agent.server import AgentServer, load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.metrics import WRITE_S, TextFile, of_agent, of_fleet, registry_of
from dcqcn_gym.hw.run_metrics import FIGURES, last_line, of_runs
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from waiting import wait_for

prometheus = pytest.importorskip("prometheus_client")
MONITORING = Path(__file__).parents[2] / "configs" / "monitoring"


def shown(fills: Any) -> dict[str, float]:
    """Return name and labels -> value, as Prometheus would read them."""
    parser = pytest.importorskip("prometheus_client.parser")
    text = prometheus.generate_latest(registry_of(fills)).decode()
    return {
        f"{s.name.removeprefix('dcqcn_gym_')}{[*s.labels.values()] or ''}": s.value
        for family in parser.text_string_to_metric_families(text)
        for s in family.samples
    }


def test_a_fleets_figures_are_those_of_status(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_of(agents)
    with controller_of(tmp_path, fleet) as controller:
        fills = {"fleet": of_fleet(controller)}
        before = shown(fills)
        assert before["device_state['nic-0', 'idle']"] == 1
        assert before["device_up['nic-2']"] == before["source_up['fleet']"] == 1
        assert before["audit_log_broken"] == before["fleet_is_digital_fabric"] == 0
        done = controller.try_out({n: {"": {"rp_ai_rate": 50.0}} for n in agents}, "seen", 60.0)
        during = shown(fills)
        assert during["device_state['nic-0', 'applied']"] == 1
        assert 50 < during["device_trial_left_seconds['nic-0']"] <= 60
        controller.confirm(done.transaction, done.changed, "seen")
        agents["nic-1"].guard.undo(done.transaction, WHO)
        agents["nic-2"].close()
        after = shown(fills)
        assert [after[f"device_split['nic-{i}']"] for i in range(3)] == [0, 1, 0]
        assert [after[f"device_up['nic-{i}']"] for i in range(3)] == [1, 1, 0]
        year = 365 * 86400
        assert abs(after["certificate_end_seconds['this controller']"] - time.time() - year) < 3600
        audit = tmp_path / "audit.jsonl"
        audit.write_text(audit.read_text().replace('"seen"', '"else"', 1))
        assert shown(fills)["audit_log_broken"] == 1


def test_an_agent_writes_its_file_and_nothing_hangs_on_it(tmp_path: Path) -> None:
    write_all(tmp_path / "certs", ["nic-0"], ["controller"])
    agent = load_agent(nic_agent_file(tmp_path, "nic-0", 'metrics = "agent.prom"'))
    agent.start()
    try:
        file = tmp_path / "nic-0" / "agent.prom"
        wait_for(file.exists, "the agent writes its metrics")
        text = file.read_text()
        assert 'dcqcn_gym_agent_state{device="nic-0",state="idle"} 1.0' in text
        assert 'dcqcn_gym_agent_journal_events{device="nic-0",event="confirmed"} 1.0' in text
        agent.guard.stage("t1", {"": {"rp_ai_rate": 50.0}}, WHO)
        agent.guard.apply("t1", 60.0)
        now = [0.0]
        written = TextFile(file, of_agent(agent, "nic-0"), lambda: now[0])
        written.write_if_due()
        assert 'state="applied"} 1.0' in file.read_text()
        file.unlink()
        now[0] += WRITE_S - 0.1
        written.write_if_due()
        assert not file.exists()
        now[0] += 0.1
        written.write_if_due()
        assert file.exists()
    finally:
        agent.close()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "simulated" / "run.jsonl"
    path.parent.mkdir()
    run(RunSpec(load_scenario("mini-fb-hadoop"), "fixed", 1, 2, "fake", {"kmin": 50}), path)
    return path


def test_a_simulated_runs_figures_are_those_of_its_last_line(log: Path) -> None:
    line = json.loads(log.read_text().splitlines()[-2])
    found = shown({"runs": of_runs([log.parent, log.parent / "none"])})
    assert found["run_ended['simulated']"] == 1
    assert found["run_interval['simulated']"] == line["i"] == 1
    assert found["run_utility['simulated']"] == line["utility"]
    assert found["run_paused_share['simulated']"] == pytest.approx(1 - line["terms"][2])
    assert found["run_network_seconds['simulated']"] == pytest.approx(line["end_ps"] * 1e-12)
    assert {name.partition("[")[0] for name in found} >= FIGURES.keys()


def test_a_run_in_progress_shows_its_last_whole_line(log: Path, tmp_path: Path) -> None:
    data = log.read_bytes()
    lines = data.splitlines(keepends=True)
    file = tmp_path / "run.jsonl"
    header, first, second = (b"".join(lines[:n]) for n in (1, 2, 3))
    torn = first + lines[2][:50]
    for cut, wanted in ((header, None), (first, 0), (torn, 0), (second, 1)):
        file.write_bytes(cut)
        line, ended = last_line(file)
        assert (line and line["i"], ended) == (wanted, False)
    assert last_line(log)[1]
    with pytest.raises(RunError, match="cannot be read"):
        last_line(tmp_path / "none")


def test_alerts_and_dashboard_use_metrics_that_there_are(
    tmp_path: Path, agents: dict[str, AgentServer], log: Path
) -> None:
    yaml = pytest.importorskip("yaml")
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        fills = {"fleet": of_fleet(controller), "runs": of_runs([log.parent]),
                 "agent": of_agent(agents["nic-0"], "nic-0")}  # fmt: skip
        known = {f"dcqcn_gym_{name.partition('[')[0]}" for name in shown(fills)}
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
    board = json.loads((MONITORING / "dashboard.json").read_text())
    exprs = [rule["expr"] for rule in rules]
    assert all({"alert", "labels", "annotations"} <= rule.keys() for rule in rules)
    exprs += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = {name for expr in exprs for name in re.findall(r"dcqcn_gym_\w+", expr)}
    assert used <= known
    assert len(used) >= 15
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) >= 10


def test_the_command_wants_something_to_show(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    assert "nothing to show" in typed("metrics")[1]
    fleet = fleet_file(tmp_path, agents)
    assert "cannot listen there" in typed("metrics", "--fleet", fleet, "--listen", "x:99999")[1]
