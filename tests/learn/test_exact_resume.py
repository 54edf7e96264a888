"""A training that was cut and resumed leaves the bytes of one that was not."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import signal
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.extras.learn.progress import SilentViewer
from dcqcn_gym.extras.learn.spec import TrainDir, TrainSpec
from dcqcn_gym.extras.learn.train import Result, train

STEPS = 224
"""Episodes of 10 steps, rollouts of 32 (PPO) or 2: checkpoints fall into running episodes."""
CHANGES: dict[str, dict[str, object]] = {
    "ppo": {"n_steps": 16, "batch_size": 16, "n_epochs": 2},
    **{algo: {"learning_starts": 40, "batch_size": 32} for algo in ("sac", "td3", "dqn")},
}


class Cut(SilentViewer):
    """Ends a training in the middle of a rollout: dies, or presses Ctrl-C."""

    def __init__(self, at: int, ctrl_c: bool) -> None:
        self.at, self.ctrl_c = at, ctrl_c

    def step(self, done: int, utility: float) -> None:
        if done == self.at:
            if not self.ctrl_c:
                raise MemoryError("died")
            signal.raise_signal(signal.SIGINT)


def spec(algo: str, backend: str = "fake", steps: int = STEPS) -> TrainSpec:
    scenarios = ("mini-fb-hadoop", "mini-llm-alltoall")
    return TrainSpec(algo, scenarios, 2, steps, 3, 10, backend, CHANGES[algo])


def go(
    out: Path, what: TrainSpec, viewer: SilentViewer | None = None, resume: bool = False
) -> Result:
    viewer = viewer or SilentViewer()
    return train(what, TrainDir(out), viewer, checkpoint_every=64, resume=resume)


def last(out: Path) -> Path:
    found = TrainDir(out).last()
    assert found is not None
    return found.folder


def state_of(checkpoint: Path) -> dict[str, Any]:
    """Return what a checkpoint keeps, without the digests of its two archives.

    What is in them is compared below: a zip holds the time of day too, and a pickle which of its
    objects are one.
    """
    state: dict[str, Any] = json.loads((checkpoint / "state.json").read_text())
    assert state.pop("sha256")["model.zip"]
    return state


def assert_same(a: Path, b: Path) -> None:
    """Compare policy, weights, optimisers, replay buffer, random streams and episodes by bits."""
    assert (a / "policy.npz").read_bytes() == (b / "policy.npz").read_bytes()
    one, two = last(a), last(b)
    assert one.name == two.name
    assert state_of(one) == state_of(two)
    first, second = weights(one), weights(two)
    assert first.keys() == second.keys()
    assert len(first) > 10
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    if (one / "replay.pkl").exists():
        assert buffer(one) == buffer(two)


def buffer(folder: Path) -> dict[str, object]:
    """Return the arrays of a replay buffer as bytes, and its place."""
    with (folder / "replay.pkl").open("rb") as file:
        values = vars(pickle.load(file))
    arrays = {k: v.tobytes() for k, v in values.items() if isinstance(v, np.ndarray)}
    assert len(arrays) >= 5
    return {**arrays, "place": (values["pos"], values["full"])}


def weights(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with zipfile.ZipFile(folder / "model.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".pth"):
                loaded = torch.load(io.BytesIO(archive.read(name)), weights_only=True)
                found |= {f"{name}:{key}": value for key, value in tensors(loaded)}
    return found


def tensors(value: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        return [(key, value)]
    items = value.items() if isinstance(value, dict) else ()
    return [pair for name, part in items for pair in tensors(part, f"{key}.{name}")]


@pytest.mark.parametrize(
    ("algo", "backend"),
    [("ppo", "native"), ("sac", "native"), ("td3", "fake"), ("dqn", "fake")],
)
def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path, algo: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("dcqcn_gym._core")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    what = spec(algo, backend)
    go(whole, what)
    for at in (90, 150):  # 64 or 128 are saved
        with pytest.raises(MemoryError):
            go(cut, what, Cut(at, ctrl_c=False), resume=cut.exists())
    state = json.loads((last(cut) / "state.json").read_text())
    assert any(episode["actions"] for episode in state["episodes"])  # cut inside of an episode
    go(cut, what, resume=True)
    assert_same(whole, cut)


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_ctrl_c_and_resumed_equals_uninterrupted(tmp_path: Path, algo: str) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    go(whole, spec(algo))
    stopped = go(cut, spec(algo), Cut(70, ctrl_c=True))
    assert stopped.interrupted
    assert stopped.steps == (96 if algo == "ppo" else 70)  # the end of the rollout
    go(cut, spec(algo), resume=True)
    assert_same(whole, cut)


@pytest.mark.parametrize("algo", ["ppo", "td3"])
def test_a_larger_budget_equals_one_training(tmp_path: Path, algo: str) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    go(whole, spec(algo))
    go(parts, spec(algo, steps=96))
    go(parts, spec(algo), resume=True)
    assert_same(whole, parts)


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    go(there, spec("ppo", steps=128))
    other = replace(spec("ppo", steps=128), seed=4)
    with pytest.raises(MemoryError):
        go(here, other, Cut(20, ctrl_c=False))
    shutil.copytree(there / "checkpoints", here / "checkpoints")
    with pytest.raises(RunError, match=r"step-000000128 was left by another training"):
        go(here, other, resume=True)


def test_a_replaced_training_leaves_nothing_to_go_on_from(tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    go(out, spec("ppo", steps=128))
    other = replace(spec("ppo", steps=128), seed=4)
    with pytest.raises(MemoryError):
        train(other, TrainDir(out), Cut(20, ctrl_c=False), checkpoint_every=64, force=True)
    assert not (out / "policy.npz").exists()
    go(out, other, resume=True)
    go(whole, other)
    assert_same(whole, out)


@pytest.mark.parametrize("how", ["gone", "stale"])
def test_a_kill_between_checkpoint_and_policy_is_repaired(tmp_path: Path, how: str) -> None:
    go(tmp_path, spec("ppo", steps=128))
    policy = tmp_path / "policy.npz"
    whole = policy.read_bytes()
    policy.unlink()
    if how == "stale":
        policy.write_bytes(b"that of an earlier checkpoint")
    assert go(tmp_path, spec("ppo", steps=128), resume=True).trained_steps == 0
    assert policy.read_bytes() == whole


def test_a_network_that_comes_out_differently_is_refused(tmp_path: Path) -> None:
    go(tmp_path, spec("ppo", steps=96))
    path = last(tmp_path) / "state.json"
    state = json.loads(path.read_text())
    state["episodes"][1]["seed"] += 1
    path.write_text(json.dumps(state))
    with pytest.raises(RunError, match=r"environment 1 of .* does not come out as it was recorded"):
        go(tmp_path, spec("ppo"), resume=True)


@pytest.mark.parametrize("name", ["model.zip", "replay.pkl", "state.json"])
@pytest.mark.parametrize("how", ["gone", "empty", "cut"])
def test_a_damaged_checkpoint_is_named_and_can_be_removed(
    tmp_path: Path, name: str, how: str
) -> None:
    go(tmp_path, spec("dqn", steps=128))
    broken = last(tmp_path)
    data = (broken / name).read_bytes()
    (broken / name).write_bytes(b"" if how == "empty" else data[: len(data) // 2])
    if how == "gone":
        (broken / name).unlink()
    with pytest.raises(RunError, match=r"step-000000128 cannot be read: .*remove it") as caught:
        go(tmp_path, spec("dqn", steps=128), resume=True)
    assert "\n" not in str(caught.value)
    shutil.rmtree(broken)
    assert go(tmp_path, spec("dqn", steps=128), resume=True).trained_steps == 64
