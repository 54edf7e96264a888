"""What stands beside R; entries of leaderboards and submissions on one site."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from submissions import (
    leaderboard_of,
    need_sandbox,
    plugin,
    small_suite,
    submission_of,
    tiny_suite,
    verdicts,
    verified,
)

from dcqcn_gym.benchmarks.leaderboard import bootstrap
from dcqcn_gym.benchmarks.leaderboard.categories import CATEGORIES, category_of
from dcqcn_gym.benchmarks.leaderboard.protocol import open_leaderboard, start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.site.pages import write_site
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.score import Flows, class_figures, class_score
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.tuners import BUILTIN


def test_every_built_in_tuner_has_a_category() -> None:
    found = {name: category_of(name) for name in BUILTIN}
    assert {found[name] for name in ("default", "expert", "fixed", "secn1")} == {"static"}
    assert {found[n] for n in ("ppo-mini", "acc", "pretrained-fbhadoop")} == {"pre-trained"}
    assert {found[name] for name in ("random", "paraleon", "cmaes", "ars")} == {"online"}
    assert set(found.values()) <= set(CATEGORIES)
    assert category_of("somebody.py:Else") == "online"


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two leaderboards of one suite, the second with fewer repetitions of an entry."""
    root = tmp_path_factory.mktemp("leaderboards")
    small_suite(root / "tiny", 3, 12, 6, 2)
    for name, entries, slow in (("one", ["expert"], []), ("two", ["random"], ["random"])):
        board = start_leaderboard(str(root / "tiny"), entries, root / name, slow=slow)
        with ThreadPoolExecutor(1) as here:
            assert board.carry_out(executor=here) == {}
        write_results(board)
    return root


def test_columns_follow_from_the_logs(boards: Path) -> None:
    results = json.loads((boards / "one" / "results.json").read_text())
    line = next(one for one in results["rows"] if one["entry"] == "expert")
    log = read_run(boards / "one" / "runs" / "expert" / "01-four-racks-influx" / "online-00.jsonl")
    runs = (boards / "one" / "runs" / "expert").rglob("online-*.jsonl")
    wire = [at["wire"] for path in runs for at in read_run(path).intervals]
    names = ("fsd_bytes", "metrics_bytes", "dispatch_bytes", "published_bytes")
    spent = [[one[name] for name in names] for one in wire]
    assert line["wire_bytes"] == pytest.approx(np.sum(spent) / len(spent))
    assert line["wire_bytes"] > 0
    details = results["figures"]["entries"]["expert"]
    so_far = details["anytime"]["scores"]["01-four-racks-influx"]
    online = line["online"]["scores"]["01-four-racks-influx"]
    assert so_far[-1] == pytest.approx(np.mean(online))
    assert so_far[0] != so_far[-1]
    assert details["utility"]["01-four-racks-influx"] == pytest.approx(
        [round(float(np.mean(values)), 5) for values in _utilities(boards)], abs=2e-5
    )
    # a static entry recommends one setting, whatever the traffic
    spread = details["settings"]["01-four-racks-influx"]["kmax"]
    assert spread == [log.intervals[0]["setting"]["kmax"]] * 3


def _utilities(boards: Path) -> list[list[float]]:
    folder = boards / "one" / "runs" / "expert" / "01-four-racks-influx"
    runs = [read_run(folder / f"online-0{k}.jsonl").intervals for k in range(2)]
    return [[run[i]["utility"] for run in runs] for i in range(12)]


def test_a_slow_entry_has_fewer_repetitions(boards: Path) -> None:
    results = json.loads((boards / "two" / "results.json").read_text())
    found = {one["entry"]: one["repetitions"] for one in results["rows"]}
    assert found == {"default": 2, "random": 1}
    assert not (boards / "two/runs/random/01-four-racks-influx/online-01.jsonl").exists()


