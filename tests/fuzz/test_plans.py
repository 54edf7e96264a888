"""``leaderboard.json`` and ``study.json`` of other machines: what is wrong with one is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fuzz_plans import KEPT, read_leaderboard, read_plan, small, small_plan

from dcqcn_gym.benchmarks.leaderboard.protocol import LEADERBOARD_FILE, open_leaderboard
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError
from dcqcn_gym.runs.claim import STUDY_FILE

READ = {LEADERBOARD_FILE: read_leaderboard, STUDY_FILE: read_plan}


def entry(**changed: Any) -> dict[str, Any]:
    data = small()
    return {**data, "entries": [data["entries"][0], {**data["entries"][1], **changed}]}


def plan(**changed: Any) -> dict[str, Any]:
    data = small_plan()
    return {**data, "plan": {**data["plan"], **changed}}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (LEADERBOARD_FILE, entry(name="../../../pwn"), r"entries\[1\].name: .*holds '/'"),
        (LEADERBOARD_FILE, entry(name=2.5), r"entries\[1\].name = 2.5"),
        (LEADERBOARD_FILE, entry(name="default"), "tuners .* are both called 'default'"),
        (
            LEADERBOARD_FILE,
            entry(tuner="paraleo"),
            "unknown tuner 'paraleo'; did you mean 'paraleon'",
        ),
        (LEADERBOARD_FILE, entry(tuner_args="x"), r"entries\[1\].tuner_args = 'x'"),
        (LEADERBOARD_FILE, entry(changes={"knob": 3}), "unknown key 'knob'"),
        (
            LEADERBOARD_FILE,
            entry(slo=True),
            r"unknown key 'slo' in \[entries\[1\]\]; did you mean 'slow'",
        ),
        (LEADERBOARD_FILE, {**small(), "entries": []}, "entries = .*at least 1"),
        (
            LEADERBOARD_FILE,
            {**small(), "repetitions": -1},
            "repetitions = -1: .*greater",
        ),
        (LEADERBOARD_FILE, {**small(), "repetitions": 2.7}, "repetitions = 2.7"),
        (
            LEADERBOARD_FILE,
            {**small(), "repetitions": 100_000},
            "repetitions = 100000: .*999",
        ),
        (STUDY_FILE, plan(seeds=10**9), "seeds = 1000000000: .*999"),
        (STUDY_FILE, plan(fresh_seeds=10**8), "fresh_seeds = 100000000: .*999"),
        (STUDY_FILE, plan(seeds=-1), "seeds = -1: .*greater"),
        (STUDY_FILE, plan(sed=1), "unknown key 'sed'.*did you mean"),
        (STUDY_FILE, plan(cases=[]), "cases = .*at least 1"),
        (STUDY_FILE, plan(seeds=999, fresh_seeds=999), "are 1998000 runs; exp"),
        (STUDY_FILE, {**small_plan(), "parts": 3}, "parts = 3"),
    ],
)
def test_what_is_wrong_is_said(name: str, data: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(data))
    with pytest.raises(DcqcnGymError, match=said):
        READ[name](tmp_path)


def test_many_entries_of_many_runs_are_refused(tmp_path: Path) -> None:
    data = small()
    rows = [{**data["entries"][0], "name": f"default-{i}"} for i in range(900)]
    (tmp_path / LEADERBOARD_FILE).write_text(
        json.dumps({**data, "repetitions": 999, "entries": rows})
    )
    with pytest.raises(ConfigError, match=r"900 entries with 999 repetitions are \d+ runs; exp"):
        open_leaderboard(tmp_path)


def test_committed_leaderboards_are_read(tmp_path: Path) -> None:
    files = list(KEPT.parents[1].glob("*/leaderboard.json"))
    assert files
    for file in files:
        shutil.copy(file, tmp_path / LEADERBOARD_FILE)
        assert open_leaderboard(tmp_path).header() == json.loads(file.read_text())
