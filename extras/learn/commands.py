"""``dcqcn-gym train`` and ``dcqcn-gym evaluate``: what is trained, and how it does."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError, quote
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.interrupt import interruptible, same_command
from dcqcn_gym.runs.options import (
    SCENARIO,
    SEEDS,
    BackendOption,
    ForceOption,
    JobsOption,
    OptionalOut,
    OutOption,
    QuietOption,
    ScenariosOption,
    SeedOption,
    SeedsOption,
    names_in,
    pairs_in,
)
from dcqcn_gym.runs.tracking import TrackOption, check_trackers, track

if TYPE_CHECKING:
    from dcqcn_gym.extras.learn.acc import AccSpec, Episode
    from dcqcn_gym.extras.learn.spec import TrainSpec
    from dcqcn_gym.runs.log import Line
    from dcqcn_gym.runs.spec import RunSpec


ALGOS = "ppo, sac, td3 or dqn"
TRAINED = ("policy", "acc", "acc-central", "pretrained")


def train(
    out: OutOption,
    tuner: Annotated[
        str, typer.Option(help="What is trained: policy, acc, acc-central or pretrained.")
    ] = "policy",
    algo: Annotated[
        str | None,
        typer.Option(help=f"Of a policy: {ALGOS}; of pretrained: the tuner that searches."),
    ] = None,
    scenario: ScenariosOption = SCENARIO,
    envs: Annotated[int, typer.Option(min=1, help="Environments side by side (policy).")] = 2,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps (policy, 10000), decisions (acc, 4000), intervals (pretrained, 280)."
        ),
    ] = None,
    seed: SeedOption = 1,
    episode: Annotated[
        int | None, typer.Option(min=1, help="Monitor intervals per episode; acc: 20, else 50.")
    ] = None,
    checkpoint: Annotated[
        int, typer.Option(min=1, help="Steps between checkpoints (policy).")
    ] = 2_000,
    algo_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K=V",
            help="A hyperparameter; of acc: weight, decision_us, updates; repeatable.",
        ),
    ] = None,
    backend: BackendOption = "native",
    force: ForceOption = False,
    quiet: QuietOption = False,
    trackers: TrackOption = None,
) -> None:
    """Train a tuner: an RL policy, the networks of ACC, or a setting that is searched beforehand.

    The same command continues what is unfinished in OUT; each episode draws one of the scenarios.
    A policy needs Stable-Baselines3 (extra: rl) and runs without torch as --tuner policy
    --tuner-arg file=OUT, networks of ACC as --tuner acc --tuner-arg file=OUT. For a pretrained
    setting OUT is a file, which pretrained-* tuners take as --tuner-arg file=OUT.

    Example: `dcqcn-gym train --algo ppo --scenario mini-fb-hadoop --out policies/ppo`
    """
    check_trackers(trackers)
    if trackers and tuner == "pretrained":
        raise ConfigError("--track: a pretrained setting is one file and leaves no log")
    names = names_in(scenario, "--scenario")
    values = pairs_in(algo_arg or [], "--algo-arg")
    if tuner == "policy":
        if algo is None:
            raise ConfigError(f"a policy needs --algo: {ALGOS}")
        from dcqcn_gym.extras.learn.spec import TrainSpec

        policy = TrainSpec(algo, names, envs, steps or 10_000, seed, episode or 50, backend, values)
        _train_policy(policy, out, checkpoint, force, quiet, trackers)
    elif tuner in ("acc", "acc-central"):
        from dcqcn_gym.extras.learn.acc import AccSpec

        own = _acc_values(values)
        central, length = tuner == "acc-central", episode or 20
        acc = AccSpec(names, central, steps or 4000, seed, length, backend=backend, **own)
        train_acc(acc, out, force=force, quiet=quiet)
        track(out, trackers)
    elif tuner == "pretrained":
        if len(names) != 1 or values:
            raise ConfigError("pretrained takes one scenario and no --algo-arg")
        pretrain(out, names[0], algo or "paraleon", seed, steps or 280, backend, force)
    else:
        raise UnknownNameError("tuner to train", tuner, TRAINED)


def _acc_values(given: dict[str, str]) -> dict[str, Any]:
    """Return the values of ACC's training that were given."""
    kinds = {"weight": float, "decision_us": float, "updates": int}
    found: dict[str, Any] = {}
    for key, text in given.items():
        if key not in kinds:
            raise UnknownNameError("--algo-arg of acc", key, kinds)
        try:
            found[key] = kinds[key](text)
        except ValueError:
            raise ConfigError(f"--algo-arg {key} = {quote(text)}: expected a number") from None
    if not 0 <= found.get("weight", 0.5) <= 1 or found.get("updates", 2) < 0:
        raise ConfigError("--algo-arg of acc: expected a weight of 0 to 1, and updates from 0 on")
    return found


