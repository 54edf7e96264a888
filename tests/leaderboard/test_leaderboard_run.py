"""A leaderboard from start to table: paired traffic, resume to equal bytes, one clear sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from submissions import Here, three_scenarios
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.entry_text import asked_entries
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    Leaderboard,
    open_leaderboard,
    start_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.scoring import score_entries
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import (
    ConfigError,
    DcqcnGymError,
    RunError,
    UnknownNameError,
)
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.log import LogWriter, read_run
from dcqcn_gym.tuners import policy


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return three_scenarios(tmp_path_factory.mktemp("suite") / "tiny")


@pytest.fixture(scope="module")
def board(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Leaderboard:
    """Return a finished leaderboard of three entries."""
    board = start_leaderboard(suite, ["expert", "random"], tmp_path_factory.mktemp("leaderboard"))
    assert board.carry_out(executor=Here()) == {}
    return board


def logs(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))
    }


def test_every_entry_meets_the_same_traffic(board: Leaderboard) -> None:
    headers = {
        (a.scenario.name, a.repetition, a.entry.name): tuple(read_run(p).header for p in a.logs)
        for a in board.attempts()
    }
    for (scenario, repetition, _), (online, final) in headers.items():
        default = headers[scenario, repetition, "default"]
        assert (online["seed"], final["seed"]) == (default[0]["seed"], default[1]["seed"])
        assert online["seed"] != final["seed"]
        assert online["tuner_seed"] != online["seed"]
        assert online["tuner_seed"] == default[0]["tuner_seed"]
        assert "tuner_seed" not in final
    assert len({h[0]["seed"] for h in headers.values()}) == 3 * 2


def test_the_default_scores_nothing_and_others_are_paired_with_it(board: Leaderboard) -> None:
    entries = {entry.name: entry for entry in score_entries(board)}
    assert list(entries) == ["default", "expert", "random"]
    for part in entries["default"].parts.values():
        assert np.all(part.score == 0)
        assert not part.harm.share
    # a static entry recommends what it ran with
    expert = entries["expert"].parts
    assert expert["online"].score.shape == (3, 2)
    assert np.any(expert["online"].score != 0)


def test_results_follow_from_the_logs_alone(board: Leaderboard) -> None:
    tables, remarks = write_results(board)
    first = {p.name: p.read_bytes() for p in board.out.iterdir() if p.is_file()}
    write_results(open_leaderboard(board.out))
    assert {p.name: p.read_bytes() for p in board.out.iterdir() if p.is_file()} == first
    assert not remarks
    assert tables[0].title.startswith("tiny: 3 scenarios, 2 repetitions")
    results = json.loads(first["results.json"])
    assert {entry["entry"] for entry in results["rows"]} == {"default", "expert", "random"}
    assert results["figures"]["suite_digest"] == board.suite.digest


def test_a_cut_leaderboard_is_resumed_to_equal_bytes(
    board: Leaderboard, suite: str, tmp_path: Path
) -> None:
    other = start_leaderboard(suite, ["expert", "random"], tmp_path)
    first, second, *_ = other.attempts()
    other.carry_out(workers=2)
    whole = logs(other.out)
    assert whole == logs(board.out)
    for path in (first.logs[0], second.logs[1]):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
    first.logs[1].unlink()
    _, remarks = write_results(other)
    assert [r.partition(";")[0] for r in remarks] == [
        "default: 2 runs missing", "expert: 1 run missing"
    ]  # fmt: skip
    assert open_leaderboard(other.out).carry_out(executor=Here()) == {}
    assert logs(other.out) == whole


def test_the_same_continues_more_is_added_other_is_refused(suite: str, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def names(tuners: list[str], **given: Any) -> tuple[list[str], int]:
        board = start_leaderboard(given.pop("suite", suite), tuners, out, **given)
        return [entry.name for entry in board.entries], board.repetitions

    assert names(["expert"], repetitions=1) == (["default", "expert"], 1)
    more = ["default", "expert", "do-nothing"]
    assert names(["do-nothing"]) == (more, 1)
    mark = open_leaderboard(out).attempts()[1].logs[0]
    mark.parent.mkdir(parents=True)
    mark.write_text("kept")
    assert names(["expert"], repetitions=2) == (more, 2)
    assert mark.read_text() == "kept"
    with pytest.raises(RunError, match=r'was made with suite = "tiny", now it is "smoke"'):
        names(["expert"], suite="smoke")
    with pytest.raises(RunError, match=r"with entry expert, slow = false, now it is true"):
        names(["expert"], slow=["expert"])
    assert names(["random"], force=True) == (["default", "random"], 2)
    assert names(["expert"], force=True, repetitions=1) == (["default", "expert"], 1)
    assert not mark.exists()


@pytest.mark.slow
def test_an_entry_may_run_another_scheme_and_a_slow_one_fewer_times(
    suite: str, tmp_path: Path
) -> None:
    entries = ["default@dcqcn-plus", "random"]
    board = start_leaderboard(suite, entries, tmp_path, slow=["random"], repetitions=2)
    assert [a.title for a in open_leaderboard(tmp_path).attempts()] == [
        a.title for a in board.attempts()
    ]
    assert board.carry_out(executor=Here()) == {}
    times = [(entry.name, len(board.attempts(entry))) for entry in board.entries]
    assert times == [("default", 6), ("default-on-dcqcn-plus", 6), ("random", 3)]
    other = board.attempts(board.entries[1])[0]
    assert read_run(other.logs[0]).header["scenario"]["scheme"]["name"] == "dcqcn-plus"
    tables, _ = write_results(board)
    assert {"random", "default-on-dcqcn-plus"} < {row[1] for row in tables[0].rows}
    scores = {entry.name: entry.parts["final"].score for entry in score_entries(board)}
    assert scores["random"].shape == (3, 1)
    assert np.any(scores["default-on-dcqcn-plus"] != 0)


def test_an_entry_may_be_a_shipped_policy(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    for name in ("ppo-mini", "ppo-mine"):
        shutil.copy(policy.FOLDER / "ppo-mini.npz", folder / f"{name}.npz")
    monkeypatch.setattr(policy, "FOLDER", folder)
    entries = list(asked_entries(["ppo-mine", "ppo-mini"]).values())
    assert [(entry.name, entry.tuner, entry.tuner_args) for entry in entries] == [
        ("ppo-mine", "policy", {"file": "ppo-mine"}), ("ppo-mini", "ppo-mini", {}),
    ]  # fmt: skip
    board = start_leaderboard(suite, ["ppo-mine"], tmp_path / "leaderboard")
    attempt = board.attempts(board.entries[1])[0]
    attempt.folder.mkdir(parents=True)
    attempt.tuned.work()
    assert read_run(attempt.logs[0]).header["tuner_args"] == {"file": "ppo-mine"}
    assert [entry.name for entry in open_leaderboard(tmp_path / "leaderboard").entries] == [
        "default",
        "ppo-mine",
    ]


@pytest.mark.parametrize(
    ("tuners", "kind", "words"),
    [
        (["expert@dcqcn-pls"], UnknownNameError, "did you mean 'dcqcn-plus'"),
        (["paraleo"], UnknownNameError, "did you mean 'paraleon'"),
        (["policy.py:Missing"], ConfigError, r"policy\.py"),
    ],
)
def test_bad_entries_leave_nothing_behind(
    suite: str, tmp_path: Path, tuners: list[str], kind: type[DcqcnGymError], words: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(kind, match=words):
        start_leaderboard(suite, tuners, out)
    assert not out.exists()


def test_a_slow_entry_that_is_none_of_them(suite: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'expert'"):
        start_leaderboard(suite, ["expert"], tmp_path / "out", slow=["exprt"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["tiny"], ["--tuners", "expert"], ["--force"], []])
def test_what_continues_is_there_and_given_whole_or_not_at_all(
    tmp_path: Path, words: list[str]
) -> None:
    done = CliRunner().invoke(app, ["bench", "run", *words, "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, DcqcnGymError)
    said = "give SUITE and --tuners; or neither" if words else "holds no leaderboard; bench run"
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_leaderboard(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no leaderboard; bench run SUITE"):
        open_leaderboard(tmp_path)
    (tmp_path / "study.json").write_text('{"kind": "bench run"}')
    with pytest.raises(RunError, match=r"study\.json: versions: this key is missing"):
        open_leaderboard(tmp_path)


def test_a_second_driver_is_refused(board: Leaderboard) -> None:
    with claim(board.out, "bench run"):
        second = CliRunner().invoke(app, ["bench", "run", "--out", str(board.out), "--quiet"])
    assert isinstance(second.exception, RunError)
    assert "is in use by" in str(second.exception)


def test_a_log_has_one_writer(board: Leaderboard, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    source = board.attempts()[0].logs[0]
    log.write_bytes(source.read_bytes()[:-200])
    run = read_run(log)
    with LogWriter(log, run.header, run), pytest.raises(RunError, match="by another process"):
        LogWriter(log, run.header, run)
    assert log.read_bytes() == source.read_bytes()[: run.size]
    LogWriter(log, run.header, read_run(log)).close()


def test_the_commands(suite: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    words = ["bench", "run", suite, "--tuners", "expert", "--out", out, "--repetitions", "1"]
    ran = CliRunner().invoke(app, [*words, "--jobs", "1", "--quiet"])
    assert ran.exit_code == 0, ran.output
    assert "tiny: 3 scenarios, 1 repetitions" in ran.output
    again = CliRunner().invoke(app, ["bench", "run", "--out", out, "--jobs", "1", "--quiet"])
    assert again.exit_code == 0
    unknown = CliRunner().invoke(app, ["bench", "run", "smok", *words[3:]])
    assert "did you mean 'smoke'" in str(unknown.exception)
