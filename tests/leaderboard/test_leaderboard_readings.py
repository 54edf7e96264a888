"""What was read of logs is kept: the same results with it, without it, and by workers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from submissions import Here, small_suite
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard import cached_readings
from dcqcn_gym.benchmarks.leaderboard.cached_readings import Readings
from dcqcn_gym.benchmarks.leaderboard.log_digests import log_digest
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    Leaderboard,
    cut,
    open_leaderboard,
    start_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.reading import read_stage, reading_of, table_of
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


def test_the_same_bytes_with_what_was_kept_and_without(
    board: Leaderboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(board)
    kept = {path.name for path in (board.out / "read").iterdir()}
    assert kept == {"default.json", "random.json"}
    monkeypatch.setattr(cached_readings, "read_stage", None)  # nothing is read a second time
    assert written(board) == first
    monkeypatch.undo()
    shutil.rmtree(board.out / "read")
    assert written(board) == first


@pytest.mark.slow
def test_workers_give_the_same_bytes(board: Leaderboard, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(board)
    shutil.rmtree(board.out / "read")
    monkeypatch.setattr(cached_readings, "FEW", 0)
    monkeypatch.setattr(cached_readings, "AT_ONCE", 2)
    assert written(board, 2) == first


def test_a_log_that_changed_is_read_again(board: Leaderboard) -> None:
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


def test_cached_readings_that_are_damaged_or_of_other_code_count_for_nothing(
    board: Leaderboard,
) -> None:
    def seen() -> str:
        return repr([str(one) for one in Readings(board, keep=True).of(board.entries[1]).values()])

    first, path = seen(), board.out / "read" / "random.json"
    kept = path.read_bytes()
    told = json.loads(kept)
    for entry in told["logs"].values():
        entry["reading"]["whole"][2] *= 2  # goodput, by other code
    other = json.dumps({**told, "code": "0" * 64})
    for damage in ("", "{", "[]", '{"code": "x", "logs": 3}', other):
        path.write_text(damage)
        assert seen() == first
        assert path.read_bytes() == kept


def test_a_reading_survives_its_table(board: Leaderboard) -> None:
    attempts = board.attempts()
    assert attempts
    for attempt in attempts:
        one = read_stage(attempt.logs[0], curve=True)
        assert one is not None
        again = reading_of(json.loads(json.dumps(table_of(one), allow_nan=False)))
        for a, b in zip([one.whole, *one.so_far], [again.whole, *again.so_far], strict=True):
            assert repr(a) == repr(b)  # NaN is NaN
        assert np.array_equal(one.utility, again.utility)
        assert (one.wire_bytes, one.recommended) == (again.wire_bytes, again.recommended)


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
    one, two = (log_digest(head + b'\n{"i":0}\n') for head in (b'{"kind":"run"}', b"{}"))
    assert one.run == two.run
    assert one.file != two.file
    assert log_digest(b'{}\n{"i":1}\n').run != two.run


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


def test_nothing_is_kept_of_logs_that_are_only_scored(board: Leaderboard) -> None:
    found = Readings(board).of(board.entries[1])
    assert len(found) == 2 * 3 * 3
    assert not (board.out / "read").exists()
