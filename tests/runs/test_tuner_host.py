"""Tuners in a process of their own: the same bytes, and a name for every way in which they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from dcqcn_gym.benchmarks.leaderboard.tuner_host.process import HostProcess
from dcqcn_gym.benchmarks.leaderboard.tuner_host.protocol import (
    VERSION,
    BadAnswerError,
    encode,
    parse_answer,
)
from dcqcn_gym.benchmarks.leaderboard.tuner_host.server import Server
from dcqcn_gym.benchmarks.leaderboard.tuner_host.values import proposal_from
from dcqcn_gym.core.errors import ConfigError, TunerError, UnknownNameError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting, described
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import make_tuner
from programs import called
from waiting import LONG_S, alive, wait_for

SOURCE = """
import ctypes, os, socket, stat, sys, time
from dcqcn_gym.tuners.random_search import RandomTuner

{top}

class Mine(RandomTuner):
    name = summary = "mine"
    asked = 0

    def ask(self):
        self.asked += 1
        if self.asked == 3:
            {ask}
        return super().ask()

    {more}
"""

PIPE = (
    "[os.write(int(fd), {what}) for fd in os.listdir('/proc/self/fd') if int(fd) > 2 "
    "and os.path.exists('/proc/self/fd/' + fd) and stat.S_ISSOCK(os.fstat(int(fd)).st_mode)]"
)
"""Finds the pipe and writes on it."""


def plugin(folder: Path, ask: str = "pass", top: str = "", more: str = "") -> str:
    path = folder / "mine.py"
    path.write_text(SOURCE.format(ask=ask, top=top, more=more))
    return f"{path}:Mine"


def spec(tuner: str, intervals: int = 8, deadline_s: float = LONG_S) -> RunSpec:
    scenario = load_scenario("mini-fb-hadoop")
    return RunSpec(scenario, tuner, 1, intervals, "fake", hosting=Hosting(deadline_s))


@pytest.mark.parametrize(
    ("tuner", "backend", "changes"),
    [
        ("paraleon", "native", {"trigger": "kl"}),
        ("dr-ucb", "fake", {"cadence": 3}),
        pytest.param("tpe", "fake", {}, marks=pytest.mark.slow),
        pytest.param("ars", "fake", {}, marks=pytest.mark.slow),
        pytest.param("chameleon", "fake", {}, marks=pytest.mark.slow),
        pytest.param("ppo-mini", "native", {}, marks=pytest.mark.slow),
    ],
)
def test_built_in_tuners_give_the_same_bytes_in_both_places(
    tmp_path: Path, tuner: str, backend: str, changes: dict[str, object]
) -> None:
    scenario = load_scenario("mini-fb-hadoop").model_copy(update=changes)
    here = RunSpec(scenario, tuner, 3, 12, backend)
    states: list[list[object]] = []
    for name, one in (("here", here), ("apart", replace(here, hosting=Hosting(apart=True)))):
        seen: list[object] = []

        def watch(line: object, state: object, repeated: bool, seen: list[object] = seen) -> None:
            seen.append(state)

        run(one, tmp_path / name, watch=watch)
        states.append(seen)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "apart").read_bytes()
    assert states[0] == states[1]


def test_a_resumed_run_of_a_hosted_tuner_keeps_its_bytes(tmp_path: Path) -> None:
    one = spec(plugin(tmp_path))
    run(one, tmp_path / "whole.jsonl")
    data = (tmp_path / "whole.jsonl").read_bytes()
    part = tmp_path / "part.jsonl"
    part.write_bytes(data[: len(data) // 2])
    run(one, part, replay=read_run(part))
    assert part.read_bytes() == data


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ("os._exit(0)", r"its process ended in ask\(\) with exit status 0"),
        ("ctypes.string_at(0)", r"its process ended in ask\(\) by SIGSEGV"),
        ("time.sleep(600)", r"gave no answer to ask\(\) within 0.5 s .*--tuner-deadline"),
        ("os.fork()", r"answered something else .*a tuner that forks"),
        (PIPE.format(what=r"b'garbage\n'"), r"no answer to ask\(\) .*'garbage'"),
        (PIPE.format(what=r"b'[1]\n'"), r"no answer to ask\(\) \(no object\)"),
        (PIPE.format(what='b\'{\\"id\\":1,\\"value\\":null}\\n\''), r"answered something else"),
        (PIPE.format(what="b'x' * 10"), r"no answer to ask\(\)"),
        ("os.closerange(3, 64); time.sleep(600)", r"closed its pipe in ask\(\)"),
        ("os.closerange(3, 64)", r"closed its pipe in ask\(\)"),
        ("raise KeyboardInterrupt", r"failed.* KeyboardInterrupt"),
        ("1 / 0", r"^mine.py line 14: tuner '.*mine.py:Mine' failed in ask\(\): ZeroDivision"),
        ("return self.context.base.replace({'nobody': 1})", "^mine.py line 14: .*'nobody'"),
    ],
)
def test_every_end_has_a_name_and_keeps_the_log(
    tmp_path: Path, ask: str, says: str, capfd: pytest.CaptureFixture[str],
    from_the_third_ask: None,
) -> None:  # fmt: skip
    deadline_s = 0.5 if "within" in says else LONG_S
    with pytest.raises(TunerError, match=says) as caught:
        run(spec(plugin(tmp_path, ask), deadline_s=deadline_s), tmp_path / "run.jsonl")
    assert "\n" not in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err
    assert len(read_run(tmp_path / "run.jsonl").intervals) in (2, 3)  # 3: it answered, then again


@pytest.mark.parametrize(
    ("top", "says"),
    [
        ("os._exit(0)", r"ended in open\(\) with exit status 0"),
        ("time.sleep(600)", r"no answer to open\(\) within 0.1 s"),
        ("1 / 0", r"cannot be imported: ZeroDivisionError: division by zero \(line 5\)"),
    ],
)
def test_a_file_that_fails_when_it_is_read(tmp_path: Path, top: str, says: str) -> None:
    with pytest.raises((TunerError, ConfigError), match=says):
        spec(plugin(tmp_path, top=top), deadline_s=0.1 if "within" in says else LONG_S).check()


def test_an_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dcqcn_gym.benchmarks.leaderboard.tuner_host.process.MOST_ANSWER_BYTES", 2**20
    )
    endless = "[" + PIPE.format(what="b'x' * 2**16") + " for _ in range(10**6)]"
    with pytest.raises(TunerError, match=r"answered ask\(\) with more than 1048576 bytes"):
        run(spec(plugin(tmp_path, endless)), tmp_path / "run.jsonl")


def test_the_error_carries_the_other_traceback(tmp_path: Path) -> None:
    with pytest.raises(TunerError) as caught:
        run(spec(plugin(tmp_path, "[][7]")), tmp_path / "run.jsonl")
    assert "IndexError: list index out of range" in str(caught.value.__cause__)
    assert 'mine.py", line 14, in ask' in str(caught.value.__cause__)


def test_unknown_names_start_no_process() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'paraleon'"):
        Hosting().hosts("paralon")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Hosting().hosts("nowhere/mine.py:Mine")
    assert not Hosting().hosts("paraleon")
    assert Hosting(apart=True).hosts("paraleon")


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_deadline_is_a_positive_time(seconds: float) -> None:
    with pytest.raises(ConfigError, match="expected a positive number"):
        Hosting(seconds)


def test_the_deadline_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DCQCN_GYM_TUNER_DEADLINE", "7.5")
    assert Hosting().deadline_s == 7.5
    monkeypatch.setenv("DCQCN_GYM_TUNER_DEADLINE", "long")
    with pytest.raises(ConfigError, match="DCQCN_GYM_TUNER_DEADLINE = 'long'"):
        Hosting()


def test_arguments_come_from_the_other_side(tmp_path: Path) -> None:
    tuner = plugin(tmp_path)
    with pytest.raises(ConfigError, match="takes no arguments; got x"):
        described(tuner, {"x": "1"}, Hosting())
    apart = Hosting(apart=True)
    given = {"startup": "3"}
    assert described("tpe", given, apart) == described("tpe", given, Hosting()) == {"startup": 3}


# the protocol by itself


def test_no_line_can_be_anything_but_an_answer_or_refused() -> None:
    random = Random(11)
    good = [
        encode({"id": 1, "cpu_s": 0.5, "value": {"scheme": "dcqcn", "si": [1.0] * 20}}),
        encode({"id": 2, "error": {"kind": "ConfigError", "message": "m", "trace": "t"}}),
        b'{"id":1,"value":' + b"[" * 5000 + b"]" * 5000 + b"}\n",
        b'{"id":1,"value":' + b"9" * 6000 + b"}\n",
        b'{"id":1,"value":NaN}\n', b'{"id":1e999,"value":1}\n', b'{"id":true,"value":1}\n',
    ]  # fmt: skip
    for _ in range(500):
        line = bytearray(random.choice(good))
        for _ in range(random.randrange(4)):
            at = random.randrange(len(line))
            line[at : at + random.randrange(3)] = random.randbytes(random.randrange(4))
            line = line or bytearray(b"x")
        try:
            answer = parse_answer(bytes(line))
            proposal_from(answer.value)
        except (BadAnswerError, ConfigError):
            continue


def test_errors_from_there_cannot_steer_the_terminal() -> None:
    error = {"kind": "SystemExit", "message": "a\x1b[31m\n" * 900, "trace": "\x1b[2J"}
    answer = parse_answer(json.dumps({"id": 1, "error": error}).encode())
    assert type(answer.error) is TunerError
    assert "\x1b" not in str(answer.error) + answer.trace
    assert "\n" not in str(answer.error)
    assert len(str(answer.error)) < 9000


def test_the_other_side_needs_no_environment(tmp_path: Path) -> None:
    start = "import sys; sys.path[:] = {!r}; from dcqcn_gym.benchmarks.leaderboard.tuner_host"
    code = start.format([p for p in sys.path if p]) + ".server import main; main()"
    process = HostProcess("mine", 60.0, ["env", "-i", sys.executable, "-c", code])
    opened = process.call("open", version=VERSION, tuner=plugin(tmp_path), arguments={})
    assert opened == {}
    with pytest.raises(ConfigError, match=rf"speaks version {VERSION} .* this one 1"):
        process.call("open", version=1, tuner="random", arguments={})
    process.close()
    process.close()


def test_a_server_answers_every_call_out_of_order() -> None:
    for call in ("start", "ask", "tell", "recommend", "tuning", "decisions"):
        answer = Server().answer({"id": 4, "call": call})
        assert answer["id"] == 4
        assert "error" in answer


def test_built_in_tuners_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)  # nobody may start a process
    spec("random").check()
    make_tuner("random")


# whole programs

HANGS = "open({file!r}, 'w').write(str(os.getpid())); time.sleep(600)"


def started(tmp_path: Path) -> tuple[subprocess.Popen[str], int]:
    """Start ``tune`` with a tuner that hangs; return it and the pid of the tuner's process."""
    told = tmp_path / "pid"
    tuner = plugin(tmp_path, HANGS.format(file=str(told)))
    words = ["tune", "--scenario", "mini-fb-hadoop", "--backend", "fake", "--tuner", tuner]
    words += ["--intervals", "5", "--eval-seeds", "0", "--quiet", "--out", str(tmp_path / "out")]
    program = subprocess.Popen(
        [sys.executable, "-m", "dcqcn_gym.cli", *words],
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: told.exists() and told.read_text(), "the tuner hangs")
    return program, int(told.read_text())


