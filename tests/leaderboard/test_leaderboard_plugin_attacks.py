"""Attacks on the leaderboard by a plug-in's code: what docs/leaderboard.md says they get.

They run in the sandbox; where an attack would work outside of it, the test shows that first, so
that it cannot pass by an attack that does nothing.
"""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from submissions import (
    AUTHOR,
    SCENARIO,
    Here,
    edit_json,
    leaderboard_of,
    need_sandbox,
    plugin,
    steady_suite,
    submission_of,
    tiny_suite,
    verified,
)

from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.submit import submit
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.benchmarks.leaderboard.tuner_host import Enclosure, sandbox_problem
from dcqcn_gym.benchmarks.leaderboard.verification import Verification
from dcqcn_gym.core.errors import TunerError
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.results import tuner_digest
from dcqcn_gym.runs.spec import RunSpec

# what a plug-in does in its process


def in_process(tuner: str, log: Path, *, box: bool, suite: str, deadline_s: float = 300.0) -> Path:
    """Run a plug-in as `bench run` does, with its log under the scenario's name; return the log."""
    code = Path(tuner.rpartition("/")[0])
    hosting = Hosting(deadline_s, enclosure=Enclosure(code) if box else None)
    scenario = load_suite(suite).scenarios[SCENARIO]
    path = log / SCENARIO / "online-00.jsonl"
    path.parent.mkdir(parents=True)
    run(RunSpec(scenario, tuner, 5, 6, hosting=hosting, tuner_seed=7), path)
    return path


CONNECTS = """
def ask(self):
    socket.create_connection(("127.0.0.1", {port}), timeout=5).send(b"hello")
    return super().ask()
"""


