"""The comparison of ACC with its rows: same traffic, continued where it stopped."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.benchmarks.acc_rows import SCENARIOS, AccPlan, untrained
from dcqcn_gym.tuners.acc import load_network


def test_rows_differ_in_the_tuner_alone(tmp_path: Path) -> None:
    plan = AccPlan(tmp_path)
    assert len({row.name for row in plan.rows()}) == len(plan.rows()) == 9
    jobs = [plan.job("50 % (held out)", row, 7) for row in plan.rows()]
    assert len({job.path for job in jobs}) == 9
    assert len({job.spec.scenario.model_dump_json() for job in jobs}) == 1
    scenario = jobs[0].spec.scenario
    assert scenario.monitor_interval_us == 500.0
    assert scenario.model_dump()["workloads"][0]["load"] == 0.5
    assert set(SCENARIOS) >= {"mini-llm-alltoall", "20 % (held out)"}


def test_one_run_of_the_plan(tmp_path: Path) -> None:
    plan = AccPlan(tmp_path, intervals=2)
    untrained(tmp_path / "untrained.npz")
    row = next(row for row in plan.rows() if row.name == "acc, untrained")
    job = plan.job("20 % (held out)", row, 3)
    job.path.parent.mkdir(parents=True)
    assert 0 < job.run().end["mean_utility"] < 1
    assert load_network(str(tmp_path / "untrained.npz")).meta.steps == 0
