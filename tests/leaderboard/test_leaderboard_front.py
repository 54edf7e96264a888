"""The front page of the site: S against harm, the heat map, files to fetch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.site.front import best_trades, front, harm_share
from dcqcn_gym.cli import app

DATA = Path(__file__).parents[2] / "benchmarks" / "leaderboard" / "data"


def test_no_other_entry_beats_one_of_the_front_in_both() -> None:
    points = [(10, 0.3), (0, 0.1), (10, 0.4), (20, 0.4), (5, 0.05), (30, 0.5)]
    assert best_trades(points) == [1, 2, 5]
    assert best_trades([(0, 0.0)]) == [0]


def test_the_chart_the_heat_map_and_the_files(tmp_path: Path) -> None:
    (suite,) = load_suites([DATA / "test-v2"])
    page = front(suite, tmp_path)
    complete = [entry for entry in suite.entries if entry.complete]
    assert page.ranks.count('<a href="entries/test-v2-') >= len(suite.ranks)
    assert page.chart.count('<a href="entries/test-v2-') == len(complete)
    assert BASELINE not in [entry.name for entry, _ in page.heat]
    for entry, cells in page.heat:
        assert len(cells) == len(suite.scenarios)
        marked = 100 * sum(cell.harm for cell in cells) / len(cells)
        assert marked == pytest.approx(harm_share(entry))
        assert all(0 <= cell.part <= 100 and cell.words.startswith(entry.name) for cell in cells)
    assert page.files == [("results.json", "data/test-v2-results.json")]
    assert json.loads((tmp_path / page.files[0][1]).read_text())["rows"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --out KEPT", "without its logs, as it is committed; give another"),
        ("run smoke --tuners expert,expert --out OUT", "'expert' stands twice"),
        ("site KEPT --verdicts OUT --out OUT", "no such folder"),
    ],
)
def test_what_has_no_runs_or_stands_twice_is_refused(tmp_path: Path, words: str, said: str) -> None:
    shutil.copytree(DATA / "test-v2", tmp_path / "kept")
    words = words.replace("KEPT", str(tmp_path / "kept")).replace("OUT", str(tmp_path / "out"))
    done = CliRunner().invoke(app, ["bench", *words.split()])
    assert said in str(done.exception)
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == sorted(
        p.name for p in (DATA / "test-v2").iterdir()
    )
    assert not (tmp_path / "out").exists()


def test_a_terminal_of_ascii_shows_a_table() -> None:
    code = "from dcqcn_gym.runs.command_line import run_command\n"
    code += "run_command(lambda _: print('a\\u2013b'), [])"
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=True)
    assert done.stdout == b"a?b\n"
