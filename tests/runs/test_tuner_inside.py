"""Plug-ins inside built-in tuners: in a process of their own as well, the whole thing together."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, TunerError, UnknownNameError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.claim import LOCK_FILE
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting, described, plugins_of
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import BUILTIN, TUNERS
from programs import called

SOURCE = """
import os, time
from dcqcn_gym.tuners.random_search import RandomTuner

open({told!r}, "a").write(str(os.getpid()) + " ")

class Mine(RandomTuner):
    name = summary = "mine"
    asked = 0

    def ask(self):
        self.asked += 1
        if self.asked == 3:
            {ask}
        return super().ask()
"""

PLUGIN = "MINE"
"""Stands for the plug-in's name in the arguments below."""
HOLDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "safe": ("safe", {"tuner": PLUGIN}),
    "per-group": ("per-group", {"tuner": PLUGIN}),
    "switches": ("two-sides", {"switches": PLUGIN}),
    "hosts": ("two-sides", {"switches": "secn1", "hosts": PLUGIN}),
    "nested": ("safe", {"tuner": "per-group", "arguments": {"tuner": PLUGIN}}),
}


def plugin(folder: Path, ask: str = "pass") -> str:
    """Write a tuner that tells where its code is loaded; return its name."""
    path = folder / "mine.py"
    path.write_text(SOURCE.format(told=str(folder / "pids"), ask=ask))
    return f"{path}:Mine"


def with_plugin(arguments: Any, name: str) -> Any:
    if isinstance(arguments, dict):
        return {key: with_plugin(value, name) for key, value in arguments.items()}
    return name if arguments == PLUGIN else arguments


def spec(holder: str, name: str, hosting: Hosting) -> RunSpec:
    tuner, arguments = HOLDERS[holder]
    scenario = load_scenario("mini-fb-hadoop")
    return RunSpec(scenario, tuner, 1, 8, "fake", with_plugin(arguments, name), hosting)


@pytest.mark.parametrize("holder", HOLDERS)
def test_its_code_is_loaded_elsewhere_and_the_bytes_are_the_same(
    tmp_path: Path, holder: str
) -> None:
    name, told = plugin(tmp_path), tmp_path / "pids"
    apart, here = spec(holder, name, Hosting()), spec(holder, name, Hosting(apart=False))
    described(apart.tuner, apart.tuner_args, apart.hosting)
    apart.check()
    run(apart, tmp_path / "apart")
    pids = set(told.read_text().split())
    assert len(pids) >= 2  # a process each, but for one that only reads the arguments
    assert str(os.getpid()) not in pids
    run(here, tmp_path / "here")
    assert str(os.getpid()) in told.read_text().split()
    assert (tmp_path / "apart").read_bytes() == (tmp_path / "here").read_bytes()


def test_the_deadline_holds_for_it(tmp_path: Path, from_the_third_ask: None) -> None:
    hangs = spec("nested", plugin(tmp_path, "time.sleep(600)"), Hosting(0.5))
    with pytest.raises(
        TunerError, match=r"\(.*mine.py:Mine\)' gave no answer to ask\(\) within 0.5 s"
    ):
        run(hangs, tmp_path / "run.jsonl")
    assert read_run(tmp_path / "run.jsonl").intervals


@pytest.mark.parametrize("holder", ["hosts", "nested"])
def test_its_error_names_the_line(tmp_path: Path, holder: str) -> None:
    for ask, says in (("1 / 0", "ZeroDivision"), ("self.context.base.replace({'no': 1})", "'no'")):
        (tmp_path / "run.jsonl").unlink(missing_ok=True)
        with pytest.raises(TunerError, match=rf"^mine.py line 14: tuner '[a-z-]+'.*{says}") as one:
            run(spec(holder, plugin(tmp_path, ask), Hosting()), tmp_path / "run.jsonl")
        assert "\n" not in str(one.value)
        assert 'mine.py", line 14, in ask' in str(one.value.__cause__)


def words_of(folder: Path, *words: str) -> list[str]:
    base = ["tune", "--scenario", "mini-fb-hadoop", "--backend", "fake", "--intervals", "8"]
    return [
        *base, "--eval-seeds", "0", "--quiet", "--no-report", "--out", str(folder / "out"), *words,
    ]  # fmt: skip


def test_it_cannot_end_the_command(tmp_path: Path) -> None:
    name, file = plugin(tmp_path, "os._exit(0)"), tmp_path / "safe.toml"
    file.write_text("max_step = 0.5\n")
    done = called(*words_of(tmp_path, "--tuner", name, "--safe", str(file)))
    assert done.returncode == 2
    assert done.stderr == (
        f"error: tuner 'safe ({name})': its process ended in ask() with exit status 0\n"
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"run.jsonl"}
    assert not (tmp_path / "out" / "best.json").exists()
    assert not (tmp_path / "out" / LOCK_FILE).exists()
    assert read_run(tmp_path / "out").intervals


def test_the_option_sets_its_deadline(tmp_path: Path, from_the_third_ask: None) -> None:
    name = plugin(tmp_path, "time.sleep(600)")
    words = ["--tuner", "per-group", "--tuner-arg", f"tuner={name}", "--tuner-deadline", "0.5"]
    done = CliRunner().invoke(app, words_of(tmp_path, *words))
    assert isinstance(done.exception, TunerError)
    assert "gave no answer to ask() within 0.5 s and was stopped" in str(done.exception)


def test_who_has_a_process_of_its_own(tmp_path: Path) -> None:
    name = plugin(tmp_path)
    for holder, (tuner, arguments) in HOLDERS.items():
        given = with_plugin(arguments, name)
        assert plugins_of(tuner, given) == (name,), holder
        assert Hosting().hosts(tuner, given)
        assert not Hosting(apart=False).hosts(tuner, given)
        assert not Hosting().hosts(tuner)
    assert not Hosting().hosts("safe", {"tuner": "per-group", "arguments": {"tuner": "tpe"}})
    assert plugins_of("safe", {"tuner": 7, "arguments": [1]}) == ()
    assert plugins_of("safe", {"tuner": name, "max_step": 0.1, "arguments": {"x": 1}}) == (name,)
    assert plugins_of("two-sides", {"switches": "a.py:A", "hosts": "b.py:B"}) == (
        "a.py:A",
        "b.py:B",
    )
    deep: dict[str, Any] = {"tuner": name}
    for _ in range(5000):
        deep = {"tuner": "per-group", "arguments": deep}
    assert plugins_of("safe", deep) == (name,)
    assert not (tmp_path / "pids").exists()  # nobody has loaded it


def test_names_inside_are_checked_before_a_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(UnknownNameError, match="did you mean 'paraleon'"):
        Hosting().hosts("safe", {"tuner": "paralon"})
    with pytest.raises(ConfigError, match=r"nowhere\.py' cannot be read: No such file"):
        Hosting().hosts("two-sides", {"hosts": "nowhere.py:Mine"})
    spec("safe", "random", Hosting()).check()  # built in all the way down: stays here


def test_every_tuner_that_holds_others_says_so() -> None:
    """``holds`` is what the decision goes by, and ``tuner_inside`` makes nothing that it lacks."""
    holders = {"safe", "per-group", "two-sides"}
    for name in BUILTIN:
        found = TUNERS.load(name)
        assert bool(found.holds) == (name in holders)
        for setting, own in found.holds.items():
            assert {setting, own} <= set(found.Settings.model_fields)
    room = Path(__file__).resolve().parents[2] / "tuners"
    makers = {path.stem for path in room.glob("*.py") if "make_tuner" in path.read_text()}
    assert makers == {"__init__", "composite"}
