"""Training: environments, model, progress, checkpoints; stops cleanly at Ctrl-C."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pickle import UnpicklingError
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import RunError, in_one_line
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.algorithms import algorithm_class, hyperparameters, make_model
from dcqcn_gym.extras.learn.export import export_policy
from dcqcn_gym.extras.learn.extra import need_sb3
from dcqcn_gym.extras.learn.progress import SilentViewer
from dcqcn_gym.extras.learn.spec import (
    Checkpoint,
    TrainDir,
    TrainSpec,
    check_training,
    training_digest,
)
from dcqcn_gym.extras.learn.state import capture, digests, read_state, restore
from dcqcn_gym.extras.learn.vector import make_vec
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.log import write_json

STORED = 2
"""Checkpoints that stay."""
WINDOW = 500
"""Steps over which the shown utility is averaged."""


@dataclass(frozen=True)
class Result:
    """How a call of :func:`train` ended; rates are environment steps per second."""

    steps: int
    interrupted: bool
    wall_s: float
    cpu_s: float
    trained_steps: int

    @property
    def rate(self) -> float:
        """Steps per second of this call."""
        return self.trained_steps / self.wall_s if self.wall_s > 0 else 0.0


def train(
    spec: TrainSpec,
    out: TrainDir,
    viewer: SilentViewer,
    *,
    checkpoint_every: int = 2_000,
    resume: bool = False,
    force: bool = False,
) -> Result:
    """Train, or go on with a training, and leave checkpoints and ``policy.npz`` in ``out``.

    Ctrl-C ends it after the current rollout with a checkpoint; ``Result.interrupted`` says so. A
    resumed training goes on as if it had never stopped. Raises ConfigError, RunError or
    MissingExtraError before anything is written.
    """
    need_sb3("`dcqcn-gym train`")
    import torch

    checkpoint = out.check(spec, resume=resume, force=force)
    spec.check()
    start = 0 if checkpoint is None else checkpoint.steps
    if start > spec.steps:
        raise RunError(f"{out.root} has {start} steps already; give --steps {start} or more")
    torch.set_num_threads(1)  # the networks are small, and one thread is the same everywhere
    env = make_vec(spec.makers())
    try:
        model = _model(spec, env, checkpoint)
        if force:
            _remove(out)
        out.root.mkdir(parents=True, exist_ok=True)
        # again at each start: a training that goes on with more steps is that of another command
        write_json(out.header, {**spec.header(), "command": spec.command()})
        model.set_logger(_logger(out, start))
        session = _Session(spec, spec.space(), out, viewer, model, checkpoint_every, start)
        viewer.begin(start, spec.notes())
        return session.run()
    finally:
        env.close()


def _remove(out: TrainDir) -> None:
    """Remove the training that is replaced, its header after its checkpoints.

    So no checkpoint is ever left without a header, or under the next one.
    """
    try:
        if out.checkpoints.exists():
            shutil.rmtree(out.checkpoints)
        for path in (out.policy, out.timing, *out.root.glob("progress-*.csv"), out.header):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"--force: {out.root} cannot be emptied: {in_one_line(error)}") from error


def _model(spec: TrainSpec, env: Any, checkpoint: Checkpoint | None) -> Any:
    if checkpoint is None:
        return make_model(spec.algo, env, hyperparameters(spec.algo, spec.changes), spec.seed)
    state = read_state(checkpoint)
    check_training(checkpoint.folder, state.get("training"), spec)
    try:
        model = algorithm_class(spec.algo).load(
            checkpoint.model, env=env, device="cpu", force_reset=False
        )
        if hasattr(model, "load_replay_buffer"):
            model.load_replay_buffer(checkpoint.replay)
        restore(model, state, str(checkpoint.folder))
    except (OSError, ValueError, KeyError, EOFError, UnpicklingError) as error:
        raise RunError(
            f"{checkpoint.folder} cannot be read: {in_one_line(error)}; remove it to go "
            "on from the checkpoint before it, or give --force to start again"
        ) from error
    return model


def _logger(out: TrainDir, start: int) -> Any:
    """Return a logger that begins a new CSV file at every start; ``--track`` reads them."""
    from stable_baselines3.common.logger import Logger, make_output_format

    return Logger(str(out.root), [make_output_format("csv", str(out.root), f"-{start:09d}")])


class _Stopped(Exception):  # noqa: N818 - not an error
    """Leaves ``learn`` between two rollouts."""


@dataclass
class _Session:
    """One call of ``learn``: counts, saves, and stops when it is asked to.

    Saving and stopping happen between two rollouts only (one step of the vector for all but PPO):
    there the model, its buffer and :mod:`dcqcn_gym.extras.learn.state` are the whole training.
    """

    spec: TrainSpec
    space: KnobSpace
    out: TrainDir
    viewer: SilentViewer
    model: Any
    every: int
    start: int
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    stop: bool = False

    def run(self) -> Result:
        """Learn until the budget is spent or Ctrl-C; save at the end."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.saved = self.start
        left = self.spec.whole_steps() - self.start
        if self.start:
            self._export()  # a kill may have come between the checkpoint and its policy
        if left > 0:
            with _ctrl_c(self), suppress(_Stopped), _diverging(self.model):
                self.model.learn(
                    left,
                    callback=_callback(self),
                    reset_num_timesteps=False,
                    log_interval=1 if self.spec.algo == "ppo" else 4,  # rollouts, or episodes
                )
        done = int(self.model.num_timesteps)
        if done != self.saved or self.out.last() is None:
            self._save(done)
        self.model.logger.close()
        result = Result(
            steps=done,
            interrupted=self.stop and done < self.spec.whole_steps(),
            wall_s=time.perf_counter() - wall,
            cpu_s=time.process_time() - cpu,
            trained_steps=done - self.start,
        )
        self._write_timing(result)
        return result

    def stepped(self, infos: Sequence[dict[str, Any]]) -> None:
        """Count a step of the vector."""
        self.recent.extend(info["utility"] for info in infos if not info["idle"])
        done = int(self.model.num_timesteps)
        utility = float(np.mean(self.recent)) if self.recent else float("nan")
        self.model.logger.record("rollout/utility", utility)
        self.viewer.step(done, utility)

    def between_rollouts(self) -> None:
        """Save if it is time; leave if Ctrl-C has asked for it."""
        if self.stop:
            raise _Stopped
        done = int(self.model.num_timesteps)
        if done - self.saved >= self.every:
            self._save(done)

    def _save(self, done: int) -> None:
        """Write a checkpoint and then the policy, each as a whole or not at all."""
        if not _finite(self.model):
            raise _diverged(self.model)
        final = self.out.folder(done)
        draft = final.with_name(final.name + ".tmp")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        self.model.save(draft / "model.zip")
        if hasattr(self.model, "save_replay_buffer"):
            self.model.save_replay_buffer(draft / "replay.pkl")
        state = {
            "training": training_digest(self.spec),
            **capture(self.model),
            "sha256": digests(Checkpoint(draft)),
        }
        write_atomically(draft / "state.json", json.dumps(state).encode())
        draft.rename(final)
        for old in sorted(self.out.checkpoints.glob("step-*[0-9]"))[:-STORED]:
            shutil.rmtree(old)
        self._export()
        self.saved = done

    def _export(self) -> None:
        """Write the policy as the model is now."""
        names = [load_scenario(name).name for name in self.spec.scenarios]
        command = self.spec.command()
        policy = export_policy(self.model, self.spec.algo, self.space, names, command)
        write_atomically(self.out.policy, policy.to_bytes())

    def _write_timing(self, result: Result) -> None:
        value = {
            "from_step": self.start,
            "to_step": result.steps,
            "wall_s": result.wall_s,
            "cpu_s": result.cpu_s,
            "steps_per_s": result.rate,
        }
        write_json(self.out.timing, value)


def _finite(model: Any) -> bool:
    import torch

    return all(bool(torch.isfinite(p).all()) for p in model.policy.parameters())


def _diverged(model: Any) -> RunError:
    return RunError(
        f"the training diverged: after {model.num_timesteps} steps its networks hold numbers that "
        "are not finite; earlier checkpoints are as they were; start again with other "
        "hyperparameters, for example a smaller learning_rate"
    )


@contextmanager
def _diverging(model: Any) -> Iterator[None]:
    """Say what is the matter where torch, or an environment, meets NaN instead of a number."""
    try:
        yield
    except ValueError as error:
        if _finite(model):
            raise
        raise _diverged(model) from error


def _callback(session: _Session) -> Any:
    """Return the session as Stable-Baselines3 calls it; made here because its base needs torch."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Callback(BaseCallback):  # type: ignore[misc, unused-ignore]
        def _on_rollout_start(self) -> None:
            session.between_rollouts()

        def _on_step(self) -> bool:
            session.stepped(self.locals["infos"])
            return True

    return Callback()


@contextmanager
def _ctrl_c(session: _Session) -> Iterator[None]:
    """Turn the first Ctrl-C into a clean stop; a second one interrupts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(*_: object) -> None:
        session.stop = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, asked)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
