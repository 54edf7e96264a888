"""An operator's commands, typed on the digital fabric."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from devices import DATA, NIC, PlayedMlxconfig
from fabrics import SMALL, fabric_of
from fleets import fleet_of, nic_agent_file
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.abort_rules import AbortRules
from dcqcn_gym.core.errors import BackendError, ConfigError, StateError, UnknownNameError
from dcqcn_gym.core.toml_text import parse_toml, toml_text
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.agent.server import load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.commands import tune as hw_tune
from dcqcn_gym.hw.drivers import DRIVERS, Driver, Surroundings, make_driver
from dcqcn_gym.hw.fabric.fabric import DigitalFabric
from waiting import wait_for


@pytest.fixture(scope="module")
def fabric(small: Scenario) -> Iterator[DigitalFabric]:
    with fabric_of(small, shared_profiles=True) as fabric:
        yield fabric


def typed(*words: str) -> str:
    done = CliRunner().invoke(app, ["hw", *words], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_a_change_by_hand_from_plan_to_rollback(fabric: DigitalFabric) -> None:
    fleet = ["--fleet", str(fabric.fleet)]
    new = ["--set", "rp_ai_rate=50", "--set", "kmin=250"]
    planned = typed("apply", *fleet, *new, "--dry-run")
    assert "rp_ai_rate" in planned
    assert "250000" in planned
    assert "shared by Ethernet0|3" in planned
    assert "7 devices changed" in typed("apply", *fleet, *new, "--why", "to see")
    assert "nothing would change" in typed("apply", *fleet, *new, "--dry-run")
    said = typed("status", *fleet)
    assert said.count("idle") == 7
    assert "(a digital fabric)" in said
    events = [json.loads(x) for x in typed("status", *fleet, "--history", "nic-1").splitlines()]
    assert [e["event"] for e in events] == ["confirmed", "applying", "confirmed"]
    assert events[-1]["why"] == "to see"
    back = typed("rollback", *fleet, "--dry-run")
    places = [line.split() for line in back.splitlines() if "rp_ai_rate" in line]
    assert [place[:4] for place in places] == [
        [f"nic-{host}", "rp_ai_rate", "50", "5"] for host in range(4)
    ]
    assert "nothing would change" in typed("apply", *fleet, *new, "--dry-run")
    assert "7 devices are back" in typed("rollback", *fleet)
    assert typed("apply", *fleet, *new, "--dry-run") == planned
    only_nics = ["--set", "rp_gd=13"]
    assert "4 devices on trial" in typed("apply", *fleet, *only_nics, "--hold", "60")
    for command, before, after in (("confirm", "11", "13"), ("rollback", "11", "13")):
        shown = typed(command, *fleet, "--dry-run")
        rows = [line.split()[:4] for line in shown.splitlines() if "rp_gd" in line]
        assert rows == [[f"nic-{host}", "rp_gd", before, after] for host in range(4)]
    assert "4 devices were on trial" in typed("rollback", *fleet)
    with pytest.raises(StateError, match="0 transactions are on trial"):
        typed("confirm", *fleet)
    typed("apply", *fleet, *only_nics, "--hold", "60")
    assert "4 devices confirmed" in typed("confirm", *fleet)
    assert "4 devices are back" in typed("rollback", *fleet)
    with pytest.raises(StateError, match="no confirmed change is left"):
        typed("rollback", *fleet)


def test_what_needs_a_reset_is_said_before_and_after(tmp_path: Path) -> None:
    write_all(tmp_path / "certs", ["nic-0", "nic-1"], ["controller"])
    text = (DATA / "mlxconfig-newer.txt").read_text()

    def persistent(driver: Driver) -> Driver:
        around = Surroundings(runner=PlayedMlxconfig(text))
        return make_driver("mlxconfig", {"pci": NIC["pci"]}, around, "test")

    agents = {
        "nic-0": load_agent(nic_agent_file(tmp_path, "nic-0"), wrap=persistent),
        "nic-1": load_agent(nic_agent_file(tmp_path, "nic-1")),
    }
    try:
        for agent in agents.values():
            agent.start()
        file = tmp_path / "fleet.toml"
        file.write_text(toml_text(fleet_of(agents).model_dump(mode="json", exclude_none=True)))
        words = ["--fleet", str(file), "--set", "rp_ai_rate=50"]
        planned = [
            line
            for line in typed("apply", *words, "--dry-run").splitlines()
            if "rate" in line.lower()
        ]
        assert ["at the next reset" in line for line in planned] == [True, False]
        said = typed("apply", *words)
        assert "2 devices changed and confirmed" in said
        assert said.endswith("in force only after a reset of: nic-0\n")
        assert "after a reset" not in typed("apply", *words)  # nothing changed
    finally:
        for agent in agents.values():
            agent.close()


def test_a_change_by_hand_shows_and_goes_back(fabric: DigitalFabric) -> None:
    fleet = ["--fleet", str(fabric.fleet)]
    assert "every device holds its confirmed setting" in typed("status", *fleet)
    place = next((fabric.fleet.parent / "nic-1").glob("root/sys/kernel/debug/mlx5/*/cc_params"))
    before = (place / "rp_gd").read_text()
    (place / "rp_gd").write_text("13\n")
    done = CliRunner().invoke(app, ["hw", "status", *fleet], env={"COLUMNS": "200"})
    assert done.exit_code == 1
    (line,) = [x.split() for x in done.output.splitlines() if "rp_gd" in x]
    assert line[:4] == ["nic-1", "rp_gd", before.strip(), "13"]
    typed("rollback", "--trial-only", *fleet)
    assert (place / "rp_gd").read_text() == before
    assert "every device holds" in typed("status", *fleet)


def test_a_stop_and_its_end(fabric: DigitalFabric) -> None:
    fleet = ["--fleet", str(fabric.fleet)]
    assert "7 devices refuse" in typed("stop", *fleet)
    assert typed("status", *fleet).count("stopped") == 7
    assert "7 devices allow" in typed("stop", *fleet, "--release")


def test_mistakes_are_one_sentence(fabric: DigitalFabric, tmp_path: Path) -> None:
    fleet = ["--fleet", str(fabric.fleet)]
    with pytest.raises(UnknownNameError, match="rp_ai_rate"):
        typed("apply", *fleet, "--set", "rp_ai_rat=5", "--dry-run")
    with pytest.raises(ConfigError, match="expected KNOB=NUMBER"):
        typed("apply", *fleet, "--set", "rp_ai_rate=fast", "--dry-run")
    with pytest.raises(ConfigError, match="no setting was given"):
        typed("apply", *fleet, "--dry-run")
    with pytest.raises(UnknownNameError, match="did you mean 'nic-1'"):
        typed("status", *fleet, "--history", "nic1")
    with pytest.raises(ConfigError, match="no such file"):
        typed("status", "--fleet", str(tmp_path / "none.toml"))


def test_a_broken_limit_ends_a_run_and_the_fleet_goes_back(
    fabric: DigitalFabric, tmp_path: Path
) -> None:
    file = tmp_path / "small-fabric.toml"
    file.write_text(SMALL)
    fleet = ["--fleet", str(fabric.fleet)]
    default = ["--set", "rp_ai_rate=77", "--set", "kmin=123"]
    before = typed("apply", *fleet, *default, "--dry-run")
    words = ["tune", *fleet, "-s", str(file), "--tuner", "random", "--min-utility", "1"]
    with pytest.raises(BackendError, match=r"ended at interval 1: utility .* limit 1 for 2"):
        typed(*words, "--patience", "2", "--out", str(tmp_path / "out"))
    assert typed("apply", *fleet, *default, "--dry-run") == before
    assert len((tmp_path / "out" / "run.jsonl").read_text().splitlines()) == 3  # head, 2 intervals


def test_what_is_wrong_with_reports_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    line = {
        "i": 3, "utility": 0.5, "terms": [1.0, 1.0, 1.0], "drops": 0, "start_ps": 0,
        "end_ps": 10**9, "data_packets": 1, "idle": False,
        "scheme": {"missing_reports": 2, "nic_errors": 4},
    }  # fmt: skip
    hw_tune._judge(line, {}, AbortRules())
    assert capsys.readouterr().err == "interval 3: utility 0.5000; 2 missing reports\n"


def test_rules_of_ending_early() -> None:
    line = {"i": 0, "idle": False, "terms": [1.0, 1.0, 0.4], "drops": 3, "utility": 0.7,
            "start_ps": 0, "end_ps": 10**9, "data_packets": 1000}  # fmt: skip
    for rules in (AbortRules(max_paused=0.5, patience=2), AbortRules(max_drops=2, patience=2),
                  AbortRules(min_utility=0.8, patience=2)):  # fmt: skip
        rules.look(line)
        rules.look({**line, "terms": [1.0, 1.0, 1.0], "drops": 0, "utility": 0.9})
        rules.look(line)
        rules.look({**line, "idle": True})
        rules.look(line)
        with pytest.raises(BackendError, match="beyond the limit"):
            rules.look(line)
    for rules in (AbortRules(), AbortRules(0.6, 3, 0.7, 1)):
        rules.look(line)


@pytest.mark.slow
def test_a_tuning_run_leaves_the_fleet_as_it_was(fabric: DigitalFabric, tmp_path: Path) -> None:
    file = tmp_path / "small-fabric.toml"  # the fabric's own scenario, name included
    file.write_text(SMALL)
    fleet = ["--fleet", str(fabric.fleet)]
    words = ["tune", *fleet, "-s", str(file), "--tuner", "random", "--intervals", "3"]
    default = ["--set", "rp_ai_rate=5", "--set", "kmin=100"]
    before = typed("apply", *fleet, *default, "--dry-run")
    assert "its setting before" in typed(*words, "--out", str(tmp_path / "a"))
    assert typed("apply", *fleet, *default, "--dry-run") == before
    assert "has the candidate" in typed(*words, "--out", str(tmp_path / "b"), "--keep")
    best = str(tmp_path / "b" / "best.json")
    assert "nothing would change" in typed("apply", *fleet, "--best", best, "--dry-run")
    done = CliRunner().invoke(app, ["hw", *words, "--out", str(tmp_path / "c"), "--json"])
    assert json.loads(done.stdout)["answer"]["action"] == "cannot tell"
    with pytest.raises(ConfigError, match="hw tune"):
        CliRunner().invoke(
            app, ["tune", "--backend", f"hardware:{fabric.fleet}", "--out", str(tmp_path / "c")],
            catch_exceptions=False,
        )  # fmt: skip


def test_the_help_of_agents_names_every_driver() -> None:
    said = typed("agent", "--help")
    assert [name for name in DRIVERS.names() if name not in said] == []


@pytest.mark.slow
def test_without_the_extra_one_sentence_says_so() -> None:
    code = (
        "import sys\nfor name in ('grpc', 'google.protobuf', 'redis', 'cryptography'):\n"
        "    sys.modules[name] = None\nfrom dcqcn_gym.cli import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "hw", "status", "--fleet", "f.toml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "[hw]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_page_reaches_every_agent_where_it_listens() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text()
    files = [parse_toml(block.split("```")[0], "page") for block in page.split("```toml\n")[1:]]
    listen = {f["device"]: f.get("listen", "127.0.0.1:7443") for f in files if "device" in f}
    (fleet,) = (file for file in files if "nics" in file)
    members = [*fleet["nics"], *fleet["switches"]]
    assert {member["name"]: member["address"] for member in members} == listen


@pytest.mark.slow
def test_an_agent_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    typed("certs", str(tmp_path / "certs"), "--agent", "nic-7", "--controller", "controller")
    assert (tmp_path / "certs" / "nic-7.key").stat().st_mode & 0o777 == 0o600
    file = nic_agent_file(tmp_path, "nic-7")
    command = [sys.executable, "-m", "dcqcn_gym.cli", "hw", "agent", "nic", "--config", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        assert "listening on 127.0.0.1:" in said
        address = said.split()[2].rstrip(";")
        fleet = tmp_path / "fleet.toml"
        fleet.write_text(
            '[tls]\nca = "certs/ca.pem"\ncert = "certs/controller.pem"\n'
            f'key = "certs/controller.key"\n[[nics]]\nname = "nic-7"\naddress = "{address}"\n'
        )
        assert "1 devices changed" in typed("apply", "--fleet", str(fleet), "--set", "rp_gd=10")
        process.kill()
        process.wait(10)
        held = next((tmp_path / "nic-7").glob("root/sys/kernel/debug/mlx5/*/cc_params/rp_gd"))
        assert held.read_text() == "10\n"
    finally:
        process.kill()
        process.wait(10)
    command[command.index("nic")] = "switch"  # not in this process: it would lose its capabilities
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is for a nic, not a switch" in done.stderr


@pytest.mark.slow
def test_the_fabric_runs_as_a_process_of_its_own(tmp_path: Path, fabric: DigitalFabric) -> None:
    (tmp_path / "s.toml").write_text(SMALL)
    folder = fabric.fleet.parent.parent / "g"  # a short name, for sockets
    command = [
        sys.executable,
        "-m",
        "dcqcn_gym.cli",
        "hw",
        "fabric",
        "-s",
        str(tmp_path / "s.toml"),
    ]
    process = subprocess.Popen([*command, "--out", str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "7 agents run" in process.stdout.readline()
        assert typed("status", "--fleet", str(folder / "fleet.toml")).count("idle") == 7
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait(10)
    wait_for(lambda: not list(folder.glob("switch-*/redis.sock")), "their servers end")
