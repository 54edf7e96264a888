"""Writes a suite: its scenarios' files, and ``suite.toml`` with their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from dcqcn_gym.benchmarks.leaderboard.generator import DrawnScenario
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.runs.atomic_file import write_atomically


def write_suite(
    folder: Path, name: str, scenarios: Sequence[DrawnScenario], *, intervals: int,
    final_intervals: int, repetitions: int, slow_repetitions: int = 1, description: str = "",
    seen_by: str = "none",
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
        "repetitions": repetitions, "slow_repetitions": slow_repetitions,
        "final_intervals": final_intervals, "seen_by": seen_by, "protocol": 2, "scenarios": listed,
    }  # fmt: skip
    write_atomically(folder / "suite.toml", toml_text(head).encode())
