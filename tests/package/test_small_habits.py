"""What people try first: -h, ``python -m dcqcn_gym``, completion, a look at an object."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import dcqcn_gym
from dcqcn_gym.cli import app
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.runs.progress import _figures_shown
from dcqcn_gym.tuners import optuna_search


@pytest.mark.parametrize("words", [[], ["tune"], ["bench", "run"], ["ns3", "serve"]])
def test_h_is_help(words: list[str]) -> None:
    short, long = (CliRunner().invoke(app, [*words, option]) for option in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.output == long.output
    assert "Usage" in short.output


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dcqcn_gym", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("dcqcn-gym ")


def test_the_shell_can_complete() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output


def test_tuners_that_cannot_run_here_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    whole = CliRunner().invoke(app, ["tuners"]).output
    monkeypatch.setattr(optuna_search.TpeTuner, "modules", ("a_module_nobody_has",))
    text = CliRunner().invoke(app, ["tuners"]).output
    assert "not available: pip install 'dcqcn-gym[optuna]'; " in " ".join(text.split())
    assert text.count("not available") == whole.count("not available") + 1


def test_an_environment_says_what_it_is() -> None:
    env = DcqcnEnv("mini-fb-hadoop", "fake", intervals=7)
    assert repr(env) == "<DcqcnEnv 'mini-fb-hadoop' on FakeBackend, 14 knobs, 7 intervals>"


def test_what_is_not_so_is_not_shown() -> None:
    state = {"temperature": 0.12345, "finished": False, "restarts": 0}
    assert _figures_shown(state) == ["temperature 0.123", "restarts 0"]
    assert _figures_shown({**state, "finished": True})[1] == "finished"


LATE = """
import sys
import dcqcn_gym.cli
assert not {"gymnasium", "numpy", "pydantic", "rich.console"} & set(sys.modules), "too early"
import gymnasium
assert "dcqcn/FBHadoop-v0" in gymnasium.registry
assert gymnasium.__spec__.loader is gymnasium.__loader__
import importlib
importlib.reload(gymnasium)
print(len(dcqcn_gym.env_ids()))
"""


@pytest.mark.parametrize("first", ["", "import gymnasium, dcqcn_gym; "])
def test_a_command_starts_without_what_it_does_not_need(first: str) -> None:
    code = LATE if not first else first + "print(len(dcqcn_gym.env_ids()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(dcqcn_gym.env_ids())
