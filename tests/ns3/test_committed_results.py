"""A tuning run and an evaluation that were carried out on ns-3, kept beside this file.

docs/reference/ns3.md has the commands. The packet engine repeats both, figure by figure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dcqcn_gym.comparison.tables import paired_results
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.learn.evaluation import evaluation
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from made_study import produce

RESULTS = Path(__file__).with_name("results")


def same(old: Any, new: Any) -> None:
    """Compare what the kept line has; later versions may say more."""
    if isinstance(old, dict):
        for key, value in old.items():
            same(value, new[key])
    else:
        assert old == new


def test_the_engine_repeats_the_tuning_run_on_ns3(tmp_path: Path) -> None:
    kept = read_run(RESULTS / "tune.jsonl")
    assert kept.header["backend"] == "ns3"
    assert kept.complete
    scenario, intervals = load_scenario("mini-fb-hadoop"), len(kept.intervals)
    run(RunSpec(scenario, kept.header["tuner"], 1, intervals), tmp_path / "run.jsonl")
    now = read_run(tmp_path / "run.jsonl")
    for old, new in zip(kept.intervals, now.intervals, strict=True):
        same(old, new)
    assert kept.end is not None
    assert kept.end["unfinished"]["bytes"]  # ns-3 told them
    same(kept.end, now.end)
    best = json.loads((RESULTS / "best.json").read_text())
    assert best["recommended"] == kept.end["recommended"]


def test_the_engine_repeats_the_evaluation_on_ns3(tmp_path: Path) -> None:
    kept = json.loads((RESULTS / "evaluate.json").read_text())
    assert kept["kind"] == "evaluate"
    study = evaluation(["ppo-mini"], ["mini-fb-hadoop"], ["default"], seeds=1, intervals=8)
    rows = paired_results(study, study.cases[0], produce(study, tmp_path, 1))
    found = {row.name: row.utility.mean for row in rows}
    assert found == {row["name"]: row["utility"]["mean"] for row in kept["rows"]}
