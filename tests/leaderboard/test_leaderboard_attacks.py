"""Attacks by files, entries, repetitions and verdicts: what docs/leaderboard.md says they get.

test_board_plugin_attacks.py holds those of code.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from submissions import (
    AUTHOR,
    DAY,
    SCENARIO,
    Here,
    edit_json,
    edit_log,
    leaderboard_of,
    need_sandbox,
    plugin,
    submission_of,
    tiny_suite,
    twice_suite,
    verdicts,
    verified,
)

from dcqcn_gym.benchmarks.leaderboard.protocol import (
    Leaderboard,
    open_leaderboard,
    start_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.site.pages import write_site
from dcqcn_gym.benchmarks.leaderboard.submission import write_list
from dcqcn_gym.benchmarks.leaderboard.submit import submit
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.benchmarks.leaderboard.verification import VERIFICATION_FILE, verdict_of
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, RunError
from dcqcn_gym.runs.entries import Entry

ONLINE, FINAL = (f"logs/{SCENARIO}/{stage}-00.jsonl.gz" for stage in ("online", "final"))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_suite(tmp_path_factory.mktemp("suite") / "tiny")


# edited files


@pytest.fixture(scope="module")
def honest(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return submission_of(suite, "random", tmp_path_factory.mktemp("honest"))


@pytest.fixture
def forged(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "submission"))


Lines = list[dict[str, Any]]


def told_again(lines: Lines) -> None:
    """Let the last line have the mean of what the others say: a careful forger does."""
    scored = [line["utility"] for line in lines[1:-1] if not line["idle"]]
    lines[-1]["end"]["mean_utility"] = float(np.mean(scored))


def better(lines: Lines) -> None:
    lines[3]["utility"] = 1.0
    told_again(lines)


def better_alone(lines: Lines) -> None:
    lines[3]["utility"] = 1.0


def other_setting(lines: Lines) -> None:
    lines[4]["setting"]["rp_max_rate"] = 1000


def faster_flows(lines: Lines) -> None:
    flows = next(line["flows"] for line in lines[1:-1] if line["flows"]["fct_ps"])
    flows["fct_ps"][0] = flows["ideal_fct_ps"][0]


def fewer_unfinished(lines: Lines) -> None:
    for column in ("bytes", "start_ps", "ideal_fct_ps"):
        lines[-1]["end"]["unfinished"][column].pop()


def shorter(lines: Lines) -> None:
    del lines[-2]
    lines[-1]["end"]["intervals"] -= 1
    told_again(lines)


def longer(lines: Lines) -> None:
    lines[0]["intervals"] = 60


def other_traffic(lines: Lines) -> None:
    lines[0]["seed"] += 1


def other_network(lines: Lines) -> None:
    lines[0]["scenario"]["warmup_us"] += 1


def free_feedback(lines: Lines) -> None:
    lines[2]["wire"]["metrics_bytes"] += 1


EDITS: dict[str, tuple[str, Callable[[Lines], None], str]] = {
    "a better utility": (ONLINE, better, "line 4, utility is 1.0"),
    "a better utility alone": (ONLINE, better_alone, "the last line has mean_utility"),
    "another setting": (ONLINE, other_setting, "its settings do not give what it holds: line 5"),
    "faster flows": (FINAL, faster_flows, "line 2, flows.fct_ps is"),
    "fewer flows left over": (FINAL, fewer_unfinished, "end.unfinished.bytes"),
    "an interval left out": (ONLINE, shorter, "the run goes on after the last recorded interval"),
    "more budget": (ONLINE, longer, "line 1 is not what the suite asks.*intervals is 60"),
    "easier traffic": (ONLINE, other_traffic, "line 1 is not what the suite asks.*seed is"),
    "another network": (ONLINE, other_network, "not what the suite asks.*scenario.warmup_us is"),
    "cheaper feedback": (ONLINE, free_feedback, "line 3, wire.metrics_bytes"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_log_is_refused(suite: str, forged: Path, name: str) -> None:
    log, change, words = EDITS[name]
    edit_log(forged, log, change)
    with pytest.raises(RunError, match=words) as caught:
        verified(forged, suite)
    assert log in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not verdicts(forged).exists()


def test_an_edit_that_changes_nothing_else_is_found_by_the_tuner(suite: str, forged: Path) -> None:
    def change(lines: Lines) -> None:
        lines[4]["setting"]["rp_ai_rate"] += 1

    edit_log(forged, ONLINE, change)
    found = verified(forged, suite)
    assert found.status == "irreproducible"
    assert "line 5, setting.rp_ai_rate is" in found.findings[0].text


def test_an_edited_result_is_refused(suite: str, forged: Path) -> None:
    edit_json(forged / "results.json", lambda value: value["final"]["score"].update(value=9.0))
    write_list(forged)
    with pytest.raises(RunError, match=r"results\.json: its figures are not those of its logs"):
        verified(forged, suite)


@pytest.mark.parametrize(
    ("knob", "value", "words"),
    [
        ("kmin", -1.0, "kmin.* -1"),
        ("rp_ai_rate", 1e9, "rp_ai_rate"),
    ],
)
def test_a_recommendation_out_of_range_is_refused(
    suite: str, forged: Path, knob: str, value: float, words: str
) -> None:
    def change(lines: Lines) -> None:
        lines[-1]["end"]["recommended"][knob] = value

    edit_log(forged, ONLINE, change)
    with pytest.raises(DcqcnGymError, match=words):
        verified(forged, suite)


# an entry that is none


FORGED: dict[str, tuple[Entry, str]] = {
    "other traffic": (
        Entry("do-nothing", {}, {"workloads": [
            {"kind": "poisson", "cdf": "Solar2022", "load": 0.03, "load_of": "host"}
        ]}, "easy-load"),
        r"changes\.workloads: all entries run on the suite's own scenarios",
    ),
    "an easier network": (
        Entry("do-nothing", {}, {"topology": {"host_gbps": 100}}, "easy-net"),
        r"changes\.topology: all entries run on",
    ),
    "a scheme with options": (
        Entry("do-nothing", {}, {"scheme": {"name": "dcqcn"}}, "easy-scheme"),
        r"changes\.scheme = {'name': 'dcqcn'}: unknown scheme",
    ),
    "a misspelt scheme": (
        Entry("do-nothing", {}, {"scheme": "timley"}, "typo"), ".* did you mean 'timely'"
    ),
    "settings": (
        Entry("fixed", {"kmin": 5}, {}, "mine"),
        r"tuner_args\.kmin: an entry runs its tuner as it comes",
    ),
    "a file that is no shipped policy": (
        Entry("policy", {"file": "/tmp/mine.npz"}, {}, "mine"),
        r"tuner_args\.file = '/tmp/mine\.npz': no policy of the package",
    ),
}  # fmt: skip


def unchecked(
    entry: Entry, suite: str, folder: Path, patch: pytest.MonkeyPatch, repetitions: int = 1
) -> Path:
    """Hand in an entry as a forger would, who left the checks out of the program."""
    board = Leaderboard(
        load_suite(suite), [Entry("default"), entry], folder / "leaderboard", repetitions
    )
    assert board.carry_out(executor=Here()) == {}
    with patch.context() as here:
        for name in ("submit.check_asked", "submission.check_asked", "submit.check_repetitions",
                     "submit.check_slow"):  # fmt: skip
            here.setattr(f"dcqcn_gym.benchmarks.leaderboard.{name}", lambda *_: None)
        return submit(board, entry.name, folder / "submission", AUTHOR)


@pytest.mark.parametrize("name", FORGED)
def test_an_entry_that_no_leaderboard_has_is_not_submitted(
    suite: str, tmp_path: Path, name: str
) -> None:
    entry, words = FORGED[name]
    board = Leaderboard(load_suite(suite), [Entry("default"), entry], tmp_path / "leaderboard", 1)
    with pytest.raises(ConfigError, match=f"entry '{entry.name}': {words}") as caught:
        submit(board, entry.name, tmp_path / "submission", AUTHOR)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["other traffic", "an easier network"])
def test_other_traffic_or_an_easier_network_is_not_verified(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    entry, words = FORGED[name]
    folder = unchecked(entry, suite, tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match=rf"submission\.toml: {words}"):
        verified(folder, suite)


ESCAPES = """
from pathlib import Path
from dcqcn_gym.tuners.random_search import RandomTuner

