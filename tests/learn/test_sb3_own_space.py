"""A policy that was trained on a scenario with its own knobs, ranges or scheme runs there."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.progress import SilentViewer
from dcqcn_gym.extras.learn.spec import TrainDir, TrainSpec
from dcqcn_gym.extras.learn.train import train
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.policy import load_policy

MINI = Path("configs/scenarios/mini-fb-hadoop.toml")
CHANGES = {"ppo": {"n_steps": 16, "batch_size": 16}, "dqn": {"learning_starts": 20}}


@pytest.mark.parametrize(
    ("line", "knobs", "algo"),
    [
        ('knobs = ["kmin", "kmax"]', 2, "ppo"),
        ('knobs = ["kmin", "kmax"]', 2, "dqn"),
        ("knobs = { kmin = [20, 50] }", 14, "ppo"),
        ("knobs = { pfc_alpha = [0.0625, 0.5] }", 15, "dqn"),
        ('scheme = "timely"', None, "ppo"),
    ],
)
def test_a_policy_runs_on_its_own_scenario(
    tmp_path: Path, line: str, knobs: int | None, algo: str
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(f"{line}\n{MINI.read_text()}")
    out = TrainDir(tmp_path / "out")
    spec = TrainSpec(algo, (str(mine),), 2, 32, 1, 8, "fake", CHANGES[algo])
    train(spec, out, SilentViewer())
    policy, space = load_policy(out.root), spec.space()
    assert policy.meta.knobs == space.knobs
    assert knobs in (None, len(space.knobs))
    mine_run, usual_run = (
        RunSpec(load_scenario(name), "policy", 1, 3, "fake", {"file": str(out.root)})
        for name in (str(mine), "mini-fb-hadoop")
    )
    run(mine_run, tmp_path / "log")
    settings = [line["setting"] for line in read_run(tmp_path / "log").intervals]
    with pytest.raises(ConfigError, match="was trained for"):  # there its actions mean other values
        usual_run.check()
    if "[20, 50]" in line:
        assert all(20 <= setting["kmin"] <= 50 for setting in settings)
