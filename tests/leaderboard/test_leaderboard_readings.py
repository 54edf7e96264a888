"""What is read of logs: the same results by workers, from a changed log others."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from submissions import Here, small_suite
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard import reading
from dcqcn_gym.benchmarks.leaderboard.log_digests import run_digest
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    Leaderboard,
    cut,
    open_leaderboard,
    start_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.verdict import flags, scores, summary
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run

FILES = ("results.json", "leaderboard.md")


pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Leaderboard:
    """Return a finished leaderboard of two entries, three scenarios and three repetitions."""
    root = tmp_path_factory.mktemp("readings")
    small_suite(root / "tiny", 3, 12, 6, 3)
    board = start_leaderboard(str(root / "tiny"), ["random"], root / "leaderboard")
    assert board.carry_out(executor=Here()) == {}
    return board


@pytest.fixture
def board(made: Leaderboard, tmp_path: Path) -> Leaderboard:
    """Return a copy of that leaderboard."""
    shutil.copytree(made.out, tmp_path / "leaderboard")
    return replace(made, out=tmp_path / "leaderboard")


def written(board: Leaderboard, workers: int = 1) -> dict[str, bytes]:
    write_results(board, workers)
    return {name: (board.out / name).read_bytes() for name in FILES}


@pytest.mark.slow
def test_workers_give_the_same_bytes(board: Leaderboard, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(board)
    monkeypatch.setattr(reading, "FEW", 0)
    monkeypatch.setattr(reading, "AT_ONCE", 2)
    assert written(board, 2) == first


def test_another_log_gives_other_results(board: Leaderboard) -> None:
    first = written(board)
    attempt = board.attempts(board.entries[1])[0]
    log, other = attempt.logs[1], board.attempts(board.entries[1])[-1].logs[1]
    whole = log.read_bytes()
    log.write_bytes(other.read_bytes())
    assert written(board)["results.json"] != first["results.json"]
    log.write_bytes(whole)
    assert written(board) == first
    log.unlink()
    _, notes = write_results(board, 1)
    assert notes == [f"random: 1 run missing; bench run --out {board.out} makes them"]


def test_a_summary_gives_the_score_and_the_flags_of_its_flows(board: Leaderboard) -> None:
    assert board.suite.scenarios
    for scenario in board.suite.scenarios:
        ours, default = (
            [
                measured(Series.of(read_run(attempt.logs[1])))
                for attempt in board.attempts(entry)
                if attempt.scenario.name == scenario
            ]
            for entry in (board.entries[1], board.entries[0])
        )
        short, reference = ([summary(one) for one in runs] for runs in (ours, default))
        assert repr(scores(short, reference)) == repr(scores(ours, default))
        assert repr(flags(short, reference)) == repr(flags(ours, default))


def test_a_digest_leaves_the_header_out_of_the_run() -> None:
    one, two = (run_digest(head + b'\n{"i":0}\n') for head in (b'{"kind":"run"}', b"{}"))
    assert one == two
    assert run_digest(b'{}\n{"i":1}\n') != two


def test_a_leaderboard_cut_short_is_whole_up_to_a_repetition(board: Leaderboard) -> None:
    for attempt in board.attempts():
        if attempt.repetition == 2:
            attempt.logs[1].unlink()
    _, notes = write_results(board, 1)
    assert len(notes) == 2
    done = CliRunner().invoke(app, ["bench", "report", str(board.out), "--repetitions", "2"])
    assert done.exit_code == 0, done.output
    assert "2 repetitions" in done.output
    entries = json.loads((board.out / "results.json").read_text())["rows"]
    assert [(entry["repetitions"], entry["missing"]) for entry in entries] == [(2, 0), (2, 0)]
    assert np.array(list(entries[0]["final"]["scores"].values())).shape == (3, 2)
    assert open_leaderboard(board.out).repetitions == 3  # it can still be resumed as a whole
    with pytest.raises(ConfigError, match="has 3 repetitions, so there are no 4"):
        cut(board, 4)
