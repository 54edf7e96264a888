"""Rankings of tuners under several alphas of PFC."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.benchmarks.alpha_rows import ALPHAS, AlphaPlan, measure


def test_one_row_under_every_alpha(tmp_path: Path) -> None:
    plan = AlphaPlan(tmp_path, ("mini-storm",), ("default",), 1, 2)
    (table,) = measure(plan, 1)
    assert table.columns == ("mini-storm", "1/16", "1/8", "1/4", "1/2", "computed = 1")
    assert [row[0] for row in table.rows] == ["default", "same order as 1/8"]
    assert len(set(table.rows[0][1:])) > 2  # alpha matters in a pause storm
    assert plan.job("mini-storm", "1/2", "default", 7).spec.scenario.alpha == ALPHAS["1/2"]
