"""``compare`` again adds to the comparison that is there, and takes nothing away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.comparison.plan import Plan, added, all_tuners
from dcqcn_gym.core.errors import RunError

HELD = Plan(("mini-fb-hadoop",), ("default", "random"), 3, 5)
SMALL = ("--tuners", "default,expert", "--seeds", "1", "--intervals", "3", "--eval-seeds", "1",
         "--eval-intervals", "2", "--backend", "fake")  # fmt: skip


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ({"tuners": ("random",), "everything": False}, {}),
        ({"tuners": ("expert",), "everything": False},
         {"tuners": ("default", "random", "expert")}),
        ({"scenarios": ("mini-storm", "mini-fb-hadoop")},
         {"scenarios": ("mini-fb-hadoop", "mini-storm")}),
        ({"seeds": 4, "eval_seeds": 2}, {"seeds": 4}),
        ({"tuners": all_tuners(), "everything": True},
         {"tuners": (*HELD.tuners, *(t for t in all_tuners() if t not in HELD.tuners)),
          "everything": True}),
    ],
)  # fmt: skip
def test_what_is_given_adds(given: dict[str, Any], changed: dict[str, Any]) -> None:
    plan = added(HELD, given)
    assert {k: v for k, v in vars(plan).items() if v != getattr(HELD, k)} == changed


@pytest.mark.parametrize("key", ["seeds", "eval_seeds"])
def test_fewer_seeds_are_refused(key: str) -> None:
    with pytest.raises(RunError, match=f"--{key.replace('_', '-')} 1: the comparison has"):
        added(HELD, {key: 1})


def test_a_tuner_of_all_keeps_all() -> None:
    every = Plan(("mini-fb-hadoop",), all_tuners(), 3, 5, everything=True)
    assert added(every, {"tuners": ("default",), "everything": False}) == every
    more = added(every, {"tuners": ("own.py:Mine",), "everything": False})
    assert more.tuners == (*all_tuners(), "own.py:Mine")
    assert "own.py:Mine" in more.command(Path("out"))


def test_a_tuner_that_is_added_stands_beside_the_others(tmp_path: Path) -> None:
    """The table held it alone, with nothing to compare it with."""
    for words in (SMALL, ("--tuners", "secn1")):
        done = CliRunner().invoke(
            app, ["compare", "--quiet", "--jobs", "1", *words, "--out", str(tmp_path)]
        )
        assert done.exit_code == 0, f"{done.output}{done.exception}"
    rows = json.loads((tmp_path / "results.json").read_bytes())["rows"]
    assert {row["tuner"] for row in rows} == {"default", "expert", "secn1"}
