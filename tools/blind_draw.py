"""Draw the scenarios of Keeper's blind draw from a salt, as docs/measured/keeper.md describes it.

``python tools/blind_draw.py SHA256 SALT_FILE OUT`` writes the suite.

24 scenarios follow from a salt of which only the SHA-256 was published. Nobody chose the salt by
what it draws: a scenario on which the experts' setting moves no flow that the default's does not
can tell nothing, so it is drawn again in its place, with the next ``attempt``.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
from contextlib import closing
from pathlib import Path

from dcqcn_gym.benchmarks.leaderboard.generator import INTERVALS, DrawnScenario, draw
from dcqcn_gym.benchmarks.leaderboard.suite_writer import write_suite
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.files import read_text
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.entries import REFERENCES, reference_settings
from dcqcn_gym.runs.log_line import interval_line
from dcqcn_gym.runs.run_totals import left_over_line
from dcqcn_gym.runs.spec import RunSpec

SCENARIOS = 24


def tells_apart(drawn: DrawnScenario, seed: int = 1) -> bool:
    """Return whether the flows of the two reference settings ever differ on the same traffic."""
    scenario = validate({"name": drawn.name, **drawn.table}, Scenario, source=drawn.name)
    settings = reference_settings(scenario)
    spec = RunSpec(scenario, "do-nothing", seed, scenario.intervals)
    with closing(spec.make_env()) as one, closing(spec.make_env()) as other:
        worlds = tuple(zip((one, other), REFERENCES, strict=True))
        for env, _ in worlds:
            env.reset(seed=seed)
        for _ in range(scenario.intervals):
            first, second = (
                interval_line(env.run_interval(settings[name]))["flows"] for env, name in worlds
            )
            if first != second:
                return True
        return left_over_line(one.left_over()) != left_over_line(other.left_over())


def blind_draw(digest: str, salt_file: Path, out: Path) -> Path:
    """Write the suite into the new folder ``out``; ConfigError for another salt."""
    salt = read_text(salt_file, 2**12).strip()
    if hashlib.sha256(salt.encode()).hexdigest() != digest:
        raise ConfigError(f"{salt_file}: is not the salt whose SHA-256 begins with {digest[:12]}")
    if out.exists():
        raise RunError(f"{out} is there already; give another OUT")
    drawn = [
        next(filter(tells_apart, (draw(salt, i, INTERVALS, n) for n in itertools.count())))
        for i in range(SCENARIOS)
    ]
    write_suite(
        out, "final-v2", drawn, intervals=INTERVALS, final_intervals=INTERVALS, repetitions=5,
        slow_repetitions=2, description="drawn from a salt that was secret",
    )  # fmt: skip
    return out


if __name__ == "__main__":
    print(blind_draw(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
