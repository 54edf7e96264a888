"""A run folder of HPCC's simulator: taken, run here, written again, run on ns-3; all is equal."""

from __future__ import annotations

import sys
from pathlib import Path

from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.parity import compare, run
from dcqcn_gym.extras.traffic.exchange.exporting import export_hpcc
from dcqcn_gym.extras.traffic.exchange.hpcc_folder import import_hpcc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "traffic"))
from run_folders import hpcc_folder


def taken(folder: Path, out: Path) -> Scenario:
    out.mkdir()
    for name, text in import_hpcc(folder)[0].items():
        (out / name).write_text(text, encoding="utf-8")
    return load_scenario(out / "scenario.toml")


def test_a_folder_gives_the_same_completion_times_on_both(tmp_path: Path) -> None:
    mine = taken(hpcc_folder(tmp_path / "run"), tmp_path / "mine")
    again = tmp_path / "again"
    again.mkdir()
    for name, text in export_hpcc(mine)[0].items():
        (again / name).write_text(text, encoding="utf-8")
    theirs = taken(again, tmp_path / "theirs")
    setting = mine.initial_setting()
    assert theirs.initial_setting() == setting
    native = run("native", mine, 1, mine.intervals, setting)
    ns3 = run("ns3", theirs, 1, theirs.intervals, setting)
    found = compare(mine, 1, native, ns3)
    assert found.identical
    assert found.fct_max == 0.0
    assert found.flows == (10, 10)
    assert found.marks[0] > 0
