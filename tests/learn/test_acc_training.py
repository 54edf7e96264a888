"""Training of ACC's networks: one command, the same bytes, resumed and not."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.version import engine_digest
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.acc import AccSpec, Episode, draw_curve, train
from dcqcn_gym.extras.learn.spec import TrainDir
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.policy import load_policy
from dcqcn_gym.tuners.policy_file import MOST_BYTES

QUICK: dict[str, Any] = {"decisions": 24, "episode": 4, "seed": 3}
MINI = ("mini-llm-alltoall",)


@pytest.mark.parametrize("central", [False, True])
def test_resumed_equals_uninterrupted(central: bool, tmp_path: Path) -> None:
    spec = AccSpec(MINI, central=central, **QUICK)
    whole = TrainDir(tmp_path / "whole")
    train(spec, whole, every=1)

    part = TrainDir(tmp_path / "part")

    def stop(done: Episode) -> None:
        if done.decisions == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(spec, part, every=1, watch=stop)
    assert load_policy(part.root).meta.steps == 8
    train(spec, part, every=1, resume=True)
    for name in ("policy.npz", "curve.csv", "train.json"):
        assert (part.root / name).read_bytes() == (whole.root / name).read_bytes(), name
    assert load_policy(whole.root).meta.algo == ("acc-central" if central else "acc")


def test_the_curve_has_a_line_per_episode_and_exploration_falls(tmp_path: Path) -> None:
    out = TrainDir(tmp_path / "out")
    train(AccSpec(MINI, **QUICK), out)
    lines = list(csv.DictReader((out.root / "curve.csv").open()))
    assert [int(line["decisions"]) for line in lines] == [8, 16, 24]
    assert float(lines[0]["epsilon"]) > float(lines[1]["epsilon"]) >= float(lines[2]["epsilon"])
    assert float(lines[2]["epsilon"]) == 0.05
    assert all(0 < float(line["reward"]) < 1 for line in lines)


def test_the_command_trains_and_its_network_runs(tmp_path: Path) -> None:
    out = tmp_path / "net"
    words = ["train", "--tuner", "acc", "--scenario", MINI[0], "--steps", "8", "--episode", "4"]
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--quiet"])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(out / "policy.npz")
    command = load_policy(out).meta.command
    assert command == (
        "dcqcn-gym train --tuner acc --scenario mini-llm-alltoall --steps 8 --episode 4 --out DIR"
    )
    scenario = load_scenario(MINI[0])
    run(RunSpec(scenario, "acc", 1, 2, tuner_args={"file": str(out)}), tmp_path / "log")
    assert len(read_run(tmp_path / "log").intervals[1]["setting"]) == 25


def test_what_cannot_be_trained_or_resumed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"networks with \[3, 5\] sides"):
        train(AccSpec(("mini-fb-hadoop", "fat-tree-1024"), central=True), TrainDir(tmp_path / "a"))
    with pytest.raises(ConfigError, match="at least one"):
        train(AccSpec(()), TrainDir(tmp_path / "a"))
    with pytest.raises(ConfigError, match="it is another network"):
        train(AccSpec(MINI, backend="fake"), TrainDir(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
    spec, out = AccSpec(MINI, **QUICK), TrainDir(tmp_path / "b")
    train(spec, out)
    with pytest.raises(RunError, match="already holds a training"):
        train(spec, out)
    with pytest.raises(RunError, match="was trained with seed = 3, now it is 4"):
        train(AccSpec(MINI, **{**QUICK, "seed": 4}), out, resume=True)
    (out.root / "checkpoint.npz").write_bytes(b"nonsense")
    with pytest.raises(RunError, match="is damaged"):
        train(spec, out, resume=True)
    out.header.write_text(out.header.read_text().replace(engine_digest()[:16], "0" * 16))
    with pytest.raises(RunError, match=r"by other code: engine 0{16} instead of"):
        train(spec, out, resume=True)


SAME = ("policy.npz", "curve.csv", "train.json")
OTHER = AccSpec(MINI, **{**QUICK, "seed": 4})


def _cut_before_the_first_checkpoint(spec: AccSpec, out: TrainDir, **options: bool) -> None:
    def stop(_: Episode) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(spec, out, watch=stop, **options)


def test_a_replaced_training_leaves_nothing_to_go_on_from(tmp_path: Path) -> None:
    out, whole = TrainDir(tmp_path / "out"), TrainDir(tmp_path / "whole")
    train(AccSpec(MINI, **QUICK), out)
    _cut_before_the_first_checkpoint(OTHER, out, force=True)
    assert [path.name for path in out.root.iterdir()] == ["train.json"]
    train(OTHER, out, resume=True)
    train(OTHER, whole)
    for name in SAME:
        assert (out.root / name).read_bytes() == (whole.root / name).read_bytes(), name


@pytest.mark.parametrize("header", [True, False])
def test_a_checkpoint_of_another_training_is_refused(header: bool, tmp_path: Path) -> None:
    out, there = TrainDir(tmp_path / "out"), TrainDir(tmp_path / "there")
    train(AccSpec(MINI, **QUICK), there)
    _cut_before_the_first_checkpoint(OTHER, out)
    shutil.copy(there.root / "checkpoint.npz", out.root)
    if not header:
        out.header.unlink()
    with pytest.raises(RunError, match=r"checkpoint.npz .* another training .* give --force"):
        train(OTHER, out, resume=True)


def test_a_kill_between_checkpoint_and_network_is_repaired(tmp_path: Path) -> None:
    spec = AccSpec(MINI, **QUICK)
    whole, gone, stale = (TrainDir(tmp_path / name) for name in ("whole", "gone", "stale"))
    train(spec, whole)
    for out in (gone, stale):
        _cut_before_the_first_checkpoint(spec, out)
        shutil.copy(whole.root / "checkpoint.npz", out.root)
    stale.policy.write_bytes(b"that of an earlier checkpoint")
    for out in (gone, stale):
        train(spec, out, resume=True)
        for name in SAME:
            assert (out.root / name).read_bytes() == (whole.root / name).read_bytes(), name


@pytest.mark.slow
def test_three_tiers_for_one_agent_are_resumed(tmp_path: Path) -> None:
    """Its checkpoint is larger than a policy file of a stranger may be."""
    spec = AccSpec(("fat-tree-1024",), central=True, decisions=1, episode=1)
    out = TrainDir(tmp_path)
    network = train(spec, out).to_bytes()
    assert (out.root / "checkpoint.npz").stat().st_size > MOST_BYTES
    assert train(spec, out, resume=True).to_bytes() == network == out.policy.read_bytes()
    with pytest.raises(ConfigError, match=f"expected at most {MOST_BYTES}"):
        load_policy(out.root / "checkpoint.npz")


def test_the_curve_is_drawn(tmp_path: Path) -> None:
    lines = ["decisions,scenario,epsilon,reward,utility"]
    lines += [f"{40 * i},{'ab'[i % 2]},{1 / i},0.5,0.{i}" for i in range(1, 9)]
    (tmp_path / "curve.csv").write_text("\n".join(lines) + "\n")
    draw_curve(tmp_path / "curve.csv", tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().count('class="line"') == 8  # 3 keys, 5 lines
