"""Training for real with a tiny budget: progress, checkpoints, Ctrl-C, resume, export."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")


from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.observation import bounds
from dcqcn_gym.extras.learn.algorithms import ALGORITHMS, algorithm_class
from dcqcn_gym.extras.learn.export import export_policy
from dcqcn_gym.extras.learn.progress import SilentViewer
from dcqcn_gym.extras.learn.spec import TrainDir, TrainSpec
from dcqcn_gym.extras.learn.train import Result, train
from dcqcn_gym.extras.learn.vector import make_vec
from dcqcn_gym.tuners.policy import load_policy
from waiting import wait_for

SCENARIOS = ("mini-fb-hadoop", "mini-llm-alltoall")
QUICK: dict[str, dict[str, object]] = {
    "ppo": {"n_steps": 32, "batch_size": 32, "n_epochs": 2},
    **{algo: {"learning_starts": 40, "batch_size": 32} for algo in ("sac", "td3", "dqn")},
}


def spec(algo: str, steps: int = 128, backend: str = "fake", seed: int = 1) -> TrainSpec:
    return TrainSpec(algo, SCENARIOS, 2, steps, seed, 10, backend, QUICK[algo])


def quick(algo: str, out: Path, **arguments: Any) -> Result:
    options = {
        k: arguments.pop(k) for k in ("resume", "force", "checkpoint_every") if k in arguments
    }
    options.setdefault("checkpoint_every", 64)
    return train(spec(algo, **arguments), TrainDir(out), SilentViewer(), **options)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_train_export_resume(tmp_path: Path, algo: str) -> None:
    """The numpy policy equals SB3's deterministic action; a longer budget goes on from it."""
    result = quick(algo, tmp_path)
    assert result.steps == 128
    assert not result.interrupted
    out = TrainDir(tmp_path)
    assert [p.name for p in sorted(out.checkpoints.iterdir())] == [
        "step-000000064",
        "step-000000128",
    ]
    last = out.last()
    assert last is not None
    assert last.replay.exists() == (algo != "ppo")
    _same_actions(algo, last.model, tmp_path)

    with pytest.raises(RunError, match="already holds a training"):
        quick(algo, tmp_path)
    with pytest.raises(RunError, match="trained with seed = 1, now it is 2"):
        quick(algo, tmp_path, seed=2, resume=True)
    before = load_policy(tmp_path)
    more = quick(algo, tmp_path, steps=256, resume=True)
    assert (more.steps, more.trained_steps) == (256, 128)
    last = out.last()
    assert last is not None
    _same_actions(algo, last.model, tmp_path)
    after = load_policy(tmp_path)
    assert (before.meta.steps, after.meta.steps) == (128, 256)
    assert not np.array_equal(before.layers[0][0], after.layers[0][0])  # it went on learning
    assert len(list(tmp_path.glob("progress-*.csv"))) == 2
    again = quick(algo, tmp_path, steps=256, resume=True)
    assert again.trained_steps == 0
    assert load_policy(tmp_path).to_bytes() == after.to_bytes()


def _same_actions(algo: str, model_file: Path, out: Path) -> None:
    model = algorithm_class(algo).load(model_file, device="cpu")
    policy = load_policy(out)
    low, high = bounds()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([3])))
    for _ in range(200):
        x = rng.uniform(low, high).astype(np.float32)
        expected, _ = model.predict(x, deterministic=True)
        if policy.actions is not None:
            expected = policy.actions[int(expected)]
        assert np.max(np.abs(policy.act(x) - expected)) <= 1e-5


def test_rollouts_of_several_steps_keep_to_the_budget(tmp_path: Path) -> None:
    changes = {**QUICK["sac"], "train_freq": 3}
    budget = TrainSpec("sac", SCENARIOS, 2, 100, 1, 10, "fake", changes)
    assert train(budget, TrainDir(tmp_path), SilentViewer()).steps == budget.whole_steps() == 96


def test_a_longer_budget_is_in_the_header_and_a_shorter_one_is_refused(tmp_path: Path) -> None:
    out = TrainDir(tmp_path)
    quick("ppo", tmp_path, steps=64)
    quick("ppo", tmp_path, steps=128, resume=True)
    assert json.loads(out.header.read_text())["command"] == spec("ppo", 128).command()
    before = out.policy.read_bytes()
    with pytest.raises(RunError, match="has 128 steps already; give --steps 128 or more"):
        quick("ppo", tmp_path, steps=64, resume=True)
    assert out.policy.read_bytes() == before


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_a_training_that_diverges_says_so_and_keeps_no_broken_checkpoint(
    tmp_path: Path, algo: str
) -> None:
    changes = {"learning_rate": 1.0} | ({"learning_starts": 50} if algo == "sac" else {})
    wild = TrainSpec(algo, SCENARIOS[:1], 2, 20_000, 1, 10, "fake", changes)
    with pytest.raises(RunError, match=r"the training diverged: after .* a smaller learning_rate"):
        train(wild, TrainDir(tmp_path), SilentViewer(), checkpoint_every=20_000)
    assert TrainDir(tmp_path).last() is None


