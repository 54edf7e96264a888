"""One leaderboard on a pool, on Dask, in shares: equal bytes; a worker killed; refusals."""

from __future__ import annotations

import json
import os
import re
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

from dcqcn_gym.benchmarks.__main__ import app as maintainers
from dcqcn_gym.benchmarks.leaderboard.cost import efficiency
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    CAMPAIGNS_FILE,
    Leaderboard,
    open_leaderboard,
    start_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.shards import merge_leaderboards
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


def maintain(*words: object) -> str:
    done = CliRunner().invoke(maintainers, ["leaderboard", *map(str, words)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


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


@pytest.mark.slow
def test_shares_are_merged_to_the_bytes_of_the_pool(
    suite: str, pool: Leaderboard, tmp_path: Path
) -> None:
    entries = ("--tuners", ",".join(TUNERS))
    for i in range(3):
        words = ("--share", f"{i + 1}/3", "--out", tmp_path / str(i), "--jobs", 1, "--quiet")
        said = invoke("run", suite, *entries, *words)
        own = [int(n) for n in re.findall(r"(\d+) of \1", said)]
        assert sum(own) == 2 * 6  # it tells of its own runs alone, online and final
        assert len([n for n in own if n]) > 2
    logs = [{p.relative_to(tmp_path / str(i)) for p in (tmp_path / str(i)).rglob("*.jsonl")}
            for i in range(3)]  # fmt: skip
    assert not logs[0] & logs[1]
    assert len(logs[0] | logs[1] | logs[2]) == len(list(pool.out.rglob("*.jsonl")))
    said = invoke("merge", tmp_path / "0", tmp_path / "1", "--out", tmp_path / "all")
    assert "runs missing; bench run --out" in said
    invoke("merge", tmp_path / "2", "--out", tmp_path / "all")
    assert promised(tmp_path / "all") == promised(pool.out)


def test_shares_that_do_not_fit_are_refused(suite: str, pool: Leaderboard, tmp_path: Path) -> None:
    one = start_leaderboard(suite, TUNERS, tmp_path / "one", share=(0, 2))
    with pytest.raises(RunError, match=r"holds suite 'tiny' with 2 repetitions, share 1/2; give"):
        start_leaderboard(suite, TUNERS, tmp_path / "one")
    fewer = start_leaderboard(suite, TUNERS, tmp_path / "fewer", repetitions=1)
    with pytest.raises(RunError, match="shares of one leaderboard have both in common"):
        merge_leaderboards([one.out, fewer.out], tmp_path / "all")
    attempt = one.own_attempts[0]
    attempt.folder.mkdir(parents=True)
    source = pool.out / attempt.folder.relative_to(one.out) / attempt.logs[0].name
    attempt.logs[0].write_bytes(source.read_bytes().replace(b'"marks":', b'"marks":1', 1))
    with pytest.raises(RunError, match="the same run: one of them was made by other code"):
        merge_leaderboards([pool.out, one.out], tmp_path / "all")
    assert not (tmp_path / "all").exists()
    # an unfinished one gives way to the whole one, in whatever order they come
    attempt.logs[0].write_bytes(source.read_bytes()[:5000])
    for order in ([pool.out, one.out], [one.out, pool.out]):
        merge_leaderboards(order, tmp_path / "all")
        assert (tmp_path / "all" / source.relative_to(pool.out)).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("share", ["0/3", "4/3", "3", "a/b", "1/3/5", "-1/3"])
def test_a_share_that_is_none_is_refused(suite: str, tmp_path: Path, share: str) -> None:
    words = ["bench", "run", suite, "--tuners", "expert", "--share", share]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, ConfigError)
    assert f"--share {share}: expected I/N, as 1/8 for the first of 8 shares" in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words", [["tiny"], ["--tuners", "expert"], ["--share", "1/3"], ["--force"]]
)
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


def test_the_cost_comes_from_records_beside_the_results(pool: Leaderboard, tmp_path: Path) -> None:
    said = maintain("cost", pool.out)
    assert [line.split()[0] for line in said.splitlines() if " of " in line] == [
        "default", "expert", "random", "all",
    ]  # fmt: skip
    cost = json.loads((pool.out / "cost.json").read_text())
    (campaign,) = cost["campaigns"]
    assert (campaign["workers"], campaign["runs"]) == (2, 36)
    entry = cost["entries"]["random"]
    assert (entry["runs"], entry["intervals"], entry["online_intervals"]) == (12, 60, 36)
    assert 0 < entry["engine_s"] < entry["cpu_s"]
    assert 0 < entry["tuner_s"] < entry["cpu_s"]
    assert entry["tuner_ms_per_interval"] == pytest.approx(1e3 * entry["tuner_s"] / 36)
    (pool.out / "cost.json").unlink()


def test_the_efficiency_needs_the_same_runs_by_one_worker(
    pool: Leaderboard, tmp_path: Path
) -> None:
    one = {"workers": 1, "runs": 36, "wall_s": 19.0, "run_wall_s": 18.0, "run_cpu_s": 18.0}
    for name, workers, wall in (("one", 1, 19.0), ("two", 2, 10.0)):
        (tmp_path / name).mkdir()
        made = [{**one, "workers": workers, "wall_s": wall}]
        (tmp_path / name / CAMPAIGNS_FILE).write_text(json.dumps(made))
    assert efficiency(tmp_path / "two", tmp_path / "one") == pytest.approx(0.95)
    with pytest.raises(RunError, match="expected the same runs by one and by several"):
        efficiency(tmp_path / "one", tmp_path / "two")
    with pytest.raises(RunError, match="made in 0 parts"):
        efficiency(tmp_path / "two", tmp_path)
