"""Interrupted sessions: Ctrl-C and kill -9 leave a log; the same command ends the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.tuning import tune
from dcqcn_gym.runs.log import RunDir, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.progress import QuietViewer
from dcqcn_gym.runs.session import Evaluation
from dcqcn_gym.runs.spec import RunSpec
from programs import called, runs_in_threads
from waiting import alive, wait_for

MINI = load_scenario("mini-fb-hadoop")
EVALUATION = Evaluation(seeds=1, intervals=3)

HELD = """
import time
from pathlib import Path
from dcqcn_gym.tuners.paraleon import ParaleonTuner

class Held(ParaleonTuner):
    name = "held"
    summary = "PARALEON that waits in its eleventh interval while the file 'hold' exists"
    asked = 0
    def ask(self):
        self.asked += 1
        while self.asked > 10 and Path(__file__).with_name("hold").exists():
            time.sleep(0.02)
        return super().ask()
"""


def session(out: Path, tuner: str = "paraleon", *, resume: bool = False, n: int = 12) -> None:
    spec = RunSpec(MINI, tuner, 1, n, "fake")
    with runs_in_threads():
        tune(spec, RunDir(out), evaluation=EVALUATION, viewer=QuietViewer(), resume=resume)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished session of twelve intervals, to be copied."""
    out = tmp_path_factory.mktemp("recorded") / "whole"
    session(out)
    return out


def contents(out: Path) -> dict[str, bytes]:
    """Every file that falls under the same-bytes promise."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in ("timing.json", "report.html")
    }


def words_of(out: Path, tuner: str) -> list[str]:
    fixed = ["--scenario", "mini-fb-hadoop", "--backend", "fake", "--intervals", "40"]
    few = ["--eval-seeds", "1", "--eval-intervals", "3", "--no-report"]
    where = ["--tuner", tuner, "--out", str(out)]
    return ["tune", *fixed, *few, *where]


def started(out: Path, words: Sequence[str]) -> subprocess.Popen[str]:
    """Start a session and return once its log has some intervals."""
    command = [sys.executable, "-m", "dcqcn_gym.cli", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    log = out / "run.jsonl"

    def going() -> bool:
        assert process.poll() is None, process.communicate()
        return log.exists() and log.read_bytes().count(b"\n") >= 5

    wait_for(going, "the session has some intervals")
    return process


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("cut", ["after the header", "in the middle", "before the end"])
def test_a_cut_session_ends_with_the_same_bytes(tmp_path: Path, recorded: Path, cut: str) -> None:
    part = shutil.copytree(recorded, tmp_path / "part")
    log = part / "run.jsonl"
    data = log.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    size = {"after the header": ends[0], "in the middle": ends[6] + 99, "before the end": ends[-2]}
    log.write_bytes(data[: size[cut]])
    (part / "best.json").unlink()
    (part / "reference" / "expert.jsonl").unlink()
    other = part / "reference" / "default.jsonl"
    other.write_bytes(other.read_bytes()[:-200])
    session(part, resume=True)
    assert contents(part) == contents(recorded)


@pytest.mark.parametrize("tuner", ["paraleon", "random"])
def test_the_engine_repeats_its_bytes(tmp_path: Path, tuner: str) -> None:
    spec = RunSpec(MINI, tuner, 3, 6, "native")
    path = tmp_path / "run.jsonl"
    run(spec, path)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:50])
    run(spec, path, replay=read_run(path))
    assert path.read_bytes() == data


def test_resuming_a_finished_session_changes_nothing(tmp_path: Path, recorded: Path) -> None:
    out = shutil.copytree(recorded, tmp_path / "out")
    timing = (out / "timing.json").read_bytes()
    session(out, resume=True)
    assert contents(out) == contents(recorded)
    assert (out / "timing.json").read_bytes() == timing


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 2}, "made with seed = 1, now it is 2"),
        ({"intervals": 13}, "made with intervals = 12, now it is 13"),
        ({"tuner": "random"}, 'made with tuner = "paraleon", now it is "random"'),
        ({"tuner_args": {"eta": 0.7}}, r"tuner_args\.eta = null, now it is 0\.7"),
        (
            {"scenario": MINI.model_copy(update={"cadence": 2})},
            r"scenario\.cadence = 1, now it is 2",
        ),
    ],
)
def test_other_arguments_are_named(
    tmp_path: Path, recorded: Path, change: dict[str, object], says: str
) -> None:
    fields: dict[str, object] = {
        "scenario": MINI,
        "tuner": "paraleon",
        "seed": 1,
        "intervals": 12,
        "backend": "fake",
    }
    shutil.copy(recorded / "run.jsonl", tmp_path)
    before = contents(tmp_path)
    spec = RunSpec(**{**fields, **change})  # type: ignore[arg-type]
    with pytest.raises(RunError, match=says):
        tune(spec, RunDir(tmp_path), evaluation=EVALUATION, viewer=QuietViewer(), resume=True)
    assert contents(tmp_path) == before


def test_a_changed_log_is_not_continued(tmp_path: Path, recorded: Path) -> None:
    spec = RunSpec(MINI, "paraleon", 1, 12, "fake")
    path = Path(shutil.copy(recorded / "run.jsonl", tmp_path))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"rp_gd":', b'"rp_gd":1')
    path.write_bytes(b"".join(lines[:8]))
    with pytest.raises(RunError, match="interval 3 does not repeat: setting"):
        run(spec, path, replay=read_run(path))


@pytest.mark.parametrize(
    "how",
    ["SIGINT", *(pytest.param(how, marks=pytest.mark.slow) for how in ("SIGKILL", "SIGTERM"))],
)
def test_a_killed_session_is_resumed_to_the_same_bytes(tmp_path: Path, how: str) -> None:
    (tmp_path / "held.py").write_text(HELD)
    tuner = f"{tmp_path}/held.py:Held"
    assert called(*words_of(tmp_path / "whole", tuner)).returncode == 0
    out, hold = tmp_path / "part", tmp_path / "hold"
    hold.touch()
    process = started(out, words_of(out, tuner))
    workers = children(process.pid)
    if how == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    elif how == "SIGTERM":
        process.terminate()  # as a batch system may do: the program alone
    else:
        process.kill()
    _, said = process.communicate(timeout=300)
    assert workers
    wait_for(lambda: not any(map(alive, workers)), "the workers end")
    hold.unlink()
    assert not read_run(out).complete
    if how != "SIGKILL":
        assert process.returncode == 130
        assert "Traceback" not in said
        assert f"interrupted; {out}/run.jsonl" in said
        assert "the same command continues it" in said
    assert called(*words_of(out, tuner)).returncode == 0
    assert contents(out) == contents(tmp_path / "whole")


def test_what_differs_is_quoted_briefly(tmp_path: Path, recorded: Path) -> None:
    shutil.copy(recorded / "run.jsonl", tmp_path)
    spec = RunSpec(MINI.model_copy(update={"description": "y" * 10_000}), "paraleon", 1, 12, "fake")
    with pytest.raises(RunError, match="description = ") as caught:
        tune(spec, RunDir(tmp_path), evaluation=EVALUATION, viewer=QuietViewer(), resume=True)
    assert len(str(caught.value)) < 600
