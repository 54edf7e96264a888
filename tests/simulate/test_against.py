"""`simulate --against`: the difference is that of two runs, and nothing else changes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.figures import STATES
from dcqcn_gym.runs.table import number
from dcqcn_gym.simulation.difference import other_setting, run_against
from dcqcn_gym.simulation.page import PAGE, PANELS, series_of
from dcqcn_gym.simulation.run import FILES, Extras, simulate

SCENARIO = ("simulate", "--scenario", "mini-fb-hadoop", "--intervals", "4")
OWN = ("--set", "kmin=20", "--set", "kmax=60")


def command(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return {row["figure"]: row for row in csv.DictReader(handle)}


def test_the_figures_are_those_of_the_two_runs(tmp_path: Path) -> None:
    both, own, default = (tmp_path / name for name in ("both", "own", "default"))
    done = command(*SCENARIO, *OWN, "--out", both, "--against", "default")
    assert done.exit_code == 0, done.output
    assert command(*SCENARIO, *OWN, "--out", own).exit_code == 0
    assert command(*SCENARIO, "--out", default).exit_code == 0
    for name in set(FILES) - {"timing.json", PAGE}:
        assert (both / name).read_bytes() == (own / name).read_bytes()
    here, there = (json.loads((p / "summary.json").read_text()) for p in (own, default))
    table = rows(both / "difference.csv")
    for figure, key in {"utility, mean": "mean_utility", "marks": "marks", "cnps": "cnps"}.items():
        assert float(table[figure]["this"]) == here[key]
        assert float(table[figure]["default"]) == there[key]
        assert float(table[figure]["difference"]) == here[key] - there[key]
    assert here["marks"] != there["marks"]
    mean = table["slowdown all sizes, mean"]
    assert float(mean["this"]) == here["slowdown"]["all"]["mean"]
    assert "against default, same traffic" in done.output
    assert f"{here['marks']:,}".replace(",", "\u202f") in done.output


def test_the_page_shows_both_runs_and_what_was_traced(tmp_path: Path) -> None:
    alone, both = tmp_path / "alone", tmp_path / "both"
    assert command(*SCENARIO, *OWN, "--out", alone).exit_code == 0
    words = ("--against", "expert", "--trace", "queue", "--trace-flows", "none")
    assert command(*SCENARIO, *OWN, "--out", both, *words).exit_code == 0
    page, other = ((folder / PAGE).read_text(encoding="utf-8") for folder in (alone, both))
    assert ("<h2>Over time</h2>" in page, "<h2>Over time</h2>" in other) == (False, True)
    lines = '<g class="series default"'
    assert (page.count(lines), other.count(lines) > 5) == (0, True)
    finished = json.loads((alone / "summary.json").read_text())["finished_flows"]
    assert f">{number(finished)}</td>" in page
    assert '<tr class="changed"' in page  # kmin and kmax
    said = [row[2] for row in csv.reader((both / "difference.csv").open()) if row[0] == "marks"]
    assert f">{number(float(said[0]))}</td>" in other


def test_a_long_run_is_drawn_by_means(tmp_path: Path) -> None:
    path = tmp_path / "intervals.csv"
    states = [f"fsd_{role}" for role in STATES]
    names = ["end_ns", *(column for column, _ in PANELS.values()), *states]
    lines = [",".join(names), *(f"{i},{i}" + ",1" * (len(names) - 2) for i in range(2500))]
    path.write_text("\n".join(lines))
    found = series_of(path)
    assert found["end_ns"].tolist()[:2] == [2.0, 5.0]
    assert found["utility"].tolist()[:2] == [1.0, 4.0]
    assert (len(found["utility"]), found["end_ns"][-1], found["utility"][-1]) == (834, 2499, 2499)


def test_a_setting_against_itself_changes_nothing(tmp_path: Path) -> None:
    done = command(*SCENARIO, "--out", tmp_path, "--against", "initial")
    assert done.exit_code == 0, done.output
    changes = {row["difference"] for row in rows(tmp_path / "difference.csv").values()}
    assert changes <= {"0", "0.0", ""}
    assert not re.search(r"[+−]\d", done.output)


def test_the_picture_stands_alone(tmp_path: Path) -> None:
    assert command(*SCENARIO, *OWN, "--out", tmp_path, "--against", "expert").exit_code == 0
    picture = (tmp_path / "difference.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg ")
    assert 'xmlns="http://www.w3.org/2000/svg"' in picture[:200]
    used, given = (set(re.findall(form, picture)) for form in (r"var\((--\w+)\)", r"(--\w+):"))
    assert used <= given, "a colour that only a page knows"


def test_a_wrong_name_and_a_full_folder_are_found_before_anything_runs(tmp_path: Path) -> None:
    scenario = load_scenario("mini-fb-hadoop")
    with pytest.raises(UnknownNameError, match="default"):
        other_setting("defualt", scenario)
    simulate(scenario, tmp_path, intervals=1)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    done = command(*SCENARIO, "--out", tmp_path, "--against", "default")
    assert done.exit_code != 0
    assert "already holds results" in str(done.exception)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_force_removes_the_files_of_an_earlier_comparison(tmp_path: Path) -> None:
    assert command(*SCENARIO, "--out", tmp_path, "--against", "default").exit_code == 0
    assert command(*SCENARIO, "--out", tmp_path, "--force").exit_code == 0
    assert not list(tmp_path.glob("difference.*"))


def test_a_run_without_traffic_has_no_slowdown_and_no_makespan(tmp_path: Path) -> None:
    path = tmp_path / "idle.toml"
    path.write_text(
        'warmup_us = 0\n[topology]\nkind = "single-switch"\nhosts = 2\n[[workloads]]\n'
        'kind = "flows"\nflows = [[0, 1, 1000, 5_000_000]]\n',
        encoding="utf-8",
    )
    idle = load_scenario(path)
    other = run_against("expert", idle, seed=1, intervals=2, backend="native")
    simulate(idle, tmp_path / "out", intervals=2, extras=Extras(against=other))
    table = rows(tmp_path / "out" / "difference.csv")
    assert table["makespan"]["this"] == table["makespan"]["difference"] == ""
    assert other.table is not None
    assert "makespan, ms" not in [row[0] for row in other.table.rows]
