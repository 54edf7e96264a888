"""What people try first: -h, ``python -m dcqcn_gym``, completion, a look at an object."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dcqcn_gym
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import install_command
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.extras.search import optuna_tuners
from dcqcn_gym.runs.progress import _figures_shown


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
    monkeypatch.setattr(optuna_tuners.TpeTuner, "modules", ("a_module_nobody_has",))
    text = CliRunner().invoke(app, ["tuners"]).output
    assert f"not available: {install_command('optuna')}; " in " ".join(text.split())
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


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ('{"url": "file:///a%20b", "dir_info": {"editable": true}}', "pip install -e '/a b[rl]'"),
        ('{"url": "file:///x.whl"}', "pip install 'dcqcn-gym[rl] @ file:///x.whl'"),
        (None, "pip install 'dcqcn-gym[rl]'"),
    ],
)
def test_extras_are_installed_from_where_the_package_came(
    said: str | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "dcqcn_gym-9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: dcqcn-gym\nVersion: 9\n")
    if said is not None:
        (info / "direct_url.json").write_text(said)
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("rl") == command
