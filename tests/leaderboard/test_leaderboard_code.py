"""A plug-in that was edited since its runs began is refused: the runs would be another's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from submissions import AUTHOR, CALM, SOURCE
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard, start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.submit import submit
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import RunError

CHANGED = r"was made with entry mine-Mine, code = .*; give the same, another --out, or --force"


def plugin(folder: Path, more: str = "") -> str:
    path = folder / "mine.py"
    body = "".join(f"    {line}\n" for line in (CALM + more).splitlines())
    path.write_text(SOURCE.format(body=body))
    return f"{path}:Mine"


def test_edited_code_is_refused_until_its_runs_are_made_anew(suite: str, tmp_path: Path) -> None:
    tuner, out = plugin(tmp_path), tmp_path / "board"
    start_leaderboard(suite, [tuner], out)
    plugin(tmp_path)  # the same bytes, written later
    board = start_leaderboard(suite, [tuner, "expert"], out)
    plugin(tmp_path, "# another thought")
    for again in (lambda: start_leaderboard(suite, [tuner, "random"], out),
                  lambda: submit(board, tuner, tmp_path / "entry", **AUTHOR)):  # fmt: skip
        with pytest.raises(RunError, match=CHANGED):
            again()
    assert [entry.name for entry in open_leaderboard(out).entries] == [
        "default", "mine-Mine", "expert"
    ]  # fmt: skip
    said = CliRunner().invoke(app, ["bench", "run", "--out", str(out)])
    assert isinstance(said.exception, RunError)
    with pytest.raises(RunError, match="has no result yet"):  # the experts' code is as it was
        submit(board, "expert", tmp_path / "entry", **AUTHOR)
    forced = start_leaderboard(suite, [tuner], out, force=True)
    assert forced.study().check(out) is not None


def test_a_leaderboard_opens_without_the_code(suite: str, tmp_path: Path) -> None:
    tuner, out = plugin(tmp_path), tmp_path / "board"
    start_leaderboard(suite, [tuner], out)
    written = json.loads((out / "study.json").read_text())["parts"]["entry"]
    assert [one["code"] is None for one in written.values()] == [True, False]
    (tmp_path / "mine.py").unlink()
    assert CliRunner().invoke(app, ["bench", "report", str(out)]).exit_code == 0