Path({path!r}).write_text("out of the sandbox")

class Mine(RandomTuner):
    name = summary = "mine"
"""


def test_a_built_in_tuner_that_names_a_plug_in_is_refused(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What wraps another tuner would import it in the verifier's own process."""
    (tmp_path / "mine.py").write_text(ESCAPES.format(path=str(tmp_path / "pwned")))
    entry = Entry("safe", {"tuner": f"{tmp_path}/mine.py:Mine"}, {}, "safe-mine")
    folder = unchecked(entry, suite, tmp_path, monkeypatch)
    assert (tmp_path / "pwned").exists()
    (tmp_path / "pwned").unlink()
    with pytest.raises(
        ConfigError, match=r"submission\.toml: tuner_args\.tuner: an entry runs its"
    ):
        verified(folder, suite)
    assert not (tmp_path / "pwned").exists()


def test_code_beside_a_built_in_tuner_is_refused(suite: str, forged: Path) -> None:
    (forged / "plugin").mkdir()
    (forged / "plugin" / "mine.py").write_text("raise SystemExit\n")
    write_list(forged)
    with pytest.raises(ConfigError, match=r"mine\.py: tuner 'random' is built in, so .* no code"):
        verified(forged, suite)


# fewer repetitions, so that no flag is up


@pytest.mark.parametrize(
    ("repetitions", "words"),
    [
        (1, r"1 of 2 repetitions, but its tuner needs .* ms a decision; .* more than 20 ms"),
        (3, "3 repetitions; suite 'tiny' asks 2, or 1 of a tuner that needs more than 20 ms"),
    ],
)
def test_an_entry_runs_as_often_as_its_suite_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repetitions: int, words: str
) -> None:
    suite = twice_suite(tmp_path / "tiny")
    folder = unchecked(Entry("random"), suite, tmp_path, monkeypatch, repetitions)
    with pytest.raises(ConfigError, match=rf"submission\.toml: has {words}"):
        verified(folder, suite)
    board = Leaderboard(
        load_suite(suite),
        [Entry("default"), Entry("random")],
        tmp_path / "leaderboard",
        repetitions,
    )
    with pytest.raises(ConfigError, match="entry 'random': has"):
        submit(board, "random", tmp_path / "again", AUTHOR)
    assert not (tmp_path / "again").exists()


