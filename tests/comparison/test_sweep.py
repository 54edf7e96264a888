"""Sweeps: axes by hand, results that are the logs' own, resume, surfaces, bad input, directions."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.papers.tuned import under_setting
from dcqcn_gym.cli import app
from dcqcn_gym.comparison.grid import Grid, parse_axis, values_over
from dcqcn_gym.comparison.plan import Case
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import KNOBS
from dcqcn_gym.report.metrics import METRICS, metric
from dcqcn_gym.report.surface import Surface, surface_file
from dcqcn_gym.runs.trials import carry_out
from programs import runs_in_threads

CASE = Case(scenario="mini-llm-alltoall")
MINI = CASE.loaded
KMAX = parse_axis("kmax=100,400", MINI)
GRID = Grid(CASE, MINI.initial_setting(), [KMAX])


def sweep(*words: str) -> tuple[int, str]:
    with runs_in_threads():
        found = CliRunner().invoke(app, ["sweep", "--quiet", "--jobs", "1", *words])
    error = found.exception
    said = str(error) if error is not None and not isinstance(error, SystemExit) else ""
    return found.exit_code, found.output + said


def test_axes() -> None:
    assert parse_axis("kmax=400, 100", MINI).values == (100, 400)
    assert parse_axis("RPG_TIME_RESET=10..1000", MINI, 3).values == (10, 100, 1000)
    assert parse_axis("kmax=800..200", MINI, 3).values == pytest.approx((200, 400, 800))
    assert values_over(KNOBS["rp_gd"], 10, 13, 8) == (10, 11, 12, 13)
    whole = parse_axis("kmax", MINI).values
    assert (whole[0], whole[-1]) == KNOBS["kmax"].tuned_at(25e9)
    for text, said in (
        ("kmax=1,x", "'x' is no number"),
        ("kmax=", "expected KNOB"),
        ("kmax=100..", "expected KNOB"),
        ("kmax=200,200", "200 is there twice"),
        ("rp_gd=99", "rp_gd"),
        ("kmax=400,400.00000000001", "400 is there twice"),
        ("pmax=0.1,2", "pmax = 2 probability is out of range; expected 0 to 1"),
    ):
        with pytest.raises(ConfigError, match=said):
            parse_axis(text, MINI)
    with pytest.raises(UnknownNameError, match="did you mean 'kmax'"):
        parse_axis("kmxa", MINI)
    with pytest.raises(UnknownNameError, match="did you mean 'rtt'"):
        metric("rt")


def test_knobs_stand_to_each_other_as_at_the_points() -> None:
    """What the scenario has of the other threshold does not count where a sweep sets it."""
    base = MINI.initial_setting().replace({"kmax": 3000})
    low, high = (parse_axis(text, MINI) for text in ("kmin=1000,2000", "kmax=2000,4000"))
    Grid(CASE, base, [low]).plan(1, 1)
    Grid(CASE, MINI.initial_setting(), [low, high]).plan(1, 1)
    with pytest.raises(ConfigError, match=r"kmin = 1000 KB is larger .* at every point"):
        Grid(CASE, MINI.initial_setting(), [low]).plan(1, 1)
    with pytest.raises(ConfigError, match=r"kmin = 2000 KB is larger than kmax = 1500 KB"):
        Grid(CASE, base, [low, parse_axis("kmax=1500", MINI)]).plan(1, 1)


def test_points_are_runs_of_their_settings(tmp_path: Path) -> None:
    study = GRID.study(GRID.plan(seeds=2, intervals=2), tmp_path)
    study.begin(tmp_path)
    assert not carry_out(study.jobs.values(), 1)
    found = GRID.metrics(study)
    assert set(found) == {((kmax,), seed) for kmax in (100.0, 400.0) for seed in (1, 2)}
    alone, hops = under_setting(MINI, GRID.setting((100.0,)), 2, 2)
    assert alone == pytest.approx(found[(100.0,), 2], nan_ok=True)
    assert hops > 0
    assert found[(100.0,), 1]["throughput"] != found[(400.0,), 1]["throughput"]


def test_the_command_writes_curves(tmp_path: Path) -> None:
    words = ["--knob", "kmax=100,400", "--set", "kmin=50", "--seeds", "2", "--intervals", "2"]
    words += ["--out", str(tmp_path), "--metric", "throughput,utility"]
    code, said = sweep(*words)
    assert code == 0, said
    assert "throughput, Gb/s" in said
    with (tmp_path / "sweep.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [(row["kmax"], row["seed"]) for row in rows] == [
        ("100", "1"), ("100", "2"), ("400", "1"), ("400", "2"),
    ]  # fmt: skip
    assert set(METRICS) < set(rows[0])
    results = json.loads((tmp_path / "results.json").read_bytes())
    first = results["rows"][0]
    mean = np.mean([float(row["throughput"]) for row in rows[:2]])
    assert first["throughput"]["mean"] == pytest.approx(mean, rel=1e-6)
    picture = (tmp_path / "sweep.svg").read_text()
    assert picture.count('class="line"') == 2
    names = ("sweep.csv", "results.json", "sweep.svg")
    before = {name: (tmp_path / name).read_bytes() for name in names}
    assert sweep(*words)[0] == 0
    assert {name: (tmp_path / name).read_bytes() for name in names} == before


def test_the_command_writes_surfaces(tmp_path: Path) -> None:
    words = ["--knob", "kmax=100,400,800", "--knob", "rp_time_reset=50,300", "--backend", "fake"]
    code, said = sweep(*words, "--seeds", "1", "--intervals", "2", "--out", str(tmp_path))
    assert code == 0, said
    picture = (tmp_path / "sweep.svg").read_text()
    assert picture.count("<rect") == 1 + 2 * (6 + 1)  # paper, cells and a scale
    assert "kmax and rp_time_reset, 1 seeds" in picture
    assert picture.count("more is better") == picture.count("less is better") == 1
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 1 + 6


def test_a_surface_shades_from_least_to_most_and_leaves_holes() -> None:
    values = np.array([[1.0, 2.0], [np.nan, 3.0]])
    even = np.array([[True, False], [False, False]])
    for better, dark in ((1, "3"), (-1, "≈ 1")):
        one = Surface("<t>", values, better, even)
        text = surface_file("<all>", [one], ("a", ["1", "2"]), ("b", ["x", "y"]))
        (found,) = re.findall(r'<rect [^>]*fill="#0b62d6"/><text [^>]*>([^<]*)<', text)
        assert found == dark
        assert text.count('fill="#e9f0fb"') == 1
        assert "&lt;t&gt;" in text
        assert "&lt;all&gt;" in text
        assert ">nan<" not in text


def test_what_is_not_told_from_the_best_is_marked(tmp_path: Path) -> None:
    words = ["--knob", "kmax=100,400,800", "--knob", "kmin=10,50", "--scenario", "mini-storm"]
    words += ["--intervals", "3", "--seeds", "3", "--metric", "throughput,cnps", "--jobs", "1"]
    code, said = sweep(*words, "--out", str(tmp_path))
    assert code == 0, said
    throughput, cnps = (tmp_path / "sweep.svg").read_text().split(">CNPs<")
    assert 1 <= throughput.count(">≈ ") <= 5
    assert ">≈ " not in cnps  # neither more nor less of them is good


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--knob", "kmax", "--knob", "kmin", "--knob", "pmax"], "one or two knobs"),
        (["--knob", "kmax=400,800", "--knob", "kmax=400"], "names kmax twice"),
        (["--knob", "kmax", "--metric", "thruput"], "did you mean 'throughput'"),
        (["--knob", "kmax", "--scenario", "mini-fb"], "mini-fb"),
        (["--knob", "kmax", "--set", "tor:kmax=800"], "leave the group out"),
        (["--knob", "kmax=1..50"], "kmin must be at most kmax at every point"),
        (["--knob", "kmin", "--set", "kmax=150"], "kmin must be at most kmax at every point"),
    ],
)
def test_the_command_says_what_is_wrong(words: list[str], said: str, tmp_path: Path) -> None:
    code, output = sweep(*words, "--out", str(tmp_path / "a"))
    assert code != 0
    assert said in output
    assert not (tmp_path / "a").exists()