def test_ctrl_c_ends_a_run_whose_tuner_hangs(tmp_path: Path) -> None:
    program, pid = started(tmp_path)
    os.killpg(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=LONG_S)
    assert program.returncode == 130
    assert "interrupted" in said
    wait_for(lambda: not alive(pid), "the tuner ends")
    assert len(read_run(tmp_path / "out").intervals) == 2


def test_a_tuner_that_hangs_does_not_outlive_its_run(tmp_path: Path) -> None:
    program, pid = started(tmp_path)
    program.kill()
    program.communicate()
    wait_for(lambda: not alive(pid), "the tuner ends")


def test_debug_shows_the_plugins_traceback(tmp_path: Path) -> None:
    words = ["tune", "--scenario", "mini-fb-hadoop", "--backend", "fake", "--intervals", "5"]
    words += ["--tuner", plugin(tmp_path, "1 / 0"), "--out", str(tmp_path / "out")]
    words += ["--quiet", "--eval-seeds", "0"]
    short = called(*words)
    assert short.returncode == 2
    assert short.stderr.startswith("error: mine.py line 14: tuner")
    assert short.stderr.count("\n") == 1
    long = called(*words, "--force", "--debug")
    assert long.returncode == 2
    assert 'mine.py", line 14, in ask' in long.stderr
    assert long.stderr.splitlines()[-1] == short.stderr.strip()


def test_a_comparison_goes_on_beside_one_that_exits(tmp_path: Path) -> None:
    words = ["compare", "--scenario", "mini-fb-hadoop", "--backend", "fake", "--intervals", "6"]
    words += ["--tuners", f"default,{plugin(tmp_path, 'os._exit(0)')}", "--seeds", "2"]
    words += ["--eval-seeds", "1", "--eval-intervals", "2", "--out", str(tmp_path / "out")]
    done = called(*words)
    assert done.returncode == 2
    assert "error: 2 of 4 runs failed" in done.stderr
    table = (tmp_path / "out" / "table.md").read_text()
    assert "ended in ask() with exit status 0" in table
    for seed in (1, 2):
        assert read_run(tmp_path / f"out/mini-fb-hadoop/default/seed{seed}.jsonl").complete
