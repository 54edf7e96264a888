"""One leaderboard on a pool, on Dask, in shares: equal bytes; a worker killed; refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from submissions import three_scenarios
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.protocol import (
    Leaderboard,
    open_leaderboard,
    start_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.runs.log import LogWriter, read_run
from waiting import wait_for

TUNERS = ["expert", "random"]
SLOW = """
import time
from dcqcn_gym.tuners.random_search import RandomTuner

class Slow(RandomTuner):
    name = summary = "slow"

    def ask(self):
        time.sleep(0.1)
        return super().ask()
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return three_scenarios(tmp_path_factory.mktemp("suite") / "tiny")


@pytest.fixture(scope="module")
def pool(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Leaderboard:
    """Return what every other place has to repeat, made by a pool of two processes."""
    board = start_leaderboard(suite, TUNERS, tmp_path_factory.mktemp("pool"))
    assert board.carry_out(workers=2) == {}
    write_results(board)
    return board


def promised(out: Path) -> dict[str, bytes]:
    """Return every file of a leaderboard whose bytes are promised: all but seconds."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not path.name.startswith(("timing", "."))
    }


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process of Dask in a session of its own, and end that session."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a scheduler with two workers of one thread, under their nannies."""
    distributed = pytest.importorskip("distributed")
    told = tmp_path_factory.mktemp("dask") / "scheduler.json"
    words = ("--port", "0", "--no-dashboard", "--scheduler-file", str(told))
    with started("scheduler", "--host", "127.0.0.1", *words):
        wait_for(lambda: told.exists() and told.stat().st_size > 0, "the scheduler is there")
        address = str(json.loads(told.read_text())["address"])
        local = str(told.parent)
        workers = ("--nworkers", "2", "--nthreads", "1", "--no-dashboard", "--local-directory")
        with started("worker", address, *workers, local):
            with distributed.Client(address, timeout=60, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=120)
            yield address


def invoke(*words: object) -> str:
    done = CliRunner().invoke(app, ["bench", *map(str, words)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.mark.slow
def test_dask_gives_the_bytes_of_the_pool(
    suite: str, pool: Leaderboard, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a relative folder means the same on a worker
    invoke("run", suite, "--tuners", ",".join(TUNERS), "--out", "out", "--dask", cluster, "--quiet")
    assert promised(tmp_path / "out") == promised(pool.out)


@pytest.mark.slow
def test_a_worker_killed_in_mid_run_loses_nothing(
    suite: str, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    Path("slow.py").write_text(SLOW)
    killed: list[int] = []
    runs = Path("out/runs/slow-Slow")

    def kill_one() -> None:
        def under_way() -> bool:
            logs = (read_run(path) for path in runs.rglob("online*"))
            return any(not log.complete and log.intervals for log in logs)

        wait_for(under_way, "a run has begun")
        with distributed.Client(cluster, set_as_default=False) as client:
            busy = [w for w, jobs in client.processing().items() if jobs]
            process = client.run(os.getpid, workers=busy[:1])
        for pid in process.values():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    killer = threading.Thread(target=kill_one)
    killer.start()
    invoke("run", suite, "--tuners", "slow.py:Slow", "--out", "out", "--dask", cluster, "--quiet")
    killer.join()
    assert len(killed) == 1
    assert not Path(f"/proc/{killed[0]}").exists()
    here = start_leaderboard(suite, ["slow.py:Slow"], tmp_path / "here")
    assert here.carry_out(workers=2) == {}
    write_results(here)
    assert promised(tmp_path / "out") == promised(here.out)


@pytest.mark.parametrize("words", [["tiny"], ["--tuners", "expert"], ["--force"]])
def test_what_continues_is_given_whole_or_not_at_all(tmp_path: Path, words: list[str]) -> None:
    done = CliRunner().invoke(app, ["bench", "run", *words, "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, ConfigError)
    assert "give SUITE and --tuners; or neither" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_nothing_to_continue_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "run", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, ConfigError)
    assert "leaderboard.json: no such file" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_no_scheduler_is_one_sentence(suite: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    words = ["bench", "run", suite, "--tuners", "expert", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*words, "--dask", "nonsense://1", "--quiet"])
    assert isinstance(done.exception, RunError)
    assert "no Dask scheduler answers at 'nonsense://1'" in str(done.exception)


def test_a_log_has_one_writer(pool: Leaderboard, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    source = open_leaderboard(pool.out).attempts()[0].logs[0]
    log.write_bytes(source.read_bytes()[:-200])
    run = read_run(log)
    with LogWriter(log, run.header, run), pytest.raises(RunError, match="by another process"):
        LogWriter(log, run.header, run)
    assert log.read_bytes() == source.read_bytes()[: run.size]
    LogWriter(log, run.header, read_run(log)).close()
