"""The benchmark of recommendations, on the fake backend: complete, resumable, honest text."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.benchmarks.recommended import Plan, markdown, produce, rows
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.runs.campaign import Done

PLAN = Plan(
    scenarios=("mini-fb-hadoop",),
    tuners=("random",),
    intervals=6,
    eval_seeds=3,
    eval_intervals=4,
    backend="fake",
)


def test_logs_table_and_resume(tmp_path: Path) -> None:
    said: list[Done[Any]] = []
    produce(PLAN, tmp_path, said.append)
    logs = {p.name: p.read_bytes() for p in (tmp_path / "mini-fb-hadoop").iterdir()}
    assert len(logs) == 1 + 3 * 3
    assert len(said) == len(logs)
    text = markdown(PLAN, tmp_path)
    assert "### mini-fb-hadoop" in text
    assert [line.split(" | ")[0] for line in text.splitlines()[-3:]] == [
        "| default",
        "| expert",
        "| random",
    ]
    (tmp_path / "mini-fb-hadoop" / "default-seed1001000.jsonl").unlink()
    torn = tmp_path / "mini-fb-hadoop" / "tuned-random.jsonl"
    torn.write_bytes(torn.read_bytes()[:-500])
    produce(PLAN, tmp_path, said.append)
    assert {p.name: p.read_bytes() for p in (tmp_path / "mini-fb-hadoop").iterdir()} == logs
    assert markdown(PLAN, tmp_path) == text


def test_every_row_is_made_of_its_own_runs(tmp_path: Path) -> None:
    produce(PLAN, tmp_path, lambda _: None)
    for row in rows(PLAN, tmp_path, "mini-fb-hadoop"):
        logs = sorted((tmp_path / "mini-fb-hadoop").glob(f"{row.name}-seed*.jsonl"))
        ends = [
            float(json.loads(log.read_text().splitlines()[-1])["end"]["mean_utility"])
            for log in logs
        ]
        assert row.utility is not None
        assert row.utility.mean == pytest.approx(math.fsum(ends) / len(ends), abs=1e-12)


def test_a_setting_differs_from_itself_by_nothing(tmp_path: Path) -> None:
    plan = Plan(
        scenarios=PLAN.scenarios,
        tuners=("do-nothing",),
        intervals=2,
        eval_seeds=2,
        eval_intervals=2,
    )  # the native backend knows what is unfinished
    produce(plan, tmp_path, lambda _: None)
    row = rows(plan, tmp_path, "mini-fb-hadoop")[-1]
    assert row.utility_gain["default"].mean == 0
    assert row.slowdown_change["p99"].mean == 0


def test_unknown_tuner_fails_before_anything_runs(tmp_path: Path) -> None:
    plan = Plan(scenarios=PLAN.scenarios, tuners=("parleon",), backend="fake")
    with pytest.raises(UnknownNameError, match="paraleon"):
        produce(plan, tmp_path, lambda _: None)
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_the_command_names_what_differs_from_the_standard() -> None:
    assert Plan().command(Path("runs/r")) == (
        "dcqcn-gym bench recommended --out runs/r --write docs/results.md"
    )
    assert "--scenario mini-fb-hadoop --tuner random" in PLAN.command(Path("runs/r"))
    assert "--eval-seeds 3" in PLAN.command(Path("runs/r"))


@pytest.mark.parametrize(("seeds", "method"), [(2, "Student's t"), (20, "BCa bootstrap")])
def test_the_text_names_the_intervals_that_are_in_it(
    seeds: int, method: str, tmp_path: Path
) -> None:
    plan = Plan(PLAN.scenarios, ("do-nothing",), 1, 2, seeds, 2, "fake")
    produce(plan, tmp_path, lambda _: None)
    assert f"confidence intervals over the seeds ({method})" in markdown(plan, tmp_path)
