"""What the commands say where torch is missing, and bad input that needs no torch to be seen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.extras.learn.algorithms import ALGORITHMS, hyperparameters
from dcqcn_gym.extras.learn.spec import TrainDir, TrainSpec, check_training, training_digest

FAKE = TrainSpec("ppo", ("mini-fb-hadoop",), backend="fake")


def cli(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "from dcqcn_gym.runs.command_line import run_command\n"
        "from dcqcn_gym.cli import app; run_command(app, sys.argv[1:])"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )


def test_training_names_the_command_that_installs_torch(tmp_path: Path) -> None:
    done = cli("train", "--algo", "ppo", "--out", "x", "--backend", "fake", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "[rl]'" in done.stderr
    assert not (tmp_path / "x").exists()


def test_evaluate_needs_no_torch(tmp_path: Path) -> None:
    done = cli(
        "evaluate", "ppo-mini", "--backend", "fake", "--seeds", "2", "--intervals", "3",
        "--scenario", "mini-fb-hadoop", "--jobs", "1", "--json", "--out", "logs", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["name"] for row in rows] == ["ppo-mini", "default", "expert", "do-nothing"]
    assert {row["utility"]["n"] for row in rows} == {2}
    assert len(list((tmp_path / "logs" / "mini-fb-hadoop").glob("*/*.jsonl"))) == 8
    bad = cli("evaluate", "ppo-minni", "--backend", "fake", cwd=tmp_path)
    assert bad.returncode == 2
    assert "did you mean 'ppo-mini'" in bad.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "ppo-mini", "--json", "--markdown"], "exclude each other"),
    ],
)
def test_words_that_ask_for_nothing_or_too_much_are_refused(
    words: list[str], message: str, tmp_path: Path
) -> None:
    done = cli(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_hyperparameters_are_checked() -> None:
    assert hyperparameters("ppo") == dict(ALGORITHMS["ppo"])
    assert hyperparameters("ppo", {"gamma": "0.5", "n_steps": "16"})["gamma"] == 0.5
    with pytest.raises(ConfigError, match="unknown algorithm 'pp'"):
        hyperparameters("pp")
    with pytest.raises(ConfigError, match="no argument 'gama'; did you mean 'gamma'"):
        hyperparameters("sac", {"gama": "1"})
    with pytest.raises(ConfigError, match=r"n_steps = '1\.5': expected a whole number"):
        hyperparameters("ppo", {"n_steps": "1.5"})


@pytest.mark.parametrize(
    ("algo", "name", "value", "expected"),
    [
        ("ppo", "n_steps", "0", "1 to 1e+09"),
        ("ppo", "batch_size", "1", "2 to 1e+09"),
        ("ppo", "n_epochs", "0", "1 to 1e+09"),
        ("ppo", "learning_rate", "nan", "1e-12 to 1"),
        ("ppo", "ent_coef", "inf", "0 to 1e+06"),
        ("ppo", "gamma", "7", "0 to 1"),
        ("sac", "buffer_size", "-3", "1 to 1e+09"),
        ("sac", "train_freq", "0", "1 to 1e+09"),
        ("sac", "gradient_steps", "-2", "-1 to 1e+09"),
        ("sac", "tau", "0", "1e-12 to 1"),
        ("td3", "noise", "-1", "0 to 1e+06"),
        ("td3", "policy_delay", "0", "1 to 1e+09"),
        ("dqn", "exploration_final_eps", "5", "0 to 1"),
    ],
)
def test_a_hyperparameter_that_no_training_works_with_is_refused(
    algo: str, name: str, value: str, expected: str
) -> None:
    message = re.escape(f"algorithm '{algo}': {name} = ") + ".*" + re.escape(f"expected {expected}")
    with pytest.raises(ConfigError, match=message):
        TrainSpec(algo, ("mini-fb-hadoop",), backend="fake", changes={name: value}).check()


def test_every_default_is_in_its_range() -> None:
    assert ALGORITHMS
    for algo, values in ALGORITHMS.items():
        assert hyperparameters(algo, values) == dict(values)


def test_a_hyperparameter_given_twice_is_refused(tmp_path: Path) -> None:
    words = ["--algo-arg", "gamma=0.1", "--algo-arg", "gamma=0.2", "--out", "x"]
    done = cli("train", "--algo", "ppo", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "--algo-arg 'gamma' is given twice" in done.stderr


@pytest.mark.parametrize(
    ("begun", "said"),
    [(False, "interrupted; nothing was written"), (True, "the same command goes on from the last")],
)
def test_ctrl_c_before_the_first_rollout_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool, said: str
) -> None:
    def cut(spec: TrainSpec, out: TrainDir, *_: object, **__: object) -> None:
        if begun:
            out.header.write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr("dcqcn_gym.extras.learn.train.train", cut)
    words = ["train", "--algo", "ppo", "--out", str(tmp_path / "x"), "--quiet"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 130
    assert said in done.stderr
    assert (tmp_path / "x").exists() == begun


def test_bad_arguments_are_named_before_anything_is_written() -> None:
    with pytest.raises(ConfigError, match="steps = 0: expected at least 1"):
        TrainSpec("ppo", ("mini-fb-hadoop",), steps=0).check()
    with pytest.raises(ConfigError, match="mini-fb-hadop"):
        TrainSpec("ppo", ("mini-fb-hadop",)).check()
    with pytest.raises(ConfigError, match="at least one scenario"):
        TrainSpec("ppo", ()).check()
    with pytest.raises(ConfigError, match="n_steps = 1: ppo learns from rollouts of at least 2"):
        TrainSpec("ppo", ("mini-fb-hadoop",), 1, backend="fake", changes={"n_steps": 1}).check()


def test_the_command_repeats_the_training() -> None:
    spec = TrainSpec("td3", ("a", "b"), 3, 500, 2, 20, "fake", {"gamma": "0.1"})
    assert spec.command() == (
        "dcqcn-gym train --algo td3 --scenario a,b --envs 3 --steps 500 --seed 2 --episode 20 "
        "--backend fake --algo-arg gamma=0.1 --out DIR"
    )


def test_a_directory_with_a_training_is_not_replaced_by_accident(tmp_path: Path) -> None:
    out = TrainDir(tmp_path)
    assert out.check(FAKE, resume=False, force=False) is None
    out.header.write_text(json.dumps(FAKE.header()))
    for steps in (1000, 2000):
        out.folder(steps).mkdir(parents=True)
    out.folder(3000).with_name("step-000003000.tmp").mkdir()  # died while it was written
    with pytest.raises(RunError, match="already holds a training"):
        out.check(FAKE, resume=False, force=False)
    with pytest.raises(RunError, match="give one"):
        out.check(FAKE, resume=True, force=True)
    found = out.check(FAKE, resume=True, force=False)
    assert found is not None
    assert found.steps == 2000
    other = TrainSpec("sac", ("mini-fb-hadoop",), backend="fake")
    with pytest.raises(RunError, match='trained with algo = "ppo", now it is "sac"'):
        out.check(other, resume=True, force=False)
    out.header.unlink()
    with pytest.raises(RunError, match=r"holds checkpoints without train\.json"):
        out.check(FAKE, resume=True, force=False)
    assert out.check(FAKE, resume=False, force=True) is None


def test_a_checkpoint_names_its_training(tmp_path: Path) -> None:
    more = replace(FAKE, steps=20_000)  # a training may go on with more steps
    check_training(tmp_path, training_digest(FAKE), more)
    for other in (replace(FAKE, seed=2), replace(FAKE, scenarios=("mini-llm-alltoall",))):
        for recorded in (training_digest(other), None):
            with pytest.raises(RunError, match="was left by another training than this one"):
                check_training(tmp_path, recorded, FAKE)


@pytest.mark.parametrize(
    ("algo", "envs", "steps", "taken"),
    [
        ("ppo", 2, 1000, 896),  # rollouts of 2 x 64
        ("ppo", 2, 1024, 1024),
        ("sac", 2, 101, 100),
        ("dqn", 1, 101, 101),
        ("sac train_freq=3", 2, 101, 96),  # rollouts of 2 x 3
    ],
)
def test_a_training_never_takes_more_steps_than_it_was_given(
    algo: str, envs: int, steps: int, taken: int
) -> None:
    algo, _, change = algo.partition(" ")
    changes = dict([change.split("=")]) if change else {}
    spec = TrainSpec(algo, ("mini-fb-hadoop",), envs, steps, backend="fake", changes=changes)
    assert spec.whole_steps() == taken
    assert bool(spec.notes()) == (taken != steps)


def test_a_budget_below_one_rollout_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"steps = 100: ppo learns from rollouts of 128 steps"):
        TrainSpec("ppo", ("mini-fb-hadoop",), 2, 100, backend="fake").check()
