"""Two commands on one output folder: the second one is told who has it; nothing is mixed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.claim import LOCK_FILE, OWNERS, STUDY_FILE, claim
from dcqcn_gym.runs.log import read_run
from waiting import LONG_S

HOLDS = "import sys, time; from pathlib import Path; from dcqcn_gym.runs.claim import claim\n"
HOLDS += "with claim(Path(sys.argv[1]), 'tune'): print('held', flush=True); time.sleep(600)"
FAKE = ["--scenario", "mini-fb-hadoop", "--backend", "fake", "--intervals", "4"]


def holder(out: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(out)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_one_says_who_has_it_and_a_killed_one_has_nothing(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    first = holder(out)
    try:
        for command in ("tune", "compare"):
            with (
                pytest.raises(RunError, match=rf"in use by process {first.pid} since 2") as caught,
                claim(out, command, force=True),
            ):
                pass
            assert "-c" in str(caught.value)  # its command
            assert "give another --out" in str(caught.value)
    finally:
        first.kill()
        first.wait()
    assert (out / LOCK_FILE).exists()  # kill -9 leaves the file, not the lock
    with claim(out, "tune"):
        assert json.loads((out / LOCK_FILE).read_text())["pid"] == os.getpid()
    assert not (out / LOCK_FILE).exists()


def test_a_folder_that_stays_empty_is_not_left_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyError), claim(tmp_path / "a" / "b", "tune"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with claim(tmp_path / "mine", "tune"):
        pass
    assert (tmp_path / "mine").is_dir()


def test_a_lock_file_of_somebody_else_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_bytes(b"\xff{")
    with claim(tmp_path, "tune"):
        pass
    first = holder(tmp_path)
    (tmp_path / LOCK_FILE).write_bytes(b"\x1b[31m")
    with pytest.raises(RunError, match="in use by another process"), claim(tmp_path, "tune"):
        pass
    first.kill()
    first.wait()


@pytest.mark.parametrize("marker", [STUDY_FILE, *OWNERS])
def test_the_files_of_two_commands_are_not_mixed_unasked(tmp_path: Path, marker: str) -> None:
    (tmp_path / marker).write_text('{"kind": "sweep"}')
    own = OWNERS.get(marker, "sweep")
    with claim(tmp_path, own):
        pass
    for command in {"compare", *OWNERS.values()} - {own}:
        said = rf"already holds what `{own}` made \({marker}\); give `{command}` another"
        with pytest.raises(RunError, match=said), claim(tmp_path, command):
            pass
        with claim(tmp_path, command, force=True):
            pass


@pytest.mark.parametrize(
    "words",
    [
        ["tune", *FAKE, "--eval-seeds", "0", "--quiet"],
        ["compare", *FAKE, "--tuners", "default"],
        ["simulate", "-s", "mini-fb-hadoop", "--intervals", "1"],
        ["evaluate", "ppo-mini", *FAKE],
        ["paper", "monitors"],
        ["study", "acc"],
        ["train", "--tuner", "acc", "--backend", "fake"],
        ["ns3", "parity", "--cases"],
    ],
)
def test_every_command_with_a_folder_asks_for_it(tmp_path: Path, words: list[str]) -> None:
    first = holder(tmp_path / "out")
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    first.kill()
    first.wait()
    assert isinstance(done.exception, RunError)
    assert f"in use by process {first.pid}" in str(done.exception)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [LOCK_FILE]


def test_of_many_at_once_one_runs_and_the_others_say_so(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "dcqcn_gym.cli", "tune", *FAKE, "--eval-seeds", "0"]
    command += ["--quiet", "--no-report", "--out", str(out)]
    many = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=LONG_S)[1] for process in many]
    codes = [process.returncode for process in many]
    assert codes.count(0) == 1, said
    assert codes.count(2) == 2, said
    for code, text in zip(codes, said, strict=True):
        assert code == 0 or "in use by" in text or "already holds a run" in text
    assert read_run(out).complete
    assert not (out / LOCK_FILE).exists()
