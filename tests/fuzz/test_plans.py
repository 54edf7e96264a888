"""``study.json`` of other machines: what is wrong with one is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz_plans import KEPT, read_leaderboard, read_plan, small, small_plan

from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError
from dcqcn_gym.runs.claim import STUDY_FILE

CHANGED = list(small()["parts"]["entry"])[1]
"""An entry with arguments or changes."""


def board(**parts: Any) -> dict[str, Any]:
    data = small()
    return {**data, "parts": {**data["parts"], **parts}}


def entry(name: str = CHANGED, **changed: Any) -> dict[str, Any]:
    entries = small()["parts"]["entry"]
    return board(entry={**entries, name: {**entries[CHANGED], **changed}})


def plan(**changed: Any) -> dict[str, Any]:
    data = small_plan()
    return {**data, "plan": {**data["plan"], **changed}}


@pytest.mark.parametrize(
    ("read", "data", "said"),
    [
        (read_leaderboard, entry("../../../pwn"), "pwn.*holds '/'"),
        (read_leaderboard, entry(tuner="paraleo"), "unknown tuner 'paraleo'; did you mean"),
        (read_leaderboard, entry(tuner_args="x"), rf"{CHANGED}.*tuner_args = 'x'"),
        (read_leaderboard, entry(changes={"knob": 3}), "unknown key 'knob'"),
        (read_leaderboard, entry(slo=True), "unknown key 'slo' .*did you mean 'slow'"),
        (read_leaderboard, board(entry={}), "entries = .*at least 1"),
        (read_leaderboard, board(repetition={}), "repetitions = 0: .*greater"),
        (
            read_leaderboard,
            board(repetition={str(i): {} for i in range(1000)}),
            "repetitions = 1000: .*999",
        ),
        (read_plan, plan(seeds=10**9), "seeds = 1000000000: .*999"),
        (read_plan, plan(held_out_seeds=10**8), "held_out_seeds = 100000000: .*999"),
        (read_plan, plan(seeds=-1), "seeds = -1: .*greater"),
        (read_plan, plan(sed=1), "unknown key 'sed'.*did you mean"),
        (read_plan, plan(cases=[]), "cases = .*at least 1"),
        (read_plan, plan(seeds=999, held_out_seeds=999), "are 1998000 runs; exp"),
        (read_plan, {**small_plan(), "parts": 3}, "parts = 3"),
    ],
)
def test_what_is_wrong_is_said(
    read: Callable[[Path], None], data: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / STUDY_FILE).write_text(json.dumps(data))
    with pytest.raises(DcqcnGymError, match=said):
        read(tmp_path)


def test_many_entries_of_many_runs_are_refused(tmp_path: Path) -> None:
    row = small()["parts"]["entry"]["default"]
    many = board(entry={f"default-{i}": row for i in range(900)},
                 repetition={str(i): {} for i in range(999)})  # fmt: skip
    (tmp_path / STUDY_FILE).write_text(json.dumps(many))
    with pytest.raises(ConfigError, match=r"900 entries with 999 repetitions are \d+ runs; exp"):
        open_leaderboard(tmp_path)


def test_committed_leaderboards_are_read(tmp_path: Path) -> None:
    files = list(KEPT.parents[1].glob("*/study.json"))
    assert files
    for file in files:
        shutil.copy(file, tmp_path / STUDY_FILE)
        study, held = open_leaderboard(tmp_path).study(), json.loads(file.read_text())
        assert study.same == held["same"]
        assert study.parts == held["parts"]