def test_a_buffer_beyond_memory_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    quick("ppo", tmp_path, steps=64)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changes = {**QUICK["sac"], "buffer_size": 10**9}
    big = TrainSpec("sac", SCENARIOS, 2, 64, 1, 10, "fake", changes)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**36, limits[1]))
    try:
        with pytest.raises(ConfigError, match="buffer_size = 1000000000 does not fit into memory"):
            train(big, TrainDir(tmp_path), SilentViewer(), force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_model_that_a_policy_file_cannot_hold_is_refused() -> None:
    """Stable-Baselines3's own default for PPO is tanh, which would come out as another policy."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
    from torch import nn

    env = DcqcnEnv("mini-fb-hadoop", "fake")
    model = PPO("MlpPolicy", env, device="cpu")
    with pytest.raises(ConfigError, match="model has Tanh, which a policy file cannot hold"):
        export_policy(model, "ppo", env.space, ["mini-fb-hadoop"], "a loop of one's own")
    relu = {"activation_fn": nn.ReLU}
    seen = VecNormalize(DummyVecEnv([lambda: env]))
    model = PPO("MlpPolicy", seen, device="cpu", policy_kwargs=relu)
    with pytest.raises(ConfigError, match="model has VecNormalize"):
        export_policy(model, "ppo", env.space, ["mini-fb-hadoop"], "a loop of one's own")
    model = PPO("MlpPolicy", env, device="cpu", policy_kwargs=relu)
    found = export_policy(model, "ppo", env.space, ["mini-fb-hadoop"], "a loop of one's own")
    x = env.reset(seed=1)[0]
    expected = np.clip(model.predict(x, deterministic=True)[0], -1, 1)
    assert np.allclose(found.act(x), expected, atol=1e-5)


def test_same_seed_same_policy(tmp_path: Path) -> None:
    quick("ppo", tmp_path / "a")
    quick("ppo", tmp_path / "b")
    quick("ppo", tmp_path / "c", seed=2)
    a, b, c = (load_policy(tmp_path / n).to_bytes() for n in "abc")
    assert a == b
    assert a != c


def test_every_vector_interface_gives_the_same_numbers() -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([5])))
    actions = rng.uniform(-1, 1, (25, 2, 14)).astype(np.float32)
    seen: list[object] = []
    for kind in (make_vec, DummyVecEnv, partial(SubprocVecEnv, start_method="spawn")):
        env = kind(spec("ppo").makers())
        first = env.reset()
        steps = [env.step(batch) for batch in actions]
        ends = [
            (t, i, info["terminal_observation"].tobytes(), info["TimeLimit.truncated"])
            for t, step in enumerate(steps)
            for i, info in enumerate(step[3])
            if step[2][i]
        ]
        # a SubprocVecEnv leaves its rewards in double precision
        parts = [np.asarray(part, np.float32) for step in steps for part in step[:3]]
        numbers = [part.tobytes() for part in (first, *parts)]
        seen.append((numbers, ends))
        env.close()
        assert len(ends) == 4  # two episodes of 10 steps in each environment
    assert seen[0] == seen[1] == seen[2]


def test_an_error_in_an_environment_reaches_the_caller() -> None:
    env = make_vec(spec("ppo").makers())
    env.reset()
    with pytest.raises(ConfigError, match="expected a finite number"):
        env.step(np.full((2, 14), np.nan, np.float32))
    env.close()


def test_native_engine_trains(tmp_path: Path) -> None:
    pytest.importorskip("dcqcn_gym._core")
    assert quick("ppo", tmp_path, steps=64, backend="native").steps == 64
    head, *rows = (tmp_path / "progress-000000000.csv").read_text().splitlines()
    assert "rollout/utility" in head.split(",")
    assert rows


def test_ctrl_c_saves_and_resume_goes_on(tmp_path: Path) -> None:
    words = ["train", "--algo", "ppo", "--scenario", "mini-fb-hadoop", "--backend", "fake"]
    words += ["--algo-arg", "n_steps=32", "--episode", "10", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-c", "from dcqcn_gym.cli import main; main()", *words]
    process = subprocess.Popen(
        [*command, "--steps", "1000000", "--checkpoint", "64"], stderr=subprocess.PIPE, text=True
    )
    out = TrainDir(tmp_path / "run")
    wait_for(lambda: out.last() is not None or process.poll() is not None, "a checkpoint")
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "a checkpoint is saved" in errors
    assert "Traceback" not in errors
    last = out.last()
    assert last is not None
    assert str(last.steps) in errors
    steps = last.steps + 64
    done = subprocess.run(
        [*command, "--steps", str(steps)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert load_policy(out.root).meta.steps >= steps
    assert json.loads(out.timing.read_text())["from_step"] == last.steps