THINKS = """
def ask(self):
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass
    return self.context.base

def recommend(self):
    return self.context.base
"""


@pytest.mark.slow
def test_a_tuner_that_is_slow_runs_less_often_and_has_no_rank(tmp_path: Path) -> None:
    need_sandbox()
    suite = twice_suite(tmp_path / "tiny")
    tuner = plugin(tmp_path / "code", THINKS)
    board = start_leaderboard(suite, [tuner], tmp_path / "leaderboard", slow=[tuner])
    assert board.carry_out(executor=Here()) == {}
    folder = submit(board, tuner, tmp_path / "submission", AUTHOR)
    assert verified(folder, suite).status == "verified"
    write_results(leaderboard_of(suite, "do-nothing", tmp_path / "ours"))
    (shown,) = load_suites([tmp_path / "ours", folder])
    assert {"default", "do-nothing"} <= shown.ranks.keys()
    entry = shown.entry("mine-Mine")
    assert entry is not None
    assert (entry.too_few, entry.ranked) == (True, False)
    page = write_site([tmp_path / "ours", folder], tmp_path / "site", DAY).parent
    assert not entry.flags
    text = (page / "entries" / "tiny-mine-Mine.html").read_text()
    assert "none: it has 1 of 2 repetitions" in text
    assert "none, too few repetitions for a rank" in (page / "index.html").read_text()


# what its authors say that a verifier says


def test_a_verdict_that_comes_with_a_submission_counts_for_nothing(
    suite: str, forged: Path, tmp_path: Path
) -> None:
    write_results(board := leaderboard_of(suite, "do-nothing", tmp_path / "leaderboard"))
    verified(forged, suite, verdicts=tmp_path / "theirs")
    shutil.copy(tmp_path / "theirs" / "tiny" / "random.json", forged / VERIFICATION_FILE)
    for folder in (None, tmp_path / "ours"):
        (shown,) = load_suites([board.out, forged], folder)
        entry = shown.entry("random")
        assert entry is not None
        assert entry.submitted
        assert entry.verification == verdict_of("self-reported")
    verified(forged, suite, verdicts=tmp_path / "ours")
    (shown,) = load_suites([board.out, forged], tmp_path / "ours")
    assert [entry.verification.status for entry in shown.entries if entry.submitted] == ["verified"]


Spoil = Callable[[dict[str, Any]], object]
RESULTS: dict[str, tuple[Spoil, str]] = {
    "a key": (lambda value: [value.pop(key) for key in list(value)], "entry: this key is missing"),
    "another entry": (lambda value: value.update(entry=1), "entry = 1: expected a valid string"),
    "a stage": (lambda value: value.pop("final"), "final: this key is missing"),
    "a name": (
        lambda value: value.update(entry="expert"), "entry = 'expert'; submission.toml says"
    ),
    "a scenario": (
        lambda value: value["final"]["scores"].clear(), "final.scores has other scenarios than"
    ),
    "a run": (
        lambda value: value["online"]["scores"][SCENARIO].append(1.0), "has 2 runs; expected 1"
    ),
    "a checkpoint": (
        lambda value: value["learning_curve"]["anytime"]["score"].pop(),
        "anytime.score: expected 5 points",
    ),
    "a curve": (
        lambda value: value["learning_curve"]["utility"][SCENARIO].clear(), "expected 1 to 6 values"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_is_none_is_one_sentence(honest: Path, forged: Path, name: str) -> None:
    spoil, words = RESULTS[name]
    write_results(open_leaderboard(honest.parent / "leaderboard"))
    edit_json(forged / "results.json", spoil)
    write_list(forged)
    with pytest.raises(ConfigError, match=words) as caught:
        load_suites([honest.parent / "leaderboard", forged])
    assert str(caught.value).startswith(str(forged / "results.json"))
    assert "\n" not in str(caught.value)
