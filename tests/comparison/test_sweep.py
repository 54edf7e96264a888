"""Sweeps: axes by hand, results that are the logs' own, resume, surfaces, bad input, directions."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.comparison.study.plan import Case
from dcqcn_gym.comparison.sweep.directions import (
    Line,
    directions,
    directions_table,
    grid_of,
    grids_of,
    measure_directions,
    read_directions,
)
from dcqcn_gym.comparison.sweep.plan import Grid, measured, parse_axis, produce, values_over
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.core.knobs import KNOBS
from dcqcn_gym.report.metrics import METRICS, metric
from dcqcn_gym.report.surface import Surface, surface_file

ROOT = Path(__file__).resolve().parents[2]
CASE = Case(scenario="mini-llm-alltoall")
MINI = CASE.loaded
KMAX = parse_axis("kmax=100,400", MINI)
GRID = Grid(CASE, MINI.initial_setting(), [KMAX])
STUDY = GRID.study(seeds=2, intervals=2)


def sweep(*words: str) -> tuple[int, str]:
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
    Grid(CASE, base, [low]).study(1, 1)
    Grid(CASE, MINI.initial_setting(), [low, high]).study(1, 1)
    with pytest.raises(ConfigError, match=r"kmin = 1000 KB is larger .* at every point"):
        Grid(CASE, MINI.initial_setting(), [low]).study(1, 1)
    with pytest.raises(ConfigError, match=r"kmin = 2000 KB is larger than kmax = 1500 KB"):
        Grid(CASE, base, [low, parse_axis("kmax=1500", MINI)]).study(1, 1)


def test_points_are_runs_of_their_settings_and_a_sweep_goes_on(tmp_path: Path) -> None:
    found = produce(GRID, STUDY, tmp_path, workers=1)
    assert set(found) == {((kmax,), seed) for kmax in (100.0, 400.0) for seed in (1, 2)}
    alone, hops = measured(MINI, GRID.setting((100.0,)), 2, 2)
    assert alone == pytest.approx(found[(100.0,), 2], nan_ok=True)
    assert hops > 0
    assert found[(100.0,), 1]["throughput"] != found[(400.0,), 1]["throughput"]

    logs = {path: path.read_bytes() for path in tmp_path.rglob("seed*.jsonl")}
    assert len(logs) == 4
    torn, whole = sorted(logs)[:2]
    torn.write_bytes(logs[torn][:-300])
    before = whole.stat().st_mtime_ns
    more = replace(GRID, axes=[parse_axis("kmax=100,200,400", MINI)])
    again = produce(more, more.study(2, 2), tmp_path, workers=1)
    assert torn.read_bytes() == logs[torn]
    assert whole.stat().st_mtime_ns == before
    assert all(again[key] == pytest.approx(found[key], nan_ok=True) for key in found)
    for other, intervals, what in ((GRID, 3, "intervals"), (_hadoop(), 2, "scenario")):
        with pytest.raises(RunError, match=f"holds a sweep with another {what}"):
            produce(other, other.study(2, intervals), tmp_path, workers=1)
    (tmp_path / "sweep.json").write_text('{"scenario": "a"}')
    with pytest.raises(RunError, match=r"sweep.json: .* or --force to replace it"):
        produce(GRID, STUDY, tmp_path, workers=1)
    produce(GRID, GRID.study(2, 1), tmp_path, workers=1, force=True)


def _hadoop() -> Grid:
    other = Case(scenario="mini-fb-hadoop")
    return Grid(other, other.loaded.initial_setting(), [KMAX])


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


# --- directions


def _lines(knob: str, tp: dict[float, float], rtt: dict[float, float]) -> list[Line]:
    return [Line(knob, v, s, tp[v] * s, rtt[v] * s) for v in tp for s in (1, 2, 3)]


def test_directions_by_hand() -> None:
    """Kmax as the table has it, time_reset the other way round, gd without any effect."""
    lines = _lines("kmax", {1: 1, 2: 2, 3: 3}, {1: 5, 2: 6, 3: 7})
    lines += _lines("rp_time_reset", {1: 1, 2: 2, 3: 3}, {1: 5, 2: 5, 3: 5})
    lines += _lines("rp_gd", {1: 1, 2: 1.005, 3: 1}, {1: 5, 2: 5, 3: 5.01})
    found = {one.knob.name: one for one in directions(lines)}
    assert found["kmax"].verdict == "agrees: throughput and delay"
    assert found["rp_time_reset"].verdict == "disagrees: throughput"
    assert found["rp_gd"].verdict == "no effect here"
    assert found["kmax"].tp_change.mean == pytest.approx(2.0)
    mixed = [replace(one, tp=one.tp if one.seed < 3 else 1 / one.tp) for one in lines[:9]]
    (unclear,) = directions(mixed)
    assert unclear.verdict == "agrees: delay"


def test_the_kept_directions_are_of_every_knob_and_value() -> None:
    lines = read_directions()
    for name, knob in KNOBS.items():
        # numpy's pow may differ in a last digit from that of the machine that measured
        values = {f"{line.value:.12g}" for line in lines if line.knob == name}
        assert values == {f"{value:.12g}" for value in grid_of(knob, CASE).axes[0].values}
        assert {line.seed for line in lines if line.knob == name} == set(range(1, 6))


def test_a_file_without_directions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"knob": "kmax"}\n')
    with pytest.raises(RunError, match="holds no measurement of directions"):
        read_directions(tmp_path / "a.jsonl")


@pytest.mark.slow
def test_directions_are_measured_for_every_knob(tmp_path: Path) -> None:
    lines = measure_directions(grids_of(CASE, 2), 2, 1, tmp_path, workers=2)
    assert len(lines) == 2 * 2 * len(KNOBS)
    assert len(directions_table(directions(lines)).rows) == len(KNOBS)


@pytest.mark.slow
def test_the_kept_directions_come_out_again() -> None:
    kept = {(line.knob, line.value, line.seed): line for line in read_directions()}
    grid = grid_of(KNOBS["rp_gd"], CASE)
    assert len(grid.points) > 1
    for point in grid.points:
        values, _ = measured(MINI, grid.setting(point), 1, 20)
        line = kept["rp_gd", point[0], 1]
        assert values["throughput"] == pytest.approx(line.tp, rel=1e-5)
        assert values["rtt"] == pytest.approx(line.rtt, rel=1e-5)


def test_the_pages_say_what_was_measured() -> None:
    """Where the measurement disagrees with the knob table, docs/knobs.md names the knob."""
    found = directions(read_directions())
    assert [one.knob.name for one in found] == list(KNOBS)
    page = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")
    assert directions_table(found).markdown() in page
    knobs = (ROOT / "docs" / "knobs.md").read_text(encoding="utf-8")
    (said,) = (part for part in knobs.split("\n\n") if part.startswith("**Measured directions.**"))
    for one in found:
        disagrees = one.verdict.startswith("disagrees")
        assert (f"`{one.knob.name}`" in said) == disagrees, one.knob.name
