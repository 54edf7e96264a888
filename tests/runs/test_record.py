"""The event log: what is written is what is read, whatever happens in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.log import LogWriter, RunDir, encode_line, read_run, write_json
from dcqcn_gym.runs.log_line import setting_json

HEADER = {"schema": 4, "kind": "run", "seed": 1}


def write(path: Path, n: int, *, end: bool = False) -> None:
    with LogWriter(path, HEADER) as log:
        for i in range(n):
            log.append({"i": i, "utility": 0.1 * i})
        if end:
            log.append({"end": {"recommended": {}, "intervals": n, "mean_utility": None}})


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 3, end=True)
    run = read_run(tmp_path)
    assert run.header == HEADER
    assert [line["utility"] for line in run.intervals] == [0.0, 0.1, 0.2]
    assert run.complete
    assert run.size == path.stat().st_size
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.jsonl"]


@pytest.mark.parametrize("torn", [b'{"i":3,"uti', b'{"i":3,"uti\n', b"\x00\x00\x00"])
def test_a_torn_last_line_is_tolerated(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    run = read_run(path)
    assert len(run.intervals) == 3
    assert not run.complete
    with LogWriter(path, HEADER, run) as log:
        for line in run.intervals:
            assert log.replaying
            log.append(line)
        log.append({"i": 3})
    assert path.read_bytes() == whole + b'{"i":3}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no run"),
        ('{"schema":1', "holds no run"),
        ('{"schema":1,"kind":"other"}\n', "line 1 is not a run header"),
        ('{"schema":99,"kind":"run"}\n', "log schema 99, this version reads schema 4"),
        ('{"schema":4,"kind":"run"}\nrubbish\n{"i":0}\n', "line 2 is not"),
        ('{"schema":4,"kind":"run"}\n{"i":1}\n', "expected interval 0, got 1"),
        ('{"schema":4,"kind":"run"}\n{"end":{}}\n{"i":0}\n', "after the end"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(RunError, match=says):
        read_run(path)


def test_missing_log(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be read: No such file"):
        read_run(tmp_path / "none.jsonl")


def test_a_replay_that_differs_names_the_interval_and_the_key(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, 2)
    before = path.read_bytes()
    with LogWriter(path, HEADER, read_run(path)) as log:
        log.append({"i": 0, "utility": 0.0})
        with pytest.raises(RunError, match=r"interval 1 does not repeat: utility .* 0\.1 .* 0\.2"):
            log.append({"i": 1, "utility": 0.2})
    assert path.read_bytes() == before


def test_nan_never_reaches_a_log() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_line({"utility": float("nan")})


FULL = """
import resource, signal, sys
from pathlib import Path
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.log import LogWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST))
try:
    with LogWriter(Path(sys.argv[1]), {"schema": 4, "kind": "run"}) as log:
        for i in range(1000):
            log.append({"i": i, "text": "x" * 50})
except RunError as error:
    print(error)