def test_an_entry_that_ran_less_often_has_no_rank(boards: Path) -> None:
    (suite,) = load_suites([boards / "two"])
    random = suite.entry("random")
    assert random is not None
    assert (random.too_few, random.ranked) == (True, False)
    assert "random" not in suite.ranks


def test_a_site_is_made_anew_and_holds_one_leaderboard_of_a_suite(
    boards: Path, tmp_path: Path
) -> None:
    one, two = boards / "one", boards / "two"
    write_site([one], tmp_path)
    first = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    write_site([one], tmp_path)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == first
    write_site([two], tmp_path)
    assert not (tmp_path / "entries" / "tiny-expert.html").exists()
    with pytest.raises(RunError, match=r"two holds suite 'tiny', as a folder before does"):
        load_suites([one, two])


def test_an_oracle_is_listed_without_a_rank(
    boards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "FEWEST_SCENARIOS", 1)
    results = json.loads((boards / "one" / "results.json").read_text())
    results["figures"]["season"] = {"salt_sha256": "0" * 64, "entries": {}}
    default = next(one for one in results["rows"] if one["entry"] == "default")
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert load_suites([tmp_path])[0].ranks == {"default": 1, "expert": 1}
    default["category"] = "oracle"
    (tmp_path / "results.json").write_text(json.dumps(results))
    (suite,) = load_suites([tmp_path])
    assert suite.ranks == {"expert": 1}
    page = write_site([tmp_path], tmp_path / "site").read_text()
    (line,) = (one for one in page.splitlines() if 'data-name="default"' in one)
    assert 'data-category="oracle"' in line
    assert "<td>–</td>" in line
    assert "none: an oracle" in (tmp_path / "site" / "entries" / "tiny-default.html").read_text()


def test_other_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"kind": "compare"}')
    with pytest.raises(RunError, match="its kind is 'compare'"):
        load_suites([tmp_path])


@pytest.mark.slow
def test_a_submission_stands_beside_the_leaderboards_of_its_suite(tmp_path: Path) -> None:
    suite = tiny_suite(tmp_path / "tiny", 3)
    submission = submission_of(suite, plugin(tmp_path / "code", ""), tmp_path)
    board = tmp_path / "leaderboard"
    write_results(open_leaderboard(board))
    write_results(leaderboard_of(suite, "expert", tmp_path / "other"))
    with pytest.raises(RunError, match="give a leaderboard of that suite as well"):
        load_suites([submission])
    with pytest.raises(RunError, match="there is no verdict on its files; bench verify"):
        load_suites([board, submission])
    verified(submission, suite, problem=lambda: "no bubblewrap")
    for shown in ([tmp_path / "other", submission], [submission, board]):
        (suite_shown,) = load_suites(shown, verdicts(submission))
        entry = suite_shown.entry("mine-Mine")
        assert entry is not None
        assert entry.status == ("self-reported" if board not in shown else "measured here")
        assert entry.folder == (submission if board not in shown else board)
    need_sandbox()
    verified(submission, suite)
    page = write_site([board, submission], tmp_path / "site", verdicts(submission))
    text = (page.parent / "entries" / "tiny-mine-Mine.html").read_text()
    assert "<b>verified</b>" in text
    assert "by A. Nonymous (MIT)" in text
    assert 'data-status="verified"' in page.read_text()


def test_weights_of_classes_by_hand() -> None:
    sizes = np.array([1000, 2_000_000])
    done = np.ones(2, dtype=np.bool_)
    runs = (Flows(sizes, np.array(s), done) for s in ([1.0, 8.0], [2.0, 4.0]))
    ours, default = map(class_figures, runs)
    # mice gain ln 2, elephants lose ln 2; nothing in between
    assert class_score(ours, default) == pytest.approx(0.0)
    assert class_score(ours, default, (2, 1, 1)) == pytest.approx(math.log(2) / 3)
    assert class_score(ours, default, (1, 0, 0)) == pytest.approx(math.log(2))
    assert class_score(ours, default, (0, 1, 0)) is None