def test_a_socket_is_blocked(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    with socket.create_server(("127.0.0.1", 0)) as server:
        tuner = plugin(tmp_path / "code", CONNECTS.format(port=server.getsockname()[1]))
        in_process(tuner, tmp_path / "outside", box=False, suite=suite)
        server.accept()[0].close()
        with pytest.raises(TunerError, match=r"failed in ask.*(refused|unreachable)"):
            in_process(tuner, tmp_path / "inside", box=True, suite=suite)


LOOKS = """
def ask(self):
    name = bytes(reversed({name!r})).decode()
    seen = [*sys.argv, *map(str, os.environ.items()), os.getcwd(), *os.listdir()]
    for process in Path("/proc").iterdir():
        links = [process / "cwd", process / "exe", *self.inside(process / "fd")]
        seen += [self.target(link) for link in links]
        for file in ("cmdline", "environ", "maps", "mountinfo", "comm"):
            seen.append(self.text(process / file))
    found = [text for text in seen if name in text]
    assert not found, found
    neighbours = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    assert len(neighbours) == 2, neighbours  # the sandbox's first process and this one
    return super().ask()

def inside(self, folder):
    try:
        return list(folder.iterdir())
    except OSError:
        return []

def target(self, link):
    try:
        return os.readlink(link)
    except OSError:
        return ""

def text(self, file):
    try:
        return file.read_bytes().decode("latin-1")
    except OSError:
        return ""
"""


def test_the_scenarios_name_is_nowhere_to_be_found(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    tuner = plugin(tmp_path / "code", LOOKS.format(name=SCENARIO.encode()[::-1]))
    with pytest.raises(TunerError, match=f"AssertionError.*{SCENARIO}"):  # the log that is open
        in_process(tuner, tmp_path / "outside", box=False, suite=suite)
    assert read_run(in_process(tuner, tmp_path / "inside", box=True, suite=suite)).complete


def test_the_sandbox_clears_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts it: what is set outside is not set inside."""
    need_sandbox()
    monkeypatch.setenv("DCQCN_GYM_SECRET", SCENARIO)
    words = Enclosure(Path("/")).command()
    words = [*words[: words.index("--")], "--", "/usr/bin/env"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names == {"PATH", "HOME", "LANG", "PWD"}


def test_the_verifiers_environment_is_nowhere_to_be_found(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the first process of the sandbox either, whose memory still has what it began with."""
    need_sandbox()
    monkeypatch.setenv("DCQCN_GYM_SECRET", "of the verifier only")
    tuner = plugin(tmp_path / "code", LOOKS.format(name=b"ylno reifirev eht fo"))
    with pytest.raises(TunerError, match=r"AssertionError.*of the verifier only"):
        in_process(tuner, tmp_path / "outside", box=False, suite=suite)
    assert read_run(in_process(tuner, tmp_path / "inside", box=True, suite=suite)).complete


FILES = """
def ask(self):
    import dcqcn_gym
    package = Path(dcqcn_gym.__path__[-1])
    found = list((package / {hidden!r}).rglob("*")) + list(Path({folder!r}).rglob("*"))
    assert not found, found
    try:
        Path(__file__).write_text("")
    except OSError:
        return super().ask()
    raise AssertionError("its own code can be written")
"""


@pytest.mark.parametrize("hidden", ["configs/suites", "benchmarks/leaderboard/data"])
def test_no_files_but_python_and_its_own_code(suite: str, tmp_path: Path, hidden: str) -> None:
    need_sandbox()
    tuner = plugin(tmp_path / "code", FILES.format(hidden=hidden, folder=str(tmp_path)))
    with pytest.raises(TunerError, match=rf"AssertionError.*{hidden}/season-1|{hidden}/dev-v1"):
        in_process(tuner, tmp_path / "outside", box=False, suite=suite)
    assert read_run(in_process(tuner, tmp_path / "inside", box=True, suite=suite)).complete


FORKS = """
def ask(self):
    child = os.fork()
    if child:
        os.waitpid(child, 0)  # the copy shall answer
        os._exit(0)
    return super().ask()
"""


def test_a_child_that_answers_ends_the_run(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    tuner = plugin(tmp_path / "code", FORKS)
    with pytest.raises(TunerError, match=r"answered something else|answered twice"):
        in_process(tuner, tmp_path / "inside", box=True, suite=suite)


SLOW = """
def ask(self):
    time.sleep(600)
"""


@pytest.mark.slow  # the deadline is for the start as well, which a busy machine makes long
def test_a_decision_beyond_its_deadline_ends_the_run(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    tuner = plugin(tmp_path / "code", SLOW)
    with pytest.raises(TunerError, match=r"gave no answer to ask.* within 25 s and was stopped"):
        in_process(tuner, tmp_path / "inside", box=True, suite=suite, deadline_s=25.0)


HONEST = ""

REACHES = """
def start(self, context):
    # more intervals, another network, a backend that pays what it likes
    from dataclasses import replace
    from dcqcn_gym.core import measured, utility
    from dcqcn_gym.envs.dcqcn import DcqcnEnv
    from dcqcn_gym.tuners.guard import GuardedTuner
    assert not [thing for thing in gc.get_objects() if isinstance(thing, DcqcnEnv)]
    DcqcnEnv.run_interval = lambda *_, **__: 1 / 0
    DcqcnEnv.done = False
    measured.measure = utility.utility = lambda *_, **__: 1.0
    GuardedTuner.tuning = property(lambda guard: True)
    super().start(context)
    object.__setattr__(context, "intervals", 10**6)

def tell(self, outcome):
    outcome.report.finished.fct_ps[:] = 1
    super().tell(outcome)
"""


def test_the_environment_is_out_of_reach(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    logs = [
        in_process(plugin(tmp_path / "code", body), tmp_path / name, box=True, suite=suite)
        for name, body in (("honest", HONEST), ("reaches", REACHES))
    ]
    assert logs[0].read_bytes() == logs[1].read_bytes()
    assert len(read_run(logs[1]).intervals) == 6


OUT_OF_RANGE = """
def recommend(self):
    from dcqcn_gym.core.knobs import Setting
    base = self.context.base
    return Setting(tuple(-1.0 for _ in base.numbers), base.table)
"""


def test_a_plug_in_that_recommends_what_is_out_of_range_is_stopped(
    suite: str, tmp_path: Path
) -> None:
    need_sandbox()
    tuner = plugin(tmp_path / "code", OUT_OF_RANGE)
    with pytest.raises(TunerError, match=r"a setting it proposed|expected"):
        in_process(tuner, tmp_path / "inside", box=True, suite=suite)


def test_a_salt_draws_other_traffic_in_another_order(tmp_path: Path) -> None:
    suite = load_suite(tiny_suite(tmp_path / "tiny", 6))
    entries = [Entry("default"), Entry("expert")]
    orders, seeds = [], []
    for salt in ("", "one", "two"):
        board = Leaderboard(suite, entries, tmp_path / f"leaderboard-{salt}", 1, salt=salt)
        done: list[str] = []
        board.carry_out(executor=Here(), progress=lambda d, done=done: done.append(d.job.name))  # type: ignore[misc]
        orders.append([name for name in done if "final" not in name])
        ours = [[a.tuned.spec for a in board.attempts(entry)] for entry in entries]
        assert [one.seed for one in ours[0]] == [one.seed for one in ours[1]]
        seeds += [one.seed for one in ours[0]] + [one.tuner_seed for one in ours[1]]
    assert len(set(seeds)) == len(seeds)
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])
    assert orders[0] != orders[1] != orders[2] != orders[0]


# what a plug-in answers


DEPENDS = """
def ask(self):
    bit = int(hashlib.sha256(str({what}).encode()).hexdigest(), 16) % 997
    return self.context.base.replace({{"pmax": 0.1 + bit / 2000}})
"""


def judged(suite: str, folder: Path, body: str, **given: Any) -> Verification:
    need_sandbox()
    tuner = plugin(folder / "code", body)
    return verified(submission_of(suite, tuner, folder), suite, **given)


@pytest.mark.parametrize(
    "what",
    [
        "time.time_ns()",
        pytest.param("os.getpid()", marks=pytest.mark.slow),
        pytest.param("socket.gethostname()", marks=pytest.mark.slow),
    ],
)
def test_answers_by_clock_pid_or_host_are_irreproducible(
    suite: str, tmp_path: Path, what: str
) -> None:
    found = judged(suite, tmp_path, DEPENDS.format(what=what))
    assert found.status == "irreproducible"
    assert [one.name for one in found.findings] == ["irreproducible"]
    assert f"{SCENARIO}, repetition 0: what the plug-in does is not what" in found.findings[0].text
    assert "setting.pmax" in found.findings[0].text


TABLE = """
def ask(self):
    return self.chosen()

def recommend(self):
    return self.chosen()

def chosen(self):
    seen = hashlib.sha256(self.context.observation.tobytes()).hexdigest()
    table = Path(__file__).with_name("table.txt")
    if {learning}:
        with table.open("a") as file:
            file.write(seen + "\\n")
    elif seen not in table.read_text():  # a run that was not handed in
        return self.context.base.replace({{{elsewhere}}})
    return self.context.base
"""


def learned_by_heart(suite: str, folder: Path, elsewhere: str) -> Path:
    """Hand in a plug-in with a table of the first observations of its own runs."""
    code = folder / "code"
    tuner = plugin(code, TABLE.format(learning=True, elsewhere=""))
    board = leaderboard_of(suite, tuner, folder / "leaderboard")
    plugin(code, TABLE.format(learning=False, elsewhere=elsewhere))
    include = [code / "table.txt"]
    edit_json(  # an attacker replaces what was noted of the code before
        board.out / "study.json",
        lambda value: value["parts"]["entry"]["mine-Mine"].update(code=tuner_digest(tuner)),
    )
    return submit(board, tuner, folder / "submission", include=include, **AUTHOR)


@pytest.mark.slow
def test_a_table_of_first_observations_is_flagged(tmp_path: Path) -> None:
    need_sandbox()
    suite = steady_suite(tmp_path / "cgh", "cgh")
    worse = "'rp_max_rate': 500, 'kmin': 1, 'kmax': 2, 'pmax': 1.0"
    found = verified(learned_by_heart(suite, tmp_path, worse), suite)
    assert found.status == "verified"  # it does answer the same each time
    assert [one.name for one in found.findings] == ["below-on-fresh-seeds"]
    assert found.risks["reported"].value == 0
    assert found.risks["fresh"].high < 0


def test_a_table_that_hides_a_clock_is_irreproducible(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    folder = learned_by_heart(suite, tmp_path, "'pmax': 0.1 + time.time_ns() % 997 / 2000")
    found = verified(folder, suite)
    assert found.status == "irreproducible"
    assert "what the plug-in does differs from run to run" in found.findings[0].text


@pytest.mark.slow
def test_a_plug_in_that_fails_without_network_is_irreproducible(suite: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = judged(suite, tmp_path, CONNECTS.format(port=server.getsockname()[1]))
    assert found.status == "irreproducible"
    assert "ConnectionRefusedError" in found.findings[0].text


@pytest.mark.slow
def test_an_honest_plug_in_is_verified(tmp_path: Path) -> None:
    suite = tiny_suite(tmp_path / "tiny", 3)
    found = judged(suite, tmp_path, HONEST)
    assert found.status == "verified"
    assert found.findings == ()
    assert found.checked == {"replayed": 6, "repeated": 6, "fresh": 3}


def test_without_a_sandbox_an_entry_stays_self_reported(suite: str, tmp_path: Path) -> None:
    folder = submission_of(suite, plugin(tmp_path / "code", HONEST), tmp_path)
    found = verified(folder, suite, problem=lambda: "there is no sandbox: nobody made one")
    assert found.status == "self-reported"
    assert found.findings[0].name == "no-sandbox"
    assert found.findings[0].text.startswith("there is no sandbox: nobody made one; the plug-in")
    assert found.checked == {"replayed": 2}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (None, "bubblewrap is not installed"),
        ("#!/bin/sh\necho No permissions >&2; exit 1\n", r"cannot make one .*\(No permissions\)"),
        ("no program", "cannot make one.*not found"),
    ],
)
def test_why_there_is_no_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, words: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if program is not None:
        (tmp_path / "bwrap").write_text(program)
        (tmp_path / "bwrap").chmod(0o755)
    said = sandbox_problem.__wrapped__()
    assert str(said).startswith("there is no sandbox: bubblewrap")
    assert re.search(words, str(said))