"""


@pytest.mark.parametrize(("limit", "left"), [(10, False), (1000, True)])
def test_a_full_disk_leaves_whole_lines_or_nothing(tmp_path: Path, limit: int, left: bool) -> None:
    path = tmp_path / "run.jsonl"
    code = FULL.replace("MOST", str(limit))
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert f"{path} cannot be written: File too large" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == (["run.jsonl"] if left else [])
    if left:
        assert path.read_bytes().endswith(b"}\n")
        assert len(read_run(path).intervals) > 5


def test_settings_are_logged_in_nvidia_units() -> None:
    logged = setting_json(default_setting())
    assert logged["rp_time_reset"] == 300
    assert isinstance(logged["rp_time_reset"], int)
    assert logged["pmax"] == 0.2
    assert setting_json({"cluster": default_setting()}) == {"cluster": logged}


class TestRunDir:
    def check(self, root: Path, **how: bool) -> Any:
        return RunDir(root).check(**{"resume": False, "force": False, **how})

    def test_new_and_empty_and_foreign_directories_are_fine(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("mine")
        assert self.check(tmp_path / "new" / "deep") is None
        assert self.check(tmp_path) is None
        assert not (tmp_path / "new").exists()

    def test_a_run_is_not_overwritten(self, tmp_path: Path) -> None:
        write(tmp_path / "run.jsonl", 1)
        with pytest.raises(RunError, match=r"already holds a run.*--force"):
            self.check(tmp_path)
        assert self.check(tmp_path, force=True) is None
        assert len(self.check(tmp_path, resume=True).intervals) == 1

    def test_force_removes_the_run_and_nothing_else(self, tmp_path: Path) -> None:
        write(tmp_path / "run.jsonl", 1)
        write_json(tmp_path / "best.json", {})
        (tmp_path / "notes.txt").write_text("mine")
        RunDir(tmp_path).create()
        left = sorted(p.name for p in tmp_path.iterdir())
        assert left == ["evaluation", "notes.txt", "reference"]

    def test_a_file_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(RunError, match="is a file; give a directory"):
                self.check(path)

    def test_nothing_to_resume(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="holds no run"):
            self.check(tmp_path, resume=True)

    def test_resume_and_force_exclude_each_other(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="give one of them"):
            self.check(tmp_path, resume=True, force=True)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_directory_without_permission(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(RunError, match="not writable"):
            self.check(tmp_path / "out")


WRITES = """
import sys
from dcqcn_gym.runs.atomic_file import write_atomically
for _ in range(60):
    write_atomically(sys.argv[1], sys.argv[2].encode() * 500_000)
"""


def test_two_processes_that_write_one_file_leave_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    both = [
        subprocess.Popen([sys.executable, "-c", WRITES, str(path), letter], stderr=subprocess.PIPE)
        for letter in "ab"
    ]
    while any(process.poll() is None for process in both):
        if path.exists():
            data = path.read_bytes()
            assert data in (b"a" * 500_000, b"b" * 500_000)
    assert [process.communicate()[1] for process in both] == [b"", b""]
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


KILLED = """
import os, signal, sys
from dcqcn_gym.runs.atomic_file import write_atomically
then = {
    "killed": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "alive": lambda _: (print(flush=True), input()),
}
os.fsync = then[sys.argv[2]]
write_atomically(sys.argv[1], b"theirs")
"""


def _in_mid_write(path: Path, what: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", KILLED, str(path), what]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_the_draft_of_a_killed_process_goes_with_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    (tmp_path / "run.jsonl.mine.tmp").touch()
    (tmp_path / "other.jsonl.123.tmp").touch()
    killed = _in_mid_write(path, "killed")
    killed.communicate()
    left = f"run.jsonl.{killed.pid}.tmp"
    others = {"run.jsonl.mine.tmp", "other.jsonl.123.tmp"}
    assert {entry.name for entry in tmp_path.iterdir()} == {left, *others}
    write_atomically(path, b"ours")
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, *others}


def test_the_draft_of_a_living_process_stays(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with _in_mid_write(path, "alive") as alive:
        assert alive.stdout is not None
        alive.stdout.readline()
        write_atomically(path, b"ours")
        assert {entry.name for entry in tmp_path.iterdir()} == {
            path.name, f"run.jsonl.{alive.pid}.tmp",
        }  # fmt: skip
        alive.communicate(b"\n")
    assert alive.returncode == 0
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"theirs"


FORKED = """
import os, sys
from dcqcn_gym.runs.log import LogWriter
fsync, children = os.fsync, []
def forking(handle):
    fsync(handle)
    if not children:
        children.append(os.fork())
        if not children[0]:
            input()
            os._exit(0)
os.fsync = forking
with LogWriter(sys.argv[1], {"schema": 1}) as log:
    log.append({"i": 0})
"""


def test_a_child_forked_in_mid_write_does_not_hold_the_file(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORKED, str(tmp_path / "run.jsonl")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.wait(60) == 0, writer.stderr and writer.stderr.readline()
        writer.communicate(b"\n")
