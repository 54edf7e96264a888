"""``python -m dcqcn_gym.benchmarks.leaderboard.make_suites FOLDER``: write the suites as drawn.

The files in configs/suites are what this writes; a test holds them to it. A published suite is
never drawn again under its name: a change makes the next version.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.bank.stress import INTERVALS, STRESS
from dcqcn_gym.benchmarks.leaderboard.blind import blind_scenarios
from dcqcn_gym.benchmarks.leaderboard.generator import Drawn, draw_scenarios
from dcqcn_gym.benchmarks.leaderboard.kinds import INTERVALS as INTERVALS_2
from dcqcn_gym.benchmarks.leaderboard.kinds import draw
from dcqcn_gym.benchmarks.leaderboard.picked import picked
from dcqcn_gym.benchmarks.leaderboard.suite import suite_names
from dcqcn_gym.core.config import CONFIGS, read_toml
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.runs.whole_file import write_atomically

POLICIES = (
    "none: dqn-mini, ppo-mini, sac-mini and td3-mini learned on mini-fb-hadoop and "
    "mini-llm-alltoall"
)


@dataclass(frozen=True)
class Recipe:
    """How a suite is made: its protocol, and how many scenarios are drawn from ``salt``.

    With ``shared``, its scenarios are those of the package at the papers' scale instead, with
    ``listed`` those.
    """

    name: str
    description: str
    salt: str = ""
    count: int = 0
    intervals: int = 130
    repetitions: int = 10
    slow_repetitions: int = 3
    final_intervals: int = 60
    shared: Sequence[str] = ()
    listed: Sequence[Drawn] = ()
    seen_by: str = POLICIES
    protocol: int = 1

    def scenarios(self) -> list[Drawn]:
        """Return the scenarios of the suite."""
        if self.listed:
            return list(self.listed)
        if self.protocol > 1:
            return [draw(self.salt, index, self.intervals) for index in picked(self.salt)]
        if not self.shared:
            return draw_scenarios(self.salt, self.count, self.intervals)
        return [_shared(name, self.intervals) for name in self.shared]


JOBS = (
    "job-pipeline-16", "job-dense-64", "job-zero3-64", "job-moe-64", "job-two-64",
    "job-storage-48", "job-serving-32", "job-checkpoint-40",
)  # fmt: skip
"""The scenarios of jobs that take seconds."""

SECOND = tuple(
    Recipe(name, words, name, intervals=INTERVALS_2, repetitions=5, slow_repetitions=2,
           final_intervals=INTERVALS_2, seen_by="none", protocol=2)
    for name, words in (
        ("dev-v2", "the second generation, public: tune on it as much as you like"),
        ("test-v2", "the second generation, for seasons: many kinds; do not tune on it"),
    )
)  # fmt: skip
"""Kept of 520 candidates each: ``leaderboard pick NAME --candidates 520 --count 42``."""

PUBLIC = (
    *SECOND,
    Recipe("smoke", "three scenarios in minutes: does everything work", "smoke", 3, 20, 2, 1, 10),
    Recipe("dev-v1", "public: tune on it as much as you like", "dev-v1", 12),
    Recipe("test-v1", "public definition: the ranking; do not tune on it", "test-v1", 24),
    Recipe(
        "paper-v1", "PARALEON's fabric at full size", intervals=100, repetitions=5,
        slow_repetitions=2, final_intervals=50,
        shared=("fb-hadoop-uplink30", "websearch-uplink30", "llm-alltoall", "influx"),
    ),
    Recipe(
        "learn-v1", "what the shipped elastic policies learned on; no ranking", "learn-v1", 12,
        seen_by="ppo-elastic, sac-elastic, td3-elastic and dqn-elastic, 1 to 3 of each",
    ),
    Recipe(
        "stress-v1", "large fan-in beside mice, 25 to 400 Gb/s; do not tune on it",
        intervals=INTERVALS, repetitions=2, slow_repetitions=2, final_intervals=INTERVALS,
        listed=STRESS,
    ),
    Recipe(
        "jobs-v1", "training and serving jobs of 16 to 64 endpoints; no ranking", intervals=60,
        repetitions=5, slow_repetitions=2, final_intervals=60, shared=JOBS, seen_by="none",
    ),
)  # fmt: skip
"""The suites that come with the package."""


def second_recipe(name: str, description: str, listed: Sequence[Drawn]) -> Recipe:
    """Return the recipe of a suite of the second generation, with these scenarios."""
    return Recipe(
        name, description, intervals=INTERVALS_2, repetitions=5, slow_repetitions=2,
        final_intervals=INTERVALS_2, listed=listed, seen_by="none", protocol=2,
    )  # fmt: skip


def final_recipe(salt: str) -> Recipe:
    """Return the recipe of the final draw; its salt is secret until the release reveals it."""
    return Recipe("final-v1", "drawn from a salt that was secret", salt, 12)


def _shared(name: str, intervals: int) -> Drawn:
    table = read_toml(CONFIGS / "scenarios" / f"{name}.toml")
    table |= {"intervals": intervals, "monitor": {"kind": "elastic"}}
    loop = name.startswith(("llm", "job"))
    third = "closed-loop" if loop else "shifting" if name == "influx" else "steady"
    return Drawn(name, third, table)


def write_suite(recipe: Recipe, folder: Path) -> None:
    """Write ``suite.toml`` and the scenarios into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for drawn in recipe.scenarios():
        text = f"# suite {recipe.name}, third: {drawn.third}\n" + "".join(_toml(drawn.table))
        write_atomically(folder / f"{drawn.name}.toml", text.encode())
        digest = hashlib.sha256(text.encode()).hexdigest()
        listed.append({"name": drawn.name, "third": drawn.third, "digest": digest,
                        "phases": list(drawn.phases)})  # fmt: skip
    head = {
        "name": recipe.name,
        "description": recipe.description,
        "intervals": recipe.intervals,
        "repetitions": recipe.repetitions,
        "slow_repetitions": recipe.slow_repetitions,
        "final_intervals": recipe.final_intervals,
        "seen_by": recipe.seen_by,
        **({"protocol": recipe.protocol} if recipe.protocol > 1 else {}),
        "scenarios": listed,
    }
    write_atomically(folder / "suite.toml", "".join(_toml(head)).encode())


def _toml(table: dict[str, Any], inside: str = "") -> Iterable[str]:
    """Yield the lines of a TOML table: plain keys first, then tables and lists of tables."""
    nested = {k: v for k, v in table.items() if isinstance(v, dict) or _tables(v)}
    for key, value in table.items():
        if key not in nested:
            yield f"{key} = {json.dumps(value)}\n"
    for key, value in nested.items():
        for one in [value] if isinstance(value, dict) else value:
            name = inside + key
            yield f"\n[{name}]\n" if isinstance(value, dict) else f"\n[[{name}]]\n"
            yield from _toml(one, f"{name}.")


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def main(folder: Path) -> None:
    """Write every public suite below ``folder``.

    Raises ConfigError for a new one with a scenario that tells no settings apart; those that were
    published before that rule stay as they are.
    """
    for recipe in PUBLIC:
        if recipe.name not in suite_names():
            check_new(recipe)
        write_suite(recipe, folder / recipe.name)


def check_new(recipe: Recipe) -> None:
    """Raise ConfigError for a suite with a scenario on which no setting can win or lose."""
    blind = blind_scenarios(recipe.scenarios())
    if blind:
        raise ConfigError(
            f"suite {recipe.name!r}: {', '.join(blind)}: the experts' setting moves no flow that "
            "the default's does not, so every entry would score 0; give another salt"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
