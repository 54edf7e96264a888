"""The front page over a folder of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.report.front import write_front
from dcqcn_gym.runs.log import Run


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    recommended = {
        "action": "deploy",
        "setting": "advise",
        "why": "slowdowns are <b>40 %</b> lower",
    }
    best = {"scenario": "mini", "tuner": "tpe", "seed": 3, "intervals": 60}
    put(tmp_path / "b/done/best.json", {**best, "answer": recommended})
    put(tmp_path / "b/done/report.html", "")
    put(tmp_path / "b/done/evaluation/run.jsonl", "inside a run")
    header = {"scenario": {"name": "mini"}, "tuner": "random", "seed": 1, "intervals": 9}
    put(tmp_path / "a going on/run.jsonl", json.dumps(header) + "\n{}\n{}\n")
    put(tmp_path / "c/compare.html", "")
    put(tmp_path / "c/results.json", {"scenarios": {"mini": 1}, "tuners": {"x": 1, "y": 2}})
    put(tmp_path / "d/best.json", "{broken")
    put(tmp_path / "e/sweep.csv", "")
    put(tmp_path / "e/sweep.svg", "")
    put(tmp_path / "e/results.json", {"scenarios": {"mini": 1}, "knobs": ["kmin", "kmax"]})
    return tmp_path


def test_every_run_has_a_row_and_a_link(runs: Path) -> None:
    path, count = write_front(runs)
    page = path.read_text()
    assert count == 5
    assert '<a href="e/sweep.svg">e</a>' in page
    assert "kmin, kmax" in page
    assert '<a href="b/done/report.html">b/done</a>' in page
    assert "deploy advise" in page
    assert "&lt;b&gt;40" in page
    assert "<td>2 of 9</td>" in page
    assert "2 tuners" in page
    assert "inside a run" not in page
    assert page.count('<tr data-name="') == 5


def test_it_is_the_same_when_written_again_and_refuses_what_holds_nothing(runs: Path) -> None:
    done = CliRunner().invoke(app, ["show", str(runs)])
    assert done.exit_code == 0
    first = (runs / "index.html").read_bytes()
    assert write_front(runs)[0].read_bytes() == first
    (runs / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no run"):
        write_front(runs / "empty")
    with pytest.raises(ConfigError, match="is no folder"):
        write_front(runs / "c" / "compare.html")


def test_runs_and_settings_show_themselves_in_notebooks() -> None:
    run = Run(Path("x"), {"scenario": {"name": "<b>"}, "tuner": "tpe", "intervals": 9})
    shown = run._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "0 of 9" in shown
    assert "not known" in shown
    assert "<td>kmin<td>321<td>KB" in default_setting(1e11).replace(kmin=321)._repr_html_()
