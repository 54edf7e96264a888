"""The front page of the site: its sentence, its figure, the heat map, files to fetch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.bootstrap import Score
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.site.front import front, sentence
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteSuite
from dcqcn_gym.cli import app

DATA = Path(__file__).parents[2] / "benchmarks" / "leaderboard" / "data"


def test_the_sentence_the_figure_the_heat_map_and_the_files(tmp_path: Path) -> None:
    (suite,) = load_suites([DATA / "season-1"])
    page = front(suite, tmp_path)
    complete = [entry for entry in suite.entries if entry.complete]
    assert page.chart.count('<a href="entries/season-1-') == len(complete)
    assert page.chart.count('class="panel"') == 2  # schemes are a division of their own
    assert page.sentence.startswith("Try keeper first: it gains ")
    assert "harm is seen on 3 of 42 scenarios" in page.sentence
    assert BASELINE not in [entry.name for entry, _ in page.heat]
    for entry, cells in page.heat:
        assert len(cells) == len(suite.scenarios)
        assert entry.harm is not None
        assert sum(cell.harm for cell in cells) / len(cells) == pytest.approx(entry.harm.share)
        assert all(0 <= cell.part <= 100 and cell.words.startswith(entry.name) for cell in cells)
    assert [name for name, _ in page.files if name != "ranking.parquet"] == [
        "ranking.csv", "results.json"
    ]  # fmt: skip
    assert json.loads((tmp_path / dict(page.files)["results.json"]).read_text())["rows"]
    lines = (tmp_path / dict(page.files)["ranking.csv"]).read_text().splitlines()
    assert len(lines) == 1 + len(suite.entries)


def with_risks(suite: SiteSuite, risks: dict[str, float]) -> SiteSuite:
    """Return the suite with these entries alone, their intervals a tenth wide."""
    entries = []
    for name, value in risks.items():
        entry = suite.entry(name)
        assert entry is not None
        online = entry.line.stage("online").model_copy(
            update={"risk": Score(value=value, low=value - 0.05, high=value + 0.05)}
        )
        line = entry.line.model_copy(update={"online": online})
        entries.append(replace(entry, line=line))
    return replace(suite, entries=entries)


@pytest.mark.parametrize(
    ("risks", "words"),
    [
        ({"keeper": 0.2, "expert": -0.2, "tpe": 0.0}, "Try keeper first: it gains 18 % [14, 22]"),
        ({"keeper": 0.2, "expert": -0.2, "tpe": 0.0}, "1 of 3 cannot be told from the default, 1 "),
        ({"expert": -0.2, "tpe": 0.04}, "Nothing gains more than chance would: 1 of 2"),
        ({"default": 0.0, "default-on-timely": 0.5}, "No entry beside the default is complete."),
    ],
)
def test_the_sentence_says_what_to_try_and_what_nobody_can_tell(
    risks: dict[str, float], words: str
) -> None:
    (suite,) = load_suites([DATA / "season-1"])
    assert words in sentence(with_risks(suite, risks))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --out KEPT", "without its logs, as it is committed; give another"),
        ("run smoke --tuners expert,expert --out OUT", "expert is given twice"),
        ("site KEPT --verdicts OUT --out OUT", "no such folder"),
    ],
)
def test_what_has_no_runs_or_stands_twice_is_refused(tmp_path: Path, words: str, said: str) -> None:
    shutil.copytree(DATA / "season-1", tmp_path / "kept")
    words = words.replace("KEPT", str(tmp_path / "kept")).replace("OUT", str(tmp_path / "out"))
    done = CliRunner().invoke(app, ["bench", *words.split()])
    assert said in str(done.exception)
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == sorted(
        p.name for p in (DATA / "season-1").iterdir()
    )
    assert not (tmp_path / "out").exists()


def test_a_terminal_of_ascii_shows_a_table() -> None:
    code = "from dcqcn_gym.runs.command_line import run_command\n"
    code += "run_command(lambda _: print('a\\u2013b'), [])"
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=True)
    assert done.stdout == b"a?b\n"
