"""``dcqcn-gym train`` and ``dcqcn-gym evaluate``: RL agents."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from dcqcn_gym.commands.interrupt import interruptible, resume_words

__all__ = ["evaluate", "train"]

ALGOS = "ppo, sac, td3 or dqn"


def train(
    algo: Annotated[str, typer.Option(help=f"The algorithm: {ALGOS}.")],
    out: Annotated[Path, typer.Option(help="Directory for checkpoints, logs and the policy.")],
    scenario: Annotated[
        str, typer.Option(help="Scenarios, separated by commas; each episode draws one.")
    ] = "mini-fb-hadoop",
    envs: Annotated[int, typer.Option(min=1, help="Environments side by side (threads).")] = 2,
    steps: Annotated[int, typer.Option(min=1, help="Environment steps in total.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything.")] = 1,
    episode: Annotated[int, typer.Option(min=1, help="Monitor intervals per episode.")] = 50,
    checkpoint: Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")] = 2_000,
    algo_arg: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="A hyperparameter; repeatable.")
    ] = None,
    backend: Annotated[str, typer.Option(help="native, or fake for a quick look.")] = "native",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the last checkpoint in OUT.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the training in OUT.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Train an RL agent with Stable-Baselines3 (extra: rl) and export its policy.

    Writes OUT/policy.npz at every checkpoint; it runs without torch as
    --tuner policy --tuner-arg file=OUT. Ctrl-C saves a checkpoint first.
    """
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.training.progress import open_train_viewer
    from dcqcn_gym.training.spec import TrainDir, TrainSpec
    from dcqcn_gym.training.train import train as carry_out

    changes = _pairs(algo_arg or [])
    names = [name.strip() for name in scenario.split(",") if name.strip()]
    spec = TrainSpec(algo, tuple(names), envs, steps, seed, episode, backend, changes)
    directory = TrainDir(out)
    try:
        with (
            claim(out, "train", force=force),
            open_train_viewer(f"{algo} on {scenario}", steps, quiet=quiet) as viewer,
        ):
            result = carry_out(
                spec, directory, viewer, checkpoint_every=checkpoint, resume=resume, force=force
            )
    except KeyboardInterrupt:  # the first one while it learns ends it as below
        _cut(directory.header.exists(), force)
    if result.interrupted:
        typer.echo(
            f"interrupted after {result.steps} steps; a checkpoint is saved: the same command "
            f"with {resume_words(force)} goes on",
            err=True,
        )
        raise typer.Exit(130)
    if not quiet:
        typer.echo(
            f"{result.steps} steps, {result.rate:.0f} steps/s; judge it with: "
            f"dcqcn-gym evaluate {shlex.quote(str(out))} --scenario {scenario}",
            err=True,
        )
    typer.echo(directory.policy)


def _cut(begun: bool, force: bool) -> NoReturn:
    """End the command where Ctrl-C left no time to save."""
    kept = f"the same command with {resume_words(force)} goes on from the last checkpoint, if any"
    typer.echo(f"interrupted; {kept if begun else 'nothing was written'}", err=True)
    raise typer.Exit(130)


def _pairs(texts: list[str]) -> dict[str, str]:
    from dcqcn_gym.core.errors import ConfigError, quote

    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ConfigError(f"--algo-arg {quote(text)} is not of the form key=value")
        if key in found:
            raise ConfigError(f"--algo-arg {quote(key)} is given twice; expected every one once")
        found[key] = value
    return found


def evaluate(
    policy: Annotated[
        list[str],
        typer.Argument(help="Policy files, training directories, or shipped policies by name."),
    ],
    scenario: Annotated[
        str, typer.Option(help="Scenarios, separated by commas.")
    ] = "mini-fb-hadoop,mini-llm-alltoall",
    beside: Annotated[
        str, typer.Option(help="Tuners to compare with, separated by commas.")
    ] = "default,expert,do-nothing",
    seeds: Annotated[int, typer.Option(min=1, help="Fresh traffic seeds.")] = 5,
    intervals: Annotated[int, typer.Option(min=1, help="Monitor intervals per seed.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the block of fresh seeds.")] = 1,
    backend: Annotated[str, typer.Option(help="The world to run in.")] = "native",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: one per CPU.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the logs here; a rerun continues them.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare trained policies with other tuners on fresh traffic, the same for all of them.

    A policy acts in every interval. Training never sees these seeds. Needs no torch.
    """
    from dcqcn_gym.core.errors import ConfigError
    from dcqcn_gym.runs.claim import claim
    from dcqcn_gym.runs.progress import open_progress
    from dcqcn_gym.runs.table import print_tables
    from dcqcn_gym.training import evaluation

    if markdown and as_json:
        raise ConfigError("--markdown and --json exclude each other; give one of them")
    plan = evaluation.Plan(
        policies=tuple(policy),
        scenarios=tuple(name.strip() for name in scenario.split(",") if name.strip()),
        beside=tuple(name.strip() for name in beside.split(",") if name.strip()),
        seeds=seeds,
        intervals=intervals,
        seed=seed,
        backend=backend,
    )
    kept = "nothing is kept without --out" if out is None else f"the same command continues {out}"
    held = nullcontext() if out is None else claim(out, "evaluate")
    with held, interruptible(kept), open_progress() as progress:
        rows = evaluation.evaluate(plan, out, jobs, progress)
    if as_json:
        typer.echo(evaluation.as_json(plan, rows))
    elif markdown:
        typer.echo(evaluation.as_markdown(rows), nl=False)
    else:
        print_tables(evaluation.as_tables(rows))