def _train_policy(
    spec: TrainSpec,
    out: Path,
    checkpoint: int,
    force: bool,
    quiet: bool,
    trackers: list[str] | None,
) -> None:
    from dcqcn_gym.extras.learn.progress import open_train_viewer
    from dcqcn_gym.extras.learn.spec import TrainDir
    from dcqcn_gym.extras.learn.train import train as carry_out

    directory = TrainDir(out)
    scenario = ",".join(spec.scenarios)
    try:
        with (
            claim(out, "train", force=force),
            open_train_viewer(f"{spec.algo} on {scenario}", spec.steps, quiet=quiet) as viewer,
        ):
            resume = directory.header.exists() and not force
            result = carry_out(
                spec, directory, viewer, checkpoint_every=checkpoint, resume=resume, force=force
            )
    except KeyboardInterrupt:  # the first one while it learns ends it as below
        _cut(directory.header.exists(), force)
    if result.interrupted:
        typer.echo(
            f"interrupted after {result.steps} steps; a checkpoint is saved: "
            f"{same_command(force)} goes on",
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
    track(out, trackers)
    if spec.backend == "native":
        _refuse_a_constant(directory.policy)


def _refuse_a_constant(policy: Path) -> None:
    """Raise RunError if a policy is no better than a constant on the suite's held-out scenarios."""
    from dcqcn_gym.extras.learn.constant import against_constant, held_out, refusal

    try:
        gain, _ = against_constant(str(policy), held_out())
    except ConfigError as error:  # other knobs than theirs
        typer.echo(f"not held against a constant: {error}", err=True)
        return
    if why := refusal(str(policy), gain):
        raise RunError(why)


def _cut(begun: bool, force: bool) -> NoReturn:
    """End the command where Ctrl-C left no time to save."""
    advice = f"{same_command(force)} goes on from the last checkpoint, if any"
    typer.echo(f"interrupted; {advice if begun else 'nothing was written'}", err=True)
    raise typer.Exit(130)


def evaluate(
    policy: Annotated[
        list[str],
        typer.Argument(help="Policy files, training directories, or shipped policies by name."),
    ],
    scenario: ScenariosOption = SCENARIO,
    beside: Annotated[
        str, typer.Option(help="Tuners to compare with, separated by commas.")
    ] = "default,expert,do-nothing",
    seeds: SeedsOption = SEEDS,
    intervals: Annotated[int, typer.Option(min=1, help="Monitor intervals per seed.")] = 100,
    seed: SeedOption = 1,
    backend: BackendOption = "native",
    jobs: JobsOption = None,
    out: OptionalOut = None,
    force: ForceOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare trained policies with other tuners on held-out traffic, the same for all of them.

    A policy acts in every interval. Training never sees these seeds; --seed chooses others. One
    that is no better than its own best constant where it did not learn is refused. Needs no torch.
    Without OUT no logs are stored; the same command continues what is unfinished there.

    Example: `dcqcn-gym evaluate policies/ppo --out runs/evaluation`
    """
    from dcqcn_gym.comparison.plan import check
    from dcqcn_gym.comparison.tables import tables_of, write_results_of
    from dcqcn_gym.extras.learn.constant import constants
    from dcqcn_gym.extras.learn.evaluation import as_json as json_of
    from dcqcn_gym.extras.learn.evaluation import evaluation
    from dcqcn_gym.runs.campaign import raise_failures
    from dcqcn_gym.runs.study import open_study
    from dcqcn_gym.runs.table import as_markdown, print_tables
    from dcqcn_gym.runs.trials import carry_out

    if markdown and as_json:
        raise ConfigError("--markdown and --json exclude each other; give one of them")
    names = names_in(scenario, "--scenario")
    others = names_in(beside, "--beside") if beside.strip() else ()
    plan = evaluation(
        policy, names, others, seeds=seeds, intervals=intervals, seed=seed, backend=backend
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())) if out is None else out
        trials = plan.trials(folder)
        check(trials)
        study = plan.study("evaluate", trials)
        progress = stack.enter_context(open_study(study, folder, force=force))
        raise_failures(carry_out(study.jobs.values(), jobs, progress))
        write_results_of(plan, trials, folder, "evaluate")
        tables = tables_of(plan, trials)
        text = json_of(plan, trials) if as_json else ""
        refused = [] if backend != "native" else constants(trials.values())
    if as_json:
        typer.echo(text)
    elif markdown:
        typer.echo(as_markdown(tables), nl=False)
    else:
        print_tables(tables)
    if refused:
        raise RunError("; ".join(refused))


def train_acc(spec: AccSpec, out: Path, *, force: bool, quiet: bool) -> None:
    """Train the network of ACC's agents by double DQN, without torch.

    Writes OUT/policy.npz and OUT/curve.csv, the learning curve, which is drawn too if the extra
    report is installed.
    """
    from dcqcn_gym.extras.learn.acc import draw_curve, train
    from dcqcn_gym.extras.learn.spec import TrainDir

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


def pretrain(
    out: Path, scenario: str, tuner: str, seed: int, intervals: int, backend: str, force: bool
) -> None:
    """Search offline and write the setting found; `pretrained-*` tuners put it in force."""
    from rich.console import Console
    from rich.progress import Progress

    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.runs.atomic_file import check_writable, write_atomically
    from dcqcn_gym.runs.log import read_run
    from dcqcn_gym.runs.loop import run
    from dcqcn_gym.runs.spec import RunSpec

    if out.is_dir():
        raise RunError(f"--out {out} is a directory; give a file")
    if out.exists() and not force:
        raise RunError(f"--out {out} exists; replace it with --force, or give another file")
    if not out.absolute().parent.is_dir():
        raise RunError(f"--out {out}: {out.absolute().parent} is not a directory")
    check_writable(out)
    spec = RunSpec(load_scenario(scenario), tuner, seed, intervals, backend)
    spec.check()
    with TemporaryDirectory() as folder, Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{tuner} on {scenario}", total=intervals)
        log = Path(folder) / "run.jsonl"
        run(spec, log, watch=lambda line, *_: progress.update(task, completed=line["i"] + 1))
        end = read_run(log).end
    if end is None or end["best_utility"] is None:
        raise RunError(f"{scenario} sent nothing in {intervals} intervals, so nothing was found")
    write_atomically(out, _toml(spec, end).encode())
    typer.echo(out)


def _toml(spec: RunSpec, end: Line) -> str:
    from dcqcn_gym.core.version import __version__

    if "cluster" in end["recommended"]:
        raise ConfigError(
            f"tuner {spec.tuner!r} recommended a setting per group of devices "
            f"({', '.join(end['recommended'])}); a pretrained file holds one for all: give a tuner "
            "that sets no groups apart"
        )
    table = spec.scenario.initial_setting().table
    command = ["dcqcn-gym", "train", "--tuner", "pretrained", "--scenario", spec.scenario.name]
    command += ["--algo", spec.tuner, "--seed", str(spec.seed), "--steps", str(spec.intervals)]
    command += ["--out", "FILE"]
    lines = [
        f"# {shlex.join(command)}",
        "# Knobs in NVIDIA's units, as the search recommended them; not edited by hand.",
        "[search]",
        f'scenario = "{spec.scenario.name}"',
        f'tuner = "{spec.tuner}"',
        f"seed = {spec.seed}",
        f"intervals = {spec.intervals}",
        f"line_rate_bps = {spec.scenario.line_rate_bps!r}",
        f"best_utility = {end['best_utility']!r}",
        f'version = "{__version__}"',
        f'scheme = "{table.scheme}"',
        "",
        "[setting]",
        *(f"{name} = {value!r}" for name, value in end["recommended"].items()),
    ]
    return "\n".join(lines) + "\n"
