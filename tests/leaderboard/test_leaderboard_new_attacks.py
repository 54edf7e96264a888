"""Attacks that were new in November 2026, and the two of several parts: the numbers are those of
the table in docs/leaderboard.md."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from submissions import (
    CALM,
    DAY,
    SCENARIO,
    need_sandbox,
    plugin,
    submission_of,
    verdicts,
    verified,
)

from dcqcn_gym.benchmarks.leaderboard.protocol import planned
from dcqcn_gym.benchmarks.leaderboard.salted_choices import check_salt
from dcqcn_gym.benchmarks.leaderboard.site.pages import write_site
from dcqcn_gym.benchmarks.leaderboard.submission import open_submission, write_list
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.benchmarks.leaderboard.tuner_host import Enclosure
from dcqcn_gym.benchmarks.leaderboard.tuner_host import process as far_end
from dcqcn_gym.benchmarks.leaderboard.verification import (
    Verification,
    files_digest,
    verdict_file,
    write_verification,
)
from dcqcn_gym.core.errors import ConfigError, RunError, TunerError
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from waiting import wait_for

pytestmark = pytest.mark.usefixtures("few_resamples")


def left_out(folder: Path, ours: Path) -> list[str]:
    """Write the site with a submission that has a verdict; return why it is left out."""
    found = Verification(status="verified", date=DAY, files_sha256=files_digest(folder))
    write_verification(verdict_file(verdicts(folder), "tiny", "mine-Mine"), found)
    said: list[str] = []
    write_site([ours, folder], folder.parent / "site", verdicts(folder), said.append)
    return said


def in_sandbox(folder: Path, body: str, suite: str, **how: Any) -> Path:
    """Run a plug-in in the sandbox as a season does; return the log."""
    need_sandbox()
    tuner = plugin(folder / "code", body)
    hosting = Hosting(**{"deadline_s": 60.0, **how}, enclosure=Enclosure(folder / "code"))
    scenario = load_suite(suite).scenarios[SCENARIO]
    run(RunSpec(scenario, tuner, 5, 4, hosting=hosting, tuner_seed=7), folder / "run.jsonl")
    return folder / "run.jsonl"


# files


@pytest.mark.parametrize("salt", ["2026-11-22", "0" * 31, "salt", "G" * 40])
def test_a_salt_that_can_be_guessed_is_refused(salt: str) -> None:
    with pytest.raises(ConfigError, match="at least 32 hexadecimal digits"):
        check_salt(salt)


def test_folders_without_end_are_refused(given: Path) -> None:
    there = os.open(given / "plugin", os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=there)
        below = os.open("d", os.O_RDONLY, dir_fd=there)
        os.close(there)
        there = below
    os.close(there)
    with pytest.raises(ConfigError, match="names of more than 240 characters"):
        open_submission(given)


def test_code_that_would_fill_the_site_is_not_shown(given: Path, ours: Path) -> None:
    (given / "plugin" / "big.py").write_bytes(b"#" * 2**22)
    write_list(given)
    assert left_out(given, ours) == []
    size = sum(p.stat().st_size for p in (given.parent / "site").rglob("*") if p.is_file())
    assert size < 2**21


@pytest.mark.parametrize(
    ("link", "shown"), [("javascript:alert(1)", False), ('https://a"onfocus="alert(1)', True)]
)
def test_a_link_runs_nothing(given: Path, ours: Path, link: str, shown: bool) -> None:
    text = (given / "submission.toml").read_text()
    (given / "submission.toml").write_text(text.replace('link = ""', f"link = '{link}'"))
    write_list(given)
    assert (left_out(given, ours) == []) is shown
    pages = "".join(p.read_text() for p in (given.parent / "site").rglob("*.html"))
    assert 'onfocus="' not in pages
    assert "javascript:" not in pages


def test_two_values_of_one_key_are_no_result(suite: str, given: Path) -> None:
    text = (given / "results.json").read_text()
    (given / "results.json").write_text(text.replace('"entry"', '"wire_bytes": 0, "entry"', 1))
    write_list(given)
    with pytest.raises(RunError, match="figures are not those of its logs"):
        verified(given, suite)


@pytest.mark.parametrize(
    "line", ["--index-url https://x", "-e git+https://x", "a @ https://x/a.whl"]
)
def test_requirements_name_packages_alone(suite: str, given: Path, line: str) -> None:
    (given / "requirements.txt").write_text(line + "\n")
    write_list(given)
    with pytest.raises(ConfigError, match="is no pinned package"):
        verified(given, suite)


def test_code_that_shadows_ours_is_imported_inside_alone(suite: str, given: Path) -> None:
    need_sandbox()
    marks = given.parent / "marks"
    marks.mkdir()
    spy = f"open({str(marks)!r} + '/' + __name__, 'w')\n"
    for name in ("sitecustomize.py", "numpy.py", "json.py", "dcqcn_gym/__init__.py"):
        (given / "plugin" / name).parent.mkdir(exist_ok=True)
        (given / "plugin" / name).write_text(spy)
    write_list(given)
    assert verified(given, suite).status == "irreproducible"
    assert not list(marks.iterdir())


# what a plug-in does


def test_many_words_about_decisions_end_the_run(suite: str, tmp_path: Path) -> None:
    says = CALM + '\n@property\ndef decisions(self):\n    return ["x" * 15_000_000]\n'
    with pytest.raises(TunerError, match="says more than 1048576 characters"):
        in_sandbox(tmp_path, says, suite)
    assert (tmp_path / "run.jsonl").stat().st_size < 2**20


def test_short_of_every_deadline_is_not_short_of_the_runs(suite: str, tmp_path: Path) -> None:
    slow = "def tell(self, outcome):\n    time.sleep(40)\n"
    with pytest.raises(TunerError, match="took more than 8 s over all its calls"):
        in_sandbox(tmp_path, slow, suite, run_s=8.0)


SHOUTS = """
def ask(self):
    said = "\\x1b[2J\\x1b]0;x\\x07\\nverified: every run\\u202e was repeated"
    raise RuntimeError(said + "!" * 10**6)
