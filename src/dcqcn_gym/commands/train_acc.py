"""``dcqcn-gym train --tuner acc``: the networks of ACC."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dcqcn_gym.runs.interrupt import interruptible, same_command

if TYPE_CHECKING:
    from dcqcn_gym.training.acc import AccSpec, Episode


def train_acc(spec: AccSpec, out: Path, *, force: bool, quiet: bool) -> None:
    """Train the network of ACC's agents by double DQN, without torch.

    Writes OUT/policy.npz and OUT/curve.csv, the learning curve, which is drawn too if the extra
    report is installed.
    """
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.training.acc import train
    from dcqcn_gym.training.acc_curve import draw_curve
    from dcqcn_gym.training.spec import TrainDir

    directory = TrainDir(out)

    def show(done: Episode) -> None:
        if not quiet:
            typer.echo(
                f"{done.decisions:>7} decisions  epsilon {done.epsilon:.2f}  reward "
                f"{done.reward:.4f}  utility {done.utility:.4f}  {done.scenario}",
                err=True,
            )

    advice = f"{same_command(force)} continues {out}"
    with claim(out, "train", force=force), interruptible(advice):
        resume = directory.header.exists() and not force
        train(spec, directory, resume=resume, force=force, watch=show)
    draw_curve(out / "curve.csv", out / "curve.svg")
    if not quiet:
        tuner = "acc-central" if spec.central else "acc"
        arguments = f"--tuner {tuner} --tuner-arg file={shlex.quote(str(out))}"
        typer.echo(
            f"run it with: dcqcn-gym tune --scenario {spec.scenarios[0]} {arguments}", err=True
        )
    typer.echo(directory.policy)
