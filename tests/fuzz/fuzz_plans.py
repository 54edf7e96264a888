"""Random damage to ``study.json`` of leaderboards and comparisons of other machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from fuzz_harness import ODD, damage

from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
from dcqcn_gym.comparison.compare import held_plan, plan_of, study_of
from dcqcn_gym.runs.claim import STUDY_FILE

KEPT = Path(__file__).parents[2] / "benchmarks/leaderboard/data/season-1/study.json"
PLAIN = tuple(value for value in ODD if not isinstance(value, bytes | complex | type))


def small() -> dict[str, Any]:
    """Return a committed leaderboard's file with few entries, one of them with changes."""
    data = dict(json.loads(KEPT.read_text()))
    entries = data["parts"]["entry"]
    changed = [name for name, one in entries.items() if one["changes"] or one["tuner_args"]]
    parts = {**data["parts"], "entry": {n: entries[n] for n in ("default", *changed[:3])},
             "repetition": {"0": None, "1": None}}  # fmt: skip
    return {**data, "parts": parts}


def small_plan() -> dict[str, Any]:
    plan = plan_of({"tuners": ("default", "random"), "seeds": 2, "intervals": 5})
    return {"kind": "compare", "versions": {}, "command": "", "same": {}, "parts": {},
            "plan": plan.model_dump(mode="json")}  # fmt: skip


def read_leaderboard(folder: Path) -> None:
    board = open_leaderboard(folder)
    assert all(folder / "runs" in attempt.folder.resolve().parents for attempt in board.attempts())


def read_plan(folder: Path) -> None:
    plan = held_plan(folder)
    if plan is not None:
        study_of(plan_of({}, plan), folder)


def mutated(random: Random, value: Any) -> Any:
    """Return the value with one thing in it replaced, removed, doubled or misspelt."""
    if random.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return random.choice(PLAIN)
    if isinstance(value, list):
        at = random.randrange(len(value))
        return [*value[:at], mutated(random, value[at]), *value[at + random.randrange(2) :]]
    key = random.choice(list(value))
    rest = {other: content for other, content in value.items() if other != key}
    how = random.random()
    if how < 0.8:
        return {**value, key: mutated(random, value[key])}
    return rest if how < 0.9 else {**rest, key + "x": value[key]}


def _damaged(
    whole: dict[str, Any], read: Callable[[Path], None], random: Random, folder: Path
) -> None:
    data = json.dumps(whole if random.random() < 0.2 else mutated(random, whole)).encode()
    (folder / STUDY_FILE).write_bytes(damage(random, data) if random.random() < 0.2 else data)
    read(folder)


def leaderboards(random: Random, folder: Path) -> None:
    """Read a damaged leaderboard."""
    _damaged(small(), read_leaderboard, random, folder)


def comparisons(random: Random, folder: Path) -> None:
    """Read a damaged comparison."""
    _damaged(small_plan(), read_plan, random, folder)
