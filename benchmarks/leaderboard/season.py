"""A season's suite: the salt draws its scenarios too, so that nobody can have tuned on them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dcqcn_gym.benchmarks.leaderboard.generator import (
    SEASON_INTERVALS,
    DrawnScenario,
    draw_season,
)
from dcqcn_gym.benchmarks.leaderboard.salted_choices import seed
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import expert_setting
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.core.verdict import scores
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.progress import open_meter
from dcqcn_gym.tuners.rule import advise

FINAL_INTERVALS = 100
REPETITIONS = 2
"""More scenarios tell more than more runs of each; two are the fewest that show chance."""


def write_suite(
    folder: Path, name: str, scenarios: Sequence[DrawnScenario], *, intervals: int,
    final_intervals: int, repetitions: int, description: str = "",
) -> None:  # fmt: skip
    """Write a suite of scenarios into ``folder``; the keywords are the keys of ``suite.toml``.

    ``intervals`` are monitor intervals. A suite is frozen: a change makes one of another name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for one in scenarios:
        data = toml_text(one.table).encode()
        write_atomically(folder / f"{one.name}.toml", data)
        digest = hashlib.sha256(data).hexdigest()
        phases = list(one.phases)
        listed.append({"name": one.name, "third": one.third, "digest": digest, "phases": phases})
    head = {
        "name": name, "description": description, "intervals": intervals,
        "repetitions": repetitions, "slow_repetitions": 1, "final_intervals": final_intervals,
        "seen_by": "none", "protocol": 2, "scenarios": listed,
    }  # fmt: skip
    write_atomically(folder / "suite.toml", toml_text(head).encode())


def season_suite(folder: Path, salt: str, count: int, *, quiet: bool = False) -> None:
    """Write the suite that a salt draws into ``folder``; one of as many scenarios stays.

    Takes about five CPU seconds a scenario. Raises ConfigError without a salt, if the folder holds
    something else, or if no scenario can be found.
    """
    if not salt:
        raise ConfigError("--scenarios are drawn by a salt: give --salt-file")
    if (folder / "suite.toml").exists():
        held = len(load_suite(str(folder)).file.scenarios)
        if held != count:
            raise ConfigError(f"{folder} holds a suite of {held} scenarios, not of {count}")
        return
    if folder.exists():
        raise ConfigError(f"{folder} is there already and holds no suite; name a new folder")
    tried: list[str] = []
    with interruptible("nothing was written"), open_meter(quiet=quiet) as meter:

        def moved(one: DrawnScenario) -> float:
            at = int(one.name[:3])
            meter.show(at, count, one.name, f"drawing {at + 1}/{count}: {one.name}")
            tried.append(one.name)
            return _most_moved(one, salt)

        drawn = draw_season(salt, count, moved)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        write_suite(
            Path(place) / "suite", folder.name, drawn, intervals=SEASON_INTERVALS,
            final_intervals=FINAL_INTERVALS, repetitions=REPETITIONS,
            description=f"a season's, drawn by its salt; {len(tried) - count} of {len(tried)} "
            "scenarios were rejected, because three settings that are held change nothing there",
        )  # fmt: skip
        os.replace(Path(place) / "suite", folder)


def _most_moved(one: DrawnScenario, salt: str) -> float:
    """Return the largest ``|S|`` of the floor, the experts' setting and the rule, each held.

    Their traffic is one that no entry meets.
    """
    scenario = validate({"name": one.name, **one.table}, Scenario, source=one.name)
    default = scenario.default_setting()
    held = [
        default.replace(rp_min_rate=max(1, round(0.047 * scenario.line_rate_bps / 1e6))),
        expert_setting(scenario.line_rate_bps, default.table),
        advise(facts_of(scenario), default).setting,
    ]
    theirs, *ours = evaluate([default, *held], [scenario], [seed("moved", salt, one.name)])
    return max(abs(scores(runs[0], theirs[0]).mean) for runs in ours)
