"""Uses an installed package and some of its extras, in an empty folder: smoke.py core|EXTRA...

Imports all that an extra requires, then does what it is for. Run by .ci/bounds.sh.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import gymnasium

import dcqcn_gym

MINI = "dcqcn/MiniFBHadoop-v0"
SHORT = ["--scenario", "mini-fb-hadoop", "--intervals", "3"]


def command(*words: str) -> None:
    """Type a command of the package; its scripts are those of this interpreter."""
    subprocess.run([Path(sysconfig.get_path("scripts")) / "dcqcn-gym", *words], check=True)


def tune(tuner: str, *words: str) -> None:
    """Tune for three intervals."""
    out = "-".join(["tune", tuner, *words]).replace("--", "")
    command("tune", *SHORT, "--tuner", tuner, "--eval-seeds", "0", "--quiet", "--out", out, *words)
    assert Path(out, "run.jsonl").stat().st_size


def core() -> None:
    """Check the environment, tune and simulate; the import alone warns of nothing."""
    from gymnasium.utils.env_checker import check_env

    strict = [sys.executable, "-W", "error", "-c"]
    subprocess.run([*strict, "import gymnasium, dcqcn_gym, dcqcn_gym._core"], check=True)
    for backend in ("native", "fake"):
        env = gymnasium.make(MINI, backend=backend, intervals=5).unwrapped
        check_env(env, skip_render_check=True)  # pictures: the extra report
    envs = gymnasium.make_vec(MINI, num_envs=2, intervals=3)
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    envs.close()
    command("--help")
    tune("paraleon")
    command("simulate", *SHORT, "--out", "sim")
    assert Path("sim/flows.csv").stat().st_size


def report() -> None:
    """Draw a picture of a step."""
    env = gymnasium.make(MINI, backend="fake", intervals=3, render_mode="rgb_array")
    env.reset(seed=1)
    env.step(env.action_space.sample())
    assert env.render().ndim == 3


def render() -> None:
    """Record a film."""
    made = gymnasium.make(MINI, backend="fake", intervals=3, render_mode="rgb_array")
    env = gymnasium.wrappers.RecordVideo(made, "films")
    env.reset(seed=1)
    for _ in range(3):
        env.step(env.action_space.sample())
    env.close()
    assert all(film.stat().st_size for film in Path("films").glob("*.mp4"))


def parquet() -> None:
    """Write a trace."""
    command("simulate", *SHORT, "--trace", "queue", "--trace-format", "parquet", "--out", "trace")
    assert list(Path("trace").glob("*.parquet"))


def jobs() -> None:
    """Make the messages of Chakra's format."""
    from dcqcn_gym.extras.jobs.chakra_format import messages

    assert messages()


def leaderboard() -> None:
    """Compile the filter of system calls."""
    from dcqcn_gym.benchmarks.leaderboard.tuner_host.seccomp import filter_file

    assert Path(filter_file()).stat().st_size


def optuna() -> None:
    """Search by Optuna and by cmaes."""
    tune("tpe")
    tune("cmaes")


def tensorboard() -> None:
    """Track a run in a local folder."""
    tune("random", "--track", "tensorboard")


def mlflow() -> None:
    """Track a run in a local database."""
    tune("random", "--track", "mlflow")


def wandb() -> None:
    """Track a run offline."""
    os.environ["WANDB_MODE"] = "offline"
    tune("random", "--track", "wandb")


def workbench() -> None:
    """Draw a page over a run, charts included."""
    tune("random")
    command("show", ".")
    assert "vegaEmbed" in Path("index.html").read_text(encoding="utf-8")


def multiagent() -> None:
    """Pass PettingZoo's checks."""
    from pettingzoo.test import parallel_api_test

    parallel_api_test(dcqcn_gym.parallel_env("mini-fb-hadoop", intervals=3), num_cycles=4)


def hw() -> None:
    """Make certificates, and the unit that runs an agent."""
    command("hw", "certs", "keys", "--agent", "nic-a", "--controller", "controller")
    assert Path("keys/nic-a.key").stat().st_size
    command("hw", "agent", "nic", "--config", "agent.toml", "--unit")


USES = {f.__name__: f for f in (core, report, render, parquet, jobs, leaderboard,
                                optuna, tensorboard, mlflow, wandb, workbench, multiagent,
                                hw)}  # fmt: skip


def required(extra: str) -> list[str]:
    """Return the distributions that an extra itself requires."""
    lines = metadata.requires("dcqcn-gym") or ()
    found = (re.match(r"[\w.-]+", line) for line in lines if re.search(rf"== *.{extra}\b", line))
    return [name[0] for name in found if name and name[0] != "dcqcn-gym"]


def main(extras: list[str]) -> None:
    """Import what each extra requires, and use it."""
    modules = metadata.packages_distributions()
    for extra in extras:
        names = {re.sub("[-_.]+", "-", name).lower() for name in required(extra)}
        for module, owners in modules.items():
            owned = {re.sub("[-_.]+", "-", owner).lower() for owner in owners} <= names
            if owned and module.isidentifier() and not module.startswith("_"):
                try:
                    importlib.import_module(module)
                except OSError as error:  # libfuse and libseccomp are the system's
                    print(f"{module}: {error}; not used")
        if extra in USES:
            USES[extra]()
        print(f"### {extra}: {', '.join(sorted(names))}" + " used" * (extra in USES), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
