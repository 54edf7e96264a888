"""`evaluate` gives what the logs of the same runs give, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.core.knobs import default_setting, expert_setting
from dcqcn_gym.core.verdict import flags, scores, summary
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.evaluated import evaluate
from dcqcn_gym.report.judged import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

SEEDS = (3, 4)


@pytest.mark.parametrize("name", ["mini-fb-hadoop", "mini-llm-alltoall", "mini-storm"])
def test_figures_score_and_harms_are_those_of_the_logs(tmp_path: Path, name: str) -> None:
    scenario = load_scenario(name)
    settings = [make(scenario.line_rate_bps) for make in (default_setting, expert_setting)]
    found = evaluate(settings, [scenario], SEEDS, intervals=8)
    logged = []
    for i, setting in enumerate(settings):
        runs = []
        for seed in SEEDS:
            path = tmp_path / f"{i}-{seed}.jsonl"
            run(RunSpec(scenario, "do-nothing", 0, 8).with_setting(setting, seed, 8), path)
            runs.append(measured(Series.of(read_run(path))))
        logged.append(runs)
    ours, theirs = [one[0] for one in found], logged
    assert repr([list(map(summary, runs)) for runs in ours]) == repr(
        [list(map(summary, runs)) for runs in theirs]
    )
    assert repr(scores(ours[1], ours[0])) == repr(scores(theirs[1], theirs[0]))
    assert repr(flags(ours[1], ours[0])) == repr(flags(theirs[1], theirs[0]))
