"""Several runs in one table: who did what, by its held-out runs or those of the same setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.verdict import scores
from dcqcn_gym.report.answer import percent_text
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.runs_table import runs_table
from programs import runs_in_threads


def _tuned(out: Path, tuner: str, *more: str) -> None:
    words = ["tune", "--scenario", "mini-fb-hadoop", "--tuner", tuner, "--intervals", "6"]
    words += ["--eval-intervals", "5", "--quiet", "--no-report", "--out", str(out), *more]
    with runs_in_threads():
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of keeper that tried nothing on held-out traffic."""
    out = tmp_path_factory.mktemp("kept") / "run"
    _tuned(out, "keeper", "--eval-seeds", "0")
    return out


def test_search_keeper_and_references_stand_in_one_table(tmp_path: Path, kept: Path) -> None:
    search = tmp_path / "search"
    _tuned(search, "random", "--eval-seeds", "2")
    data = [load_report_data(one) for one in (search, kept)]
    rows = {row[0]: row[1:] for row in runs_table(data).rows}
    assert list(rows) == [
        "random, as it ran", "keeper, as it ran", "what random found",
        "what keeper found: the rule's setting (advise)", "the experts' setting",
    ]  # fmt: skip
    ours, theirs = (measured(s) for s in (data[1].run, data[1].references["default"]))
    assert rows["keeper, as it ran"][0] == percent_text(scores([ours], [theirs]))
    of = {name: [measured(one) for one in runs] for name, runs in data[0].tried.items()}
    held = rows["what keeper found: the rule's setting (advise)"]
    assert held[0] == percent_text(scores(of["advise"], of["default"]))  # tried by the other run
    assert held[2] in ("deploy", "a choice", "cannot tell", "–")
    done = CliRunner().invoke(app, ["report", str(search), str(kept)])
    assert done.exit_code == 0, done.output
    assert "keeper, as it ran" in done.output


def test_what_nobody_tried_on_fresh_traffic_says_so(kept: Path) -> None:
    (_, row) = runs_table([load_report_data(kept)]).rows
    assert row[:2] == ["what keeper found", "not tried on held-out traffic"]


@pytest.mark.parametrize("other", [["--seed", "2"], ["--scenario", "mini-storm"]])
def test_runs_on_other_traffic_are_refused(tmp_path: Path, kept: Path, other: list[str]) -> None:
    _tuned(tmp_path / "b", "keeper", "--eval-seeds", "0", *other)
    done = CliRunner().invoke(app, ["report", str(kept), str(tmp_path / "b")])
    assert done.exit_code != 0
    assert "expected the same of each" in str(done.exception)
