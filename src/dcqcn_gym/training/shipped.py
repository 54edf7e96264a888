"""``python -m dcqcn_gym.training.shipped OUT``: train the policies that come with the package.

Every algorithm with three seeds on suite ``learn-v1``, whose scenarios are watched by the sketch
and stand in no ranking. Run it in the repository's root; an interrupted call goes on where it was.
It leaves a training per policy below OUT, copies to ``--policies`` what is more than a constant
(:mod:`dcqcn_gym.training.constant`) and prints the table of ``configs/policies/README.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.runs.whole_file import write_atomically
from dcqcn_gym.training.algorithms import ALGORITHMS
from dcqcn_gym.training.constant import against_constant, held_out, refusal
from dcqcn_gym.training.progress import open_train_viewer
from dcqcn_gym.training.spec import TrainDir, TrainSpec
from dcqcn_gym.training.train import train

SUITE = Path("configs/suites/learn-v1")
SEEDS = (1, 2, 3)
STEPS = 6_000
EPISODE = 130
"""Monitor intervals: the budget of the suite's runs, so that shifts are met too."""


def specs(steps: int = STEPS, seeds: Sequence[int] = SEEDS) -> dict[str, TrainSpec]:
    """Return the trainings by the name of their policy, seed by seed."""
    paths = tuple(str(path) for path in sorted(SUITE.glob("[0-9]*.toml")))
    if not paths:
        raise ConfigError(f"{SUITE} is not here; run this in the root of the repository")
    return {
        f"{algo}-elastic-{seed}": TrainSpec(algo, paths, steps=steps, seed=seed, episode=EPISODE)
        for seed in seeds
        for algo in ALGORITHMS
    }


def main(arguments: Sequence[str]) -> int:
    """Carry out what is missing; return 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m dcqcn_gym.training.shipped", description=__doc__
    )
    parser.add_argument("out", type=Path, help="folder for the trainings")
    parser.add_argument("--policies", type=Path, default=Path("configs/policies"))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args(arguments)
    for name, spec in specs(options.steps, options.seeds).items():
        place = TrainDir(options.out / name)
        last = place.last()
        if last is None or last.steps < spec.whole_steps():
            with open_train_viewer(name, spec.steps, quiet=False) as viewer:
                result = train(spec, place, viewer, resume=place.header.exists())
            if result.interrupted:
                return 130
        gain, _ = against_constant(str(place.policy), held_out())
        if why := refusal(name, gain):
            print(why)
            continue
        data = place.policy.read_bytes()
        write_atomically(options.policies / f"{name}.npz", data)
        cpu = parse_json(read_text(place.timing))["cpu_s"]
        digest = hashlib.sha256(data).hexdigest()
        print(f"| `{name}.npz` | {cpu:.0f} | {len(data)} | `{digest}` |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
