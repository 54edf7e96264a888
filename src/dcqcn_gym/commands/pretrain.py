"""``dcqcn-gym train --tuner pretrained``: a setting that is searched beforehand."""

from __future__ import annotations

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from dcqcn_gym.core.errors import ConfigError

if TYPE_CHECKING:
    from dcqcn_gym.runs.log import Line
    from dcqcn_gym.runs.loop import RunSpec


def pretrain(
    out: Path, scenario: str, tuner: str, seed: int, intervals: int, backend: str, force: bool
) -> None:
    """Search offline and write the setting found; `pretrained-*` tuners put it in force."""
    from rich.console import Console
    from rich.progress import Progress

    from dcqcn_gym.core.errors import RunError
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.runs.log import check_writable, read_run, write_atomically
    from dcqcn_gym.runs.loop import RunSpec, run

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
    import dcqcn_gym

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
        f'version = "{dcqcn_gym.__version__}"',
        f'scheme = "{table.scheme}"',
        "",
        "[setting]",
        *(f"{name} = {value!r}" for name, value in end["recommended"].items()),
    ]
    return "\n".join(lines) + "\n"
