"""A recommendation per group of devices on the report page."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report import build_report
from dcqcn_gym.report.tables import group_table
from dcqcn_gym.runs.log import RunDir
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec


def test_only_knobs_that_differ_are_columns() -> None:
    base = dict(default_setting())
    found = group_table({"cluster": base, "tor": {**base, "kmin": 33.0}, "spine": base})
    assert found is not None
    assert found.columns == ("kmin [KB]",)
    assert found.lines == (("cluster", (400.0,)), ("tor", (33.0,)), ("spine", (400.0,)))
    assert group_table(base) is None
    other = group_table({"cluster": {"gap": 1.0}, "tor": {"gap": 2.0}})  # of another scheme
    assert other is not None
    assert other.columns == ("gap",)


def test_the_page_shows_every_group(tmp_path: Path) -> None:
    scenario = load_scenario("mini-fb-hadoop")
    groups = {"groups": {"tor-uplinks": {"kmin": 33}, "spine": {"pmax": 0.77}}}
    directory = RunDir(tmp_path)
    run(RunSpec(scenario, "fixed", 1, 2, "fake", groups), directory.log)
    page = build_report(tmp_path).read_text()
    assert "Groups of devices" in page
    for text in ("tor-uplinks", "spine", "kmin [KB]", "pmax", ">33<", ">0.77<"):
        assert text in page
    assert "kmax [" not in page  # the same everywhere
    run(RunSpec(scenario, "default", 1, 2, "fake"), directory.log)
    assert "Groups of devices" not in build_report(tmp_path).read_text()
