"""What stands behind an environment id: the same actions give the same observations and rewards.

``python tools/environment_ids.py [SCENARIO...]`` compares ids, by default all, with their digests
in ``tests/digests/ids.txt`` and adds those that are new there. An id that is there with another
digest is an error: dynamics, reward or observation have changed, so the id has to be raised
(``envs/ids.py``). Rows of ids that are no more stay: they say what those names meant.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.ids import env_id
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario, scenario_names

__all__ = ["TABLE", "check", "digest_of", "main", "table"]

TABLE = Path(__file__).resolve().parents[1] / "tests" / "digests" / "ids.txt"
SEED = 1
LONGEST_US = 1000.0
"""No interval is longer, so that all scenarios together take seconds."""
MOVES = (0.0, -0.5, 1.0)
"""One action after the other, the same number for every knob."""


def digest_of(scenario: Scenario) -> str:
    """Return the SHA-256 of what a few steps hand out, its first 16 digits."""
    interval = min(scenario.monitor_interval_us, LONGEST_US)
    env = DcqcnEnv(
        scenario.model_copy(update={"monitor_interval_us": interval}),
        intervals=len(MOVES) * scenario.cadence,
    )
    observation, _ = env.reset(seed=SEED)
    seen = hashlib.sha256(np.ascontiguousarray(observation).tobytes())
    for move in MOVES:
        observation, reward, terminated, _, _ = env.step(np.full(env.space.n, move))
        seen.update(np.ascontiguousarray(observation).tobytes())
        seen.update(f"{reward!r} {terminated}".encode())
        if terminated:
            break
    env.close()
    return seen.hexdigest()[:16]


def table(text: str) -> dict[str, str]:
    """Return the digest of every id in the text of the table."""
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {row[0]: row[1] for row in rows}


def check(name: str, digest: str, known: dict[str, str]) -> str:
    """Return what is wrong with an id, empty if it is as in the table."""
    if name not in known:
        return f"{name} is not in {TABLE.name}: python tools/environment_ids.py"
    if known[name] != digest:
        return (
            f"{name} gives {digest} where it gave {known[name]}: dynamics, reward or observation "
            "have changed; raise ENV_VERSION, or RAISED of this scenario, in envs/ids.py, then "
            "python tools/environment_ids.py"
        )
    return ""


def main(scenarios: Sequence[str]) -> int:
    """Check the ids of scenarios and add the new ones; return 1 if one has changed."""
    text = TABLE.read_text(encoding="utf-8")
    known, wrong = table(text), []
    for scenario in scenarios or scenario_names():
        name, digest = env_id(scenario), digest_of(load_scenario(scenario))
        if name not in known:
            text += f"{name} {digest}\n"
        elif said := check(name, digest, known):
            wrong.append(said)
    TABLE.write_text(text, encoding="utf-8")
    print("\n".join(wrong) or f"{len(table(text))} ids")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