"""


def test_an_error_cannot_write_on_the_terminal(suite: str, tmp_path: Path) -> None:
    with pytest.raises(TunerError, match="failed in ask") as caught:
        in_sandbox(tmp_path, SHOUTS, suite)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 4000


WIRE = """
def ask(self):
    import gc
    for thing in gc.get_objects():
        if isinstance(thing, socket.socket) and thing.fileno() > 2:
            thing.sendall({line!r})
    return super().ask()
"""


@pytest.mark.parametrize(
    "line",
    [b'{"id": 2, "cpu_s": 0, "value": NaN}\n', b'{"id": 2, "value": ' + b"[" * 5000 + b"\n",
     b'{"id": 2, "cpu_s": 1e999, "value": null}\n', b"cos\nsystem\n(S'x'\ntR.\n"],
    ids=["NaN", "nested", "infinite", "pickle"],
)  # fmt: skip
def test_its_own_words_on_the_pipe_end_the_run(suite: str, tmp_path: Path, line: bytes) -> None:
    with pytest.raises(TunerError, match=r"what is no answer|something else than"):
        in_sandbox(tmp_path, WIRE.format(line=line), suite)


STAYS = """
def start(self, context):
    super().start(context)
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.execv("/usr/bin/sleep", ["sleep", "98765.4321"])
        os._exit(0)
    os.wait()
    time.sleep(0.5)
"""


def test_what_it_starts_ends_with_it(suite: str, tmp_path: Path) -> None:
    assert read_run(in_sandbox(tmp_path, STAYS, suite)).complete
    wait_for(lambda: not running(b"98765.4321"), "its child ends")


def running(word: bytes) -> list[bytes]:
    """Return the arguments of the processes that have a word among them."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            found.append(process.read_bytes())
    return [words for words in found if word in words]


CHEAP = """
def ask(self):
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        pass
    time.process_time = lambda: 0.0
    return self.context.base
"""


