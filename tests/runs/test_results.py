"""``results.json`` and tables: strict, complete, with what the figures were made from."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

from dcqcn_gym.comparison.plan import Plan
from dcqcn_gym.comparison.tables import tables_of
from dcqcn_gym.core.compressed_files import read_packed
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_digest
from dcqcn_gym.extras.learn.evaluation import as_json, evaluation
from dcqcn_gym.report import build_report
from dcqcn_gym.runs.results import plain, read_results, tuner_digest, write_results
from dcqcn_gym.runs.table import MISSING, Table, as_markdown, number, with_interval
from dcqcn_gym.tuners.policy import load_policy
from hand_made import install_plugin
from made_study import produce
from synthetic_run import write_run

MINI = load_scenario("mini-fb-hadoop")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def strict(path: Path) -> dict[str, object]:
    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is no JSON")

    return dict(json.loads(path.read_text(), parse_constant=refuse))


def test_unknown_numbers_are_null_and_everything_else_is_kept(tmp_path: Path) -> None:
    row = {"name": "a", "gain": Estimate(math.nan, None, None, 0), "n": np.int64(3)}
    gain = {"mean": None, "low": None, "high": None, "n": 0, "constant": False}
    assert plain(row) == {"name": "a", "gain": gain, "n": 3}
    assert plain({1: (math.inf, True, None, Path("x"), np.array([1.5, math.nan]))}) == {
        "1": [None, True, None, "x", [1.5, None]]
    }
    path = write_results(
        tmp_path, "toy", [row], scenarios=[MINI], tuners={"a": ("random", {})}, seeds={"runs": [1]}
    )
    found = strict(path)
    assert (found["schema"], found["kind"]) == (2, "toy")
    assert found["scenarios"] == {"mini-fb-hadoop": {"sha256": scenario_digest(MINI)}}
    assert found["tuners"] == {
        "a": {"tuner": "random", "arguments": {}, "sha256": tuner_digest("random")}
    }
    assert found["rows"] == [plain(row)]
    assert read_results(path, "toy").data() == found


def test_what_is_no_result_of_the_command_is_refused(tmp_path: Path) -> None:
    path = write_results(tmp_path, "toy", [], scenarios=[], seeds={})
    whole = path.read_text()
    for old, new, said in (
        ('"schema": 2', '"schema": 3', "schema"),
        ('"rows"', '"row"', "row"),
        ('"kind": "toy"', '"kind": "compare"', "its kind is 'compare'; expected 'toy'"),
    ):
        path.write_text(whole.replace(old, new))
        with pytest.raises(ConfigError, match=said):
            read_results(path, "toy")


@pytest.mark.parametrize("suite", ["season-1"])
def test_committed_results_are_read_and_written_by_one_model(suite: str) -> None:
    path = BENCHMARKS / "leaderboard" / "data" / suite / "results.json"
    read = read_results(path, "leaderboard").data()
    assert json.dumps(read, separators=(",", ":")) + "\n" == read_packed(path)


def test_rows_are_in_parquet_where_pyarrow_is(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"name": "a", "gain": Estimate(0.5, 0.4, 0.6, 3)}, {"name": "b", "gain": None}]
    write_results(tmp_path, "toy", rows, scenarios=[], seeds={})
    table = parquet.read_table(tmp_path / "results.parquet").to_pylist()
    assert [row["name"] for row in table] == ["a", "b"]
    assert table[0]["gain.mean"] == 0.5


def test_digests_follow_the_content(tmp_path: Path) -> None:
    other = MINI.model_copy(update={"cadence": 2})
    assert scenario_digest(MINI) == scenario_digest(MINI.model_dump(mode="json"))
    assert scenario_digest(MINI) != scenario_digest(other)
    file = tmp_path / "mine.py"
    found, around = [], []
    for comment in ("", "# another word\n"):
        file.write_text(
            f"{comment}from dcqcn_gym.tuners import Tuner\n"
            "class Mine(Tuner):\n    name = summary = 'mine'\n    ask = lambda self: None\n"
        )
        found.append(tuner_digest(f"{file}:Mine"))
        around.append(tuner_digest("safe", {"tuner": f"{file}:Mine"}))
    assert None not in (*found, *around)
    assert len({*found, *around, tuner_digest("safe")}) == 5
    assert tuner_digest("safe", {"tuner": f"{tmp_path}/gone.py:Mine"}) is None
    assert tuner_digest("nobody") is None
    assert tuner_digest("paraleon") != tuner_digest("random")


def test_reading_results_runs_no_code_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder from somebody else names a tuner's file; its report imported it."""
    ran, code = tmp_path / "ran", tmp_path / "theirs" / "deep.py"
    code.parent.mkdir()
    for file in (code, code.parent / "__init__.py"):
        file.write_text(f"open({str(ran)!r}, 'w')\nclass T: pass\n")
    run = write_run(tmp_path / "run", intervals=5)
    header, *lines = (run / "run.jsonl").read_text().splitlines(keepends=True)
    named = json.dumps({**json.loads(header), "tuner": f"{code}:T"}) + "\n"
    (run / "run.jsonl").write_text(named + "".join(lines))
    build_report(run)
    found: Any = strict(run / "results.json")["tuners"]
    assert found[f"{code}:T"]["sha256"] == tuner_digest(f"{code}:T") is not None
    install_plugin(tmp_path, "theirs", "dcqcn_gym.tuners", {"theirs": "theirs.deep:T"})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert tuner_digest("theirs") == tuner_digest(f"{code}:T")
    code.unlink()
    assert tuner_digest("theirs") is None
    assert not ran.exists()


