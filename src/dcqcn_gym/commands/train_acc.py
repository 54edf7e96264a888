"""``dcqcn-gym train-acc``: train the networks of ACC."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.commands.interrupt import interruptible, resume_words

__all__ = ["train_acc"]


def train_acc(
    out: Annotated[Path, typer.Option(help="Directory for checkpoint, curve and network.")],
    scenario: Annotated[
        str, typer.Option(help="Scenarios, separated by commas; each episode draws one.")
    ] = "mini-fb-hadoop,mini-llm-alltoall",
    central: Annotated[
        bool, typer.Option("--central", help="C-ACC: one agent for the whole fabric.")
    ] = False,
    decisions: Annotated[int, typer.Option(min=1, help="Decisions of a network in total.")] = 4000,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything.")] = 1,
    episode: Annotated[int, typer.Option(min=1, help="Monitor intervals per episode.")] = 20,
    decision_us: Annotated[float, typer.Option(help="Microseconds per decision.")] = 500.0,
    weight: Annotated[
        float, typer.Option(min=0, max=1, help="Weight of throughput in the agents' reward.")
    ] = 0.5,
    updates: Annotated[int, typer.Option(min=0, help="Updates after each decision.")] = 2,
    backend: Annotated[str, typer.Option(help="The world to train in.")] = "native",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the training in OUT.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the path of the network alone.")
    ] = False,
) -> None:
    """Train the network of ACC's agents by double DQN, without torch.

    Writes OUT/policy.npz, which runs as --tuner acc --tuner-arg file=OUT (with --central:
    acc-central), and OUT/curve.csv, the learning curve, which is drawn too if the extra
    report is installed.
    """
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.training.acc import AccSpec, Episode, train
    from dcqcn_gym.training.spec import TrainDir

    names = tuple(name.strip() for name in scenario.split(",") if name.strip())
    spec = AccSpec(names, central, decisions, seed, episode, decision_us, weight, updates, backend)
    directory = TrainDir(out)

    def show(done: Episode) -> None:
        if not quiet:
            typer.echo(
                f"{done.decisions:>7} decisions  epsilon {done.epsilon:.2f}  reward "
                f"{done.reward:.4f}  utility {done.utility:.4f}  {done.scenario}",
                err=True,
            )

    advice = f"the same command with {resume_words(force)} continues {out}"
    with claim(out, "train", force=force), interruptible(advice):
        train(spec, directory, resume=resume, force=force, watch=show)
    if importlib.util.find_spec("matplotlib") is not None:
        from dcqcn_gym.training.acc_curve import draw_curve

        draw_curve(out / "curve.csv", out / "curve.png")
    if not quiet:
        tuner = "acc-central" if central else "acc"
        arguments = f"--tuner {tuner} --tuner-arg file={shlex.quote(str(out))}"
        typer.echo(f"run it with: dcqcn-gym tune --scenario {names[0]} {arguments}", err=True)
    typer.echo(directory.policy)