def test_the_kernel_says_what_a_decision_costs(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    hosting = Hosting(60.0, enclosure=Enclosure(tmp_path / "code"))
    tuner, scenario = plugin(tmp_path / "code", CHEAP), load_suite(suite).scenarios[SCENARIO]
    spent = run(RunSpec(scenario, tuner, 5, 4, hosting=hosting), tmp_path / "run.jsonl")
    assert spent.tuner_cpu_s > 0.2


BEYOND = r"(25[7-9]|2[6-9]\d|3\d\d|40\d)"
"""257 to 409: it is looked at while they begin, or when all are there."""
THREADS = """
def ask(self):
    import threading
    for _ in range(400):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(30)
"""
CHURN = """
def ask(self):
    import threading
    for _ in range(300):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        threading.Thread(target=time.sleep, args=(0.0001,), daemon=True).start()
"""
PROCESSES = """
def ask(self):
    for _ in range(300):
        if not os.fork():
            os.setsid()
            time.sleep(60)
            os._exit(0)
    time.sleep(30)
"""
BEHIND = """
def start(self, context):
    super().start(context)
    for _ in range(2):
        if not os.fork():
            os.setsid()
            while True:
                pass

def tell(self, outcome):
    time.sleep(10)
"""
LARGE = """
def ask(self):
    for _ in range(4):
        if not os.fork():
            self.block = bytearray(b"x") * (80 * 2**20)
            time.sleep(60)
    time.sleep(30)
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [(THREADS, rf"had {BEYOND} processes and threads, more than 256"),
     (CHURN, rf"had {BEYOND} processes and threads, more than 256"),
     (PROCESSES, r"had \d+ processes and threads, more than 256"),
     (BEHIND, "took more than 3 CPU seconds over its run"),
     (LARGE, r"took \d+ bytes of memory, more than 314572800")],
    ids=["threads", "threads that come and go", "processes", "CPU behind its back",
         "memory of its children"],
)  # fmt: skip
def test_who_takes_the_machine_is_stopped(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    if body is BEHIND:
        monkeypatch.setattr(far_end, "MOST_CPU_S", 3.0)
    if body is LARGE:
        monkeypatch.setattr(far_end, "MOST_RESIDENT", 300 * 2**20)
    with pytest.raises(TunerError, match=said):
        in_sandbox(tmp_path, body, suite, run_s=600.0)


# names


@pytest.mark.parametrize("name", ["Keeper", "kee-per", "keeper_", "paraIeon", "parale0n", "tp3e"])
def test_a_name_that_reads_like_a_built_in_one_is_refused(given: Path, name: str) -> None:
    about = given / "submission.toml"
    about.write_text(about.read_text().replace('name = "mine-Mine"', f'name = "{name}"'))
    write_list(given)
    if name == "tp3e":
        assert open_submission(given).about.name == name
        return
    with pytest.raises(ConfigError, match=f"{name}' reads like '.*', which is built in"):
        open_submission(given)


def test_two_entries_of_a_season_that_read_alike_are_refused(
    suite: str, given: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    shutil.copytree(given, second)
    about = second / "submission.toml"
    about.write_text(about.read_text().replace('name = "mine-Mine"', 'name = "m1ne_mine"'))
    write_list(second)
    with pytest.raises(ConfigError, match="'mine-Mine' and 'm1ne_mine' read alike"):
        planned(suite, ["random"], tmp_path / "s", salt="5" * 32, submissions=[given, second])
    assert not (tmp_path / "s").exists()


def test_another_name_for_the_floor_is_said_to_be_it(suite: str, tmp_path: Path) -> None:
    need_sandbox()
    code = tmp_path / "mine.py"
    code.write_text(
        "from dcqcn_gym.tuners.fixed import DefaultMinRateTuner\n"
        "class Mine(DefaultMinRateTuner):\n    name = 'mine'\n"
    )
    found = verified(submission_of(suite, f"{code}:Mine", tmp_path / "given"), suite)
    assert found.status == "verified"
    assert {one.name for one in found.findings} == {"same-as-reference"}
    assert found.findings[-1].text == "in every run on fresh seeds it is 'default-min-rate'"


# seasons