def test_a_trained_policys_numbers_belong_to_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    found = set()
    for name in ("ppo-mini", "sac-mini", "ppo-mini"):
        file.write_bytes(load_policy(name).to_bytes())
        found.add(tuner_digest("policy", {"file": str(file)}))
    assert len(found) == 2


def test_the_report_writes_its_figures(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=5)
    page = build_report(run).read_text(encoding="utf-8")
    found = strict(run / "results.json")
    rows = found["rows"]
    assert isinstance(rows, list)
    assert [row["name"] for row in rows] == ["default", "expert", "candidate"]
    figures = found["figures"]
    assert isinstance(figures, dict)
    assert f"{rows[2]['utility']['mean']:.4f}" in page
    assert f"{figures['utility_while_tuning']['default']:.4f}" in page
    assert str(escape(figures["evidence"]["title"][1:])) in page
    assert str(escape(figures["answer"]["why"])) in page
    for question, answer in figures["evidence"]["answers"]:
        assert f"<dt>{question}</dt><dd>{escape(answer)}</dd>" in page
    assert len(figures["setting"]) == 20
    assert found["seeds"] == {"run": [1], "held_out": [101, 102, 103]}


def test_an_evaluation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    policy, out = tmp_path / "mine.npz", tmp_path / "out"
    policy.write_bytes(load_policy("ppo-mini").to_bytes())
    study = evaluation(
        [str(policy)], ["mini-fb-hadoop"], ["default"], seeds=2, intervals=3, backend="fake"
    )

    def again(study: Plan) -> str:
        return as_json(study, produce(study, out))

    def logs() -> dict[str, bytes]:
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.jsonl")}

    first, whole = again(study), logs()
    assert len(whole) == 4
    folder = out / "mini-fb-hadoop"
    kept, torn = (folder / "mine" / f"seed100100{i}.jsonl" for i in range(2))
    before = kept.stat().st_mtime_ns
    torn.write_bytes(torn.read_bytes()[:-400])
    (folder / "default" / "seed1001000.jsonl").unlink()
    assert again(study) == first
    assert logs() == whole
    assert kept.stat().st_mtime_ns == before
    more = json.loads(again(study.changed(seeds=3)))
    assert more["rows"][0]["utility"]["n"] == 3
    assert again(study) == first
    text = as_markdown(tables_of(study, study.trials(out)))
    assert text.startswith("### mini-fb-hadoop\n\n| entry | utility | minus default |")


def test_tables_and_their_cells() -> None:
    table = Table(("a", "b"), [("x", "1"), ("y", "2")], "t")
    assert table.markdown() == "| a | b |\n|---|---|\n| x | 1 |\n| y | 2 |"
    value = Estimate(0.5, 0.4, 0.6, 5)
    assert (
        with_interval(value, "+.1f", 100, unit=" %", style="brackets") == "+50.0 % [+40.0, +60.0]"
    )
    words = with_interval(value, ".1f", style="words")
    assert words == "0.5 (95\u00a0% interval 0.4 to 0.6)"
    assert with_interval(None) == with_interval(Estimate(math.nan, None, None, 0)) == MISSING
    assert number(1234567.0) == "1\u202f234\u202f567"


def test_a_trace_without_chance_has_no_interval(tmp_path: Path) -> None:
    scenario = tmp_path / "trace.toml"
    scenario.write_text(
        'description = "two hosts, no queue, no chance"\nwarmup_us = 0\n'
        '[topology]\nkind = "single-switch"\nhosts = 2\n'
        '[[workloads]]\nkind = "alltoall"\nhosts = 2\nbytes = 100_000\noff_us = 50\n'
    )
    study = evaluation([], [str(scenario)], ["default", "expert"], seeds=3, intervals=4)
    text = as_markdown(tables_of(study, produce(study, tmp_path / "trace")))
    assert "### trace (the traffic is the same on every seed: one trace, no interval)" in text
    assert "[" not in text
    chance = evaluation([], ["mini-fb-hadoop"], ["default", "expert"], seeds=3, intervals=4)
    text = as_markdown(tables_of(chance, produce(chance, tmp_path / "chance")))
    assert "one trace" not in text
    assert "[" in text
