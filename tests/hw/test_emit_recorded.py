"""``dcqcn-gym emit``: the recommendation of a finished run as commands, and the way back."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.device_commands import FORMS, emit
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.core.knobs import KNOBS, NIC_KNOBS
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.commands import commands
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

CHANGED = {"rp_ai_rate": 87, "kmin": 631.5}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a tuner that always proposes two changed knobs."""
    path = tmp_path_factory.mktemp("emit") / "run.jsonl"
    scenario = load_scenario("mini-fb-hadoop")
    run(RunSpec(scenario, "fixed", 1, 2, "fake", {**CHANGED, "kmax": 1600}), path)
    return path


@pytest.fixture(scope="module")
def recorded(log: Path) -> Run:
    return read_run(log)


def invoke(log: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["emit", str(log.parent), "--force", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_command_prints_every_form_without_a_run(log: Path) -> None:
    before = log.read_bytes()
    whole = invoke(log)
    assert [line[3:] for line in whole.splitlines() if line.startswith("## ")] == list(FORMS)
    for name in NIC_KNOBS:
        assert f"{KNOBS[name].mlxconfig}_P${{PORT:-1}}=" in whole
    assert invoke(log, "--format", "sonic") in whole
    assert log.read_bytes() == before


def test_only_what_changed_and_the_way_back(recorded: Run) -> None:
    for back, rate, threshold in ((False, 87, 631500), (True, 5, 100000)):
        nic = commands(recorded, "mlxconfig", changed_only=True, rollback=back)
        assert re.findall(r"(\w+)_P\$\{PORT:-1\}=(\S+)", nic) == [("RPG_AI_RATE", str(rate))]
        files = commands(recorded, "debugfs", changed_only=True, rollback=back)
        assert re.findall(r'echo (\S+) > "\$CC/(\w+)"', files) == [(str(rate), "rp_ai_rate")]
        switch = commands(recorded, "sonic", changed_only=True, rollback=back)
        assert re.findall(r"green_min_threshold (\d+)", switch) == [str(threshold)]
        assert "drop_probability" not in switch
        assert "wred_green_enable" not in switch


def test_a_setting_that_changes_nothing_is_no_command(recorded: Run) -> None:
    scenario = load_scenario("mini-fb-hadoop")
    same = emit(scenario.initial_setting(), "all", before=scenario.initial_setting())
    assert same.count("nothing to change") == len(FORMS)
    assert subprocess.run(["sh", "-eu", "-c", same], check=True).returncode == 0
    assert "mlxconfig -y" not in same


@pytest.mark.parametrize("back", [False, True])
def test_each_form_parses_as_shell(recorded: Run, back: bool) -> None:
    for form in (*FORMS, "all"):
        text = commands(recorded, form, changed_only=True, rollback=back)
        subprocess.run(["sh", "-n", "-c", text], check=True)


def test_a_run_without_an_end_recommends_nothing(recorded: Run) -> None:
    cut = Run(recorded.path, recorded.header, recorded.intervals)
    with pytest.raises(RunError, match=r"recommends no setting.*made it continues it"):
        commands(cut, "all")


def test_words_on_what_cannot_be_printed(log: Path, tmp_path: Path, recorded: Run) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sonic'"):
        commands(recorded, "sonik")
    assert isinstance(CliRunner().invoke(app, ["emit", str(tmp_path)]).exception, RunError)
    odd = {
        **(recorded.end or {}),
        "recommended": {**(recorded.end or {})["recommended"], "pmax": 7},
    }
    with pytest.raises(ConfigError, match="pmax = 7"):
        commands(Run(recorded.path, recorded.header, end=odd), "all")
