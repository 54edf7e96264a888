"""Trainings of ACC that differ in one choice, judged on the same traffic."""

from __future__ import annotations

from acc_sensitivity import VARIANTS, Sensitivity, Variant, measure


def test_rows_differ_in_one_choice_and_can_be_trained() -> None:
    assert len(VARIANTS) == 8
    for name, change in VARIANTS.items():
        assert len(change) == (name != "as shipped"), name
    narrow = Variant(("mini-fb-hadoop",), history=1)
    assert narrow.sizes(0) == (5, 40, 40, 20)
    env = narrow.env_at(0.5, 2)
    assert env.observation_space("port:16:0").shape == (5,)
    env.close()


def test_a_small_measurement() -> None:
    plan = Sensitivity(trainings=2, decisions=4, seeds=1, intervals=2)
    rows = ("as shipped", "D(L): one step at 160 KB")
    table = measure(plan, rows, report=lambda _: None)
    assert table.columns == ("choice", "30% load", "50% load")
    assert [row[0] for row in table.rows] == list(rows)
    assert "[" not in table.rows[0][1]
    assert "[" in table.rows[1][2]
    assert measure(plan, rows, report=lambda _: None) == table  # same seeds, same figures
