"""The comparison: same traffic for all, the same logs however it is carried out, honest rows."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.comparison.figures import dots_figure, profile_figure
from dcqcn_gym.comparison.page import write_results
from dcqcn_gym.comparison.plan import Plan, all_tuners, jobs, prepare, stored_plan
from dcqcn_gym.comparison.ranks import leader, rank_table, ranks
from dcqcn_gym.comparison.results import Figures, collect, moving_mean, rows
from dcqcn_gym.comparison.text import (
    COLUMNS,
    cells,
    during_table,
    headline,
    markdown,
    verdict_table,
)
from dcqcn_gym.core.errors import ConfigError, MissingExtraError, RunError, UnknownNameError
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.runs.campaign import Done
from dcqcn_gym.runs.entries import label
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.table import with_interval
from dcqcn_gym.runs.trials import carry_out
from dcqcn_gym.tuners import optuna_search
from waiting import LONG_S, wait_for

PLAN = Plan(("mini-fb-hadoop",), ("default", "random"), 2, 12, 1, 5, "fake")


def ignore(done: Done[Any]) -> None:
    pass


def produce(plan: Plan, out: Path, workers: int = 1) -> dict[Path, str]:
    plan, _ = prepare(plan, out)
    return carry_out(jobs(plan, out), workers, ignore)


def logs(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*.jsonl"))}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "out"
    assert not produce(PLAN, out)
    return out


def test_every_run_has_its_log(done: Path) -> None:
    assert len(logs(done)) == 2 * 2 * 2
    assert json.loads((done / "compare.json").read_text())["command"].startswith("dcqcn-gym comp")


def test_tuners_see_the_same_traffic_and_are_judged_on_the_same(done: Path) -> None:
    for name in ("seed1.jsonl", "seed2.jsonl", "seed1-fresh0.jsonl"):
        headers = [
            read_run(done / "mini-fb-hadoop" / t / name).header for t in ("default", "random")
        ]
        assert headers[0]["seed"] == headers[1]["seed"]
        assert headers[0]["scenario"] == headers[1]["scenario"]
    fresh = read_run(done / "mini-fb-hadoop/random/seed1-fresh0.jsonl").header["seed"]
    assert fresh not in (1, 2)


def test_the_number_of_workers_changes_nothing(done: Path, tmp_path: Path) -> None:
    produce(PLAN, tmp_path / "two", workers=2)
    assert logs(tmp_path / "two") == logs(done)


def test_resume_completes_to_the_same_bytes(done: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    produce(replace(PLAN, seeds=1), out)
    log = out / "mini-fb-hadoop/random/seed1.jsonl"
    log.write_bytes(log.read_bytes()[:-700])
    (out / "mini-fb-hadoop/default/seed1-fresh0.jsonl").unlink()
    plan, _ = prepare(PLAN, out, resume=True)
    assert not carry_out(jobs(plan, out), 1, ignore)
    assert logs(out) == logs(done)


def test_a_comparison_is_not_replaced_by_accident(done: Path) -> None:
    with pytest.raises(RunError, match=r"already holds a comparison.*--force"):
        prepare(PLAN, done)
    with pytest.raises(RunError, match="one of them"):
        prepare(PLAN, done, resume=True, force=True)
    with pytest.raises(RunError, match="intervals = 12, now it is 13"):
        prepare(replace(PLAN, intervals=13), done, resume=True)
    assert len(logs(done)) == 8


def test_unknown_names_come_with_near_matches(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'paraleon'"):
        prepare(replace(PLAN, tuners=("paraleno",)), tmp_path / "out")
    with pytest.raises(ConfigError, match="did you mean 'mini-fb-hadoop'"):
        prepare(replace(PLAN, scenarios=("mini-fb-hadop",)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_failing_tuner_keeps_its_log_and_stops_nobody(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "from dcqcn_gym.tuners import Tuner\n"
        "class Bad(Tuner):\n"
        "    name = 'bad'\n    summary = 'breaks in its fifth interval'\n"
        "    n = 0\n"
        "    def ask(self):\n"
        "        self.n += 1\n"
        "        return self.context.base if self.n < 5 else self.context.base.replace("
        "{'pmax': float('nan')})\n"
    )
    plan = replace(PLAN, tuners=("default", f"{file}:Bad"), seeds=1)
    out = tmp_path / "out"
    failed = produce(plan, out)
    assert len(failed) == 1
    assert "pmax = nan" in next(iter(failed.values()))
    assert len(read_run(out / "mini-fb-hadoop/bad-Bad/seed1.jsonl").intervals) == 4
    table = rows(jobs(plan, out), failed)["mini-fb-hadoop"]
    assert [(row.tuner, row.seeds) for row in table] == [("default", 1), ("bad-Bad", 0)]
    assert "pmax = nan" in markdown(plan, {"mini-fb-hadoop": table}, [], out)


def test_all_leaves_out_what_cannot_run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optuna_search.TpeTuner, "modules", ("a_module_nobody_has",))
    plan, notes = prepare(replace(PLAN, tuners=all_tuners(), everything=True), tmp_path / "all")
    assert "--tuners all" in plan.command(tmp_path)
    assert "tpe" not in plan.tuners
    assert "random" in plan.tuners
    assert any("tpe was left out" in note and "[optuna]" in note for note in notes)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[optuna\]'"):
        prepare(replace(PLAN, tuners=("tpe",)), tmp_path / "tpe")


def test_all_leaves_out_a_broken_plug_in_of_another_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_tuner.py").write_text("import a_module_nobody_has\n")
    package = tmp_path / "broken_tuner-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-tuner\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[dcqcn_gym.tuners]\nbroken = broken_tuner:Broken\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "broken" in all_tuners()
    plan = replace(PLAN, tuners=("random", "broken"), everything=True)
    kept, notes = prepare(plan, tmp_path / "all")
    assert kept.tuners == ("random",)
    assert len(notes) == 1
    assert "broken was left out" in notes[0]
    assert "a_module_nobody_has" in notes[0]
    with pytest.raises(ConfigError, match="intervals"):
        prepare(replace(plan, intervals=0), tmp_path / "none")
    # named, it fails alone
    named = replace(plan, everything=False, seeds=1)
    kept, notes = prepare(named, tmp_path / "named")
    assert kept.tuners == ("random", "broken")
    assert len(notes) == 1
    assert "broken cannot start" in notes[0]
    failed = carry_out(jobs(kept, tmp_path / "named"), 1, ignore)
    assert len(failed) == 1
    assert "broken_tuner cannot be imported" in next(iter(failed.values()))
    assert len(logs(tmp_path / "named")) == 2


def test_all_is_every_tuner_but_those_that_need_arguments() -> None:
    assert not {"fixed", "policy"} & set(all_tuners())
    assert {"default", "paraleon", "dr-ucb", "gp"} <= set(all_tuners())


def test_labels_are_folder_names() -> None:
    assert label("paraleon") == "paraleon"
    assert label("some/dir/own tuner.py:Best") == "own_tuner-Best"


def test_moving_mean_by_hand() -> None:
    nan = math.nan
    values = np.array([nan, 0.2, nan, 0.4, 0.6, 0.8])
    expected = [nan, nan, nan, 0.3, 0.5, 0.7]
    assert moving_mean(values, 2) == pytest.approx(expected, nan_ok=True)
    assert moving_mean(values, 10)[-1] == pytest.approx(0.5)  # fewer than the window in all
    assert np.all(np.isnan(moving_mean(np.full(3, nan))))


def test_rows_by_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # two tuners, one seed, 30 intervals; the window is 10: a reaches 0.8 (best) at interval 20,
    # b stays at 0.5; 95 % of 0.8 is 0.76: 9 of 10 values at 0.8 and one at 0.41 give 0.761
    step = np.where(np.arange(30) < 10, 0.41, 0.8)
    flat = np.full(30, 0.5)
    made = {"a": figures(step, final=0.8), "default": figures(flat, final=0.5)}
    monkeypatch.setattr("dcqcn_gym.comparison.results.collect", lambda job: made[job.spec.tuner])
    plan = replace(PLAN, tuners=("default", "a"), seeds=1)
    table = rows(jobs(plan, tmp_path))["mini-fb-hadoop"]
    assert [row.tuner for row in table] == ["a", "default"]
    assert table[0].reached == [19]
    assert table[1].reached == [math.inf]
    assert table[0].against_default is not None
    assert table[0].against_default.mean == pytest.approx(0.3)


def figures(utility: np.ndarray[tuple[int], np.dtype[np.float64]], final: float) -> Figures:
    return Figures(1, utility, float(utility.mean()), final, 2.0, 9.0, 5.0, 0.01, 0.1)


def test_unfinished_flows_are_those_of_the_last_fresh_interval(done: Path) -> None:
    job = jobs(PLAN, done)[0]
    last = [json.loads(path.read_text().splitlines()[-2]) for path in job.fresh]
    found = collect(job)
    assert found is not None
    assert found.unfinished == np.mean([line["active_flows"] for line in last])
    assert cells(rows([job])["mini-fb-hadoop"][0])[COLUMNS.index("unfinished")] != "–"


def test_intervals_as_text() -> None:
    assert with_interval(Estimate(0.5, 0.4, 0.6, 5)) == "0.5000 ± 0.1000"
    assert with_interval(Estimate(0.5, 0.45, 0.6, 25), ".2f") == "0.50 [0.45, 0.60]"
    assert with_interval(Estimate(0.5, None, None, 1), "+.1f") == "+0.5"
    assert with_interval(Estimate(math.nan, None, None, 0)) == "–"


def test_page_table_and_plots(done: Path, tmp_path: Path) -> None:
    todo = jobs(PLAN, done)
    page = write_results(PLAN, rows(todo), ["a note"], done)
    html = page.read_text()
    assert "random" in html
    assert "a note" in html
    assert html.count("<figure") == html.count('class="chart') == 3
    assert "http" not in html.replace("http://www.w3.org", "")
    plots = sorted(p.name for p in (done / "plots").iterdir())
    assert plots == [f"mini-fb-hadoop-{kind}.svg" for kind in ("final", "profile", "utility")]
    assert (done / "plots" / plots[0]).read_text().startswith("<svg xmlns=")
    table = (done / "table.md").read_text()
    assert table.count("\n| `") == 2
    assert headline("mini-fb-hadoop", rows(todo)["mini-fb-hadoop"]) in html


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "dcqcn_gym.cli", "compare", "--scenario", "mini-fb-hadoop",
        "--tuners", "default,random", "--seeds", "3", "--intervals", "150", "--jobs", "1",
        "--out", str(out),
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    first = out / "mini-fb-hadoop/default/seed1.jsonl"
    wait_for(first.exists, "the first run has begun")
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 130
    assert "the same command continues it" in errors
    assert "Traceback" not in errors
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "random" in finished.stdout
    whole = tmp_path / "whole"
    subprocess.run([*command[:-1], str(whole)], check=True, capture_output=True)
    assert logs(out) == logs(whole)


def test_two_scenarios_or_tuners_of_one_name_are_refused(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "configs/scenarios/mini-fb-hadoop.toml").read_text()
    copy = tmp_path / "mini-fb-hadoop.toml"
    copy.write_text(text.replace("load = 0.3", "load = 0.6"))
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="both called 'mini-fb-hadoop' and differ: rename one"):
        prepare(replace(PLAN, scenarios=("mini-fb-hadoop", str(copy))), out)
    copy.write_text('name = "../escape"\n' + text)
    with pytest.raises(ConfigError, match=r"name: '\.\./escape' holds '/'; .*names folders"):
        prepare(replace(PLAN, scenarios=(str(copy),)), out)
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "t.py")
        files[-1].write_text(
            f"# {folder}\nfrom dcqcn_gym.tuners.random_search import RandomTuner\n"
        )
    with pytest.raises(ConfigError, match="both called 't-RandomTuner' and differ"):
        prepare(replace(PLAN, tuners=tuple(f"{file}:RandomTuner" for file in files)), out)
    assert not out.exists()


def test_results_hold_every_row_and_seed(done: Path) -> None:
    table = rows(jobs(PLAN, done))
    write_results(PLAN, table, [], done)
    found = json.loads((done / "results.json").read_text())
    assert [row["tuner"] for row in found["rows"]] == [r.tuner for r in table["mini-fb-hadoop"]]
    assert found["rows"][0]["final"]["mean"] == table["mini-fb-hadoop"][0].final.mean
    assert [len(f["utility"]) for row in found["rows"] for f in row["figures"]] == [12] * 4
    assert found["seeds"] == {"runs": [1, 2], "fresh": [1001000, 1002000]}
    assert set(found["tuners"]) == {"default", "random"}


def test_another_executor_makes_the_same_logs(done: Path, tmp_path: Path) -> None:
    plan, _ = prepare(PLAN, tmp_path / "out")
    with ThreadPoolExecutor(2) as pool:
        assert not carry_out(jobs(plan, tmp_path / "out"), 2, executor=pool)
    assert logs(tmp_path / "out") == logs(done)


NATIVE = Plan(("mini-fb-hadoop",), ("default", "expert", "random"), 2, 12, 1, 10)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("native") / "out"
    assert not produce(NATIVE, out, workers=2)
    return out


def test_every_row_has_a_verdict_over_the_default(native: Path) -> None:
    table = rows(jobs(NATIVE, native))["mini-fb-hadoop"]
    by_name = {row.tuner: row for row in table}
    assert by_name["default"].verdict is None
    expert = by_name["expert"].verdict
    assert expert is not None
    assert expert.score.n == 2
    assert {flag.key for flag in expert.flags} >= {"goodput", "unfinished", "pause"}
    shown = {line[0]: line for line in verdict_table("mini-fb-hadoop", table).rows}
    assert shown["default"][1] == "the reference"
    assert shown["expert"][1] == expert.text
    assert re.match(r"[+-]\d\.\d{3} \[", shown["expert"][2])
    goodput = by_name["expert"].goodput_bps.mean
    assert 1e10 < goodput < 16 * 25e9
    assert shown["expert"][4].startswith(f"{goodput * 1e-9:.4g}")
    assert headline("mini-fb-hadoop", table).startswith("mini-fb-hadoop: ")


def test_the_score_decides_the_places_and_not_the_utility(native: Path) -> None:
    table = rows(jobs(NATIVE, native))["mini-fb-hadoop"]
    worth = {row.tuner: row.verdict.score.mean if row.verdict else 0.0 for row in table}
    assert [row.tuner for row in table] == sorted(worth, key=lambda name: -worth[name])
    assert [row.tuner for row in table] != sorted(
        worth, key=lambda name: -next(r.final.mean for r in table if r.tuner == name)
    )  # here the two differ, so the order shows which one decides
    places = ranks(table)
    assert [p.tuner for p in places] == [row.tuner for row in table]
    for upper, lower in pairwise(places):
        assert upper.lead is not None
        assert upper.lead.mean == pytest.approx(worth[upper.tuner] - worth[lower.tuner])
        assert upper.gain is not None
        assert upper.gain.mean == pytest.approx(upper.final.mean - lower.final.mean)
    shown = rank_table(table)
    assert shown.columns[2:4] == ("S over default", "S over the next")
    assert leader(table).startswith(f"{table[0].tuner} is ")
    assert "have shorter slowdowns than the default" in leader(table)
    assert "this score S over the default" in profile_figure(table).file()
    drawn = dots_figure(table).file()
    assert "Score S over the default" in drawn
    assert [f"{row.tuner}: S = {worth[row.tuner]:+.3f}" for row in table] == re.findall(
        r'data-tip="([^"]*)"', drawn
    )


def test_without_scores_the_final_utility_decides(done: Path) -> None:
    table = rows(jobs(PLAN, done))["mini-fb-hadoop"]
    finals = [row.final.mean for row in table]
    assert finals == sorted(finals, reverse=True)
    assert [p.score for p in ranks(table)] == [None] * len(table)
    assert rank_table(table).columns[2] == "ahead of the next by"
    assert "have a higher utility than the default" in leader(table)
    assert "this gain in final utility over the default" in profile_figure(table).file()


def test_the_headline_says_why_there_is_no_verdict(done: Path) -> None:
    untold = rows(jobs(PLAN, done))["mini-fb-hadoop"]
    assert "do not tell which flows were unfinished" in headline("mini-fb-hadoop", untold)
    alone = [row for row in untold if row.tuner != "default"]
    assert "no finished run of the default" in headline("mini-fb-hadoop", alone)
    assert [line[1] for line in verdict_table("x", alone).rows] == ["unknown"]


def test_slowdowns_count_unfinished_flows_with_finished_ones_beside(native: Path) -> None:
    job = jobs(NATIVE, native)[0]
    found = collect(job)
    assert found is not None
    line = json.loads(job.fresh[0].read_text().splitlines()[-1])["end"]["unfinished"]
    first, *_, last = (json.loads(x) for x in job.fresh[0].read_text().splitlines()[1:-1])
    guard = first["start_ps"] + 0.8 * (last["end_ps"] - first["start_ps"])
    ages = [
        max(1.0, (last["end_ps"] - start) / ideal)
        for start, ideal in zip(line["start_ps"], line["ideal_fct_ps"], strict=True)
        if first["start_ps"] <= start < guard
    ]
    flows = [json.loads(x)["flows"] for x in job.fresh[0].read_text().splitlines()[1:-1]]
    done = [
        fct / ideal
        for f in flows
        for start, fct, ideal in zip(f["start_ps"], f["fct_ps"], f["ideal_fct_ps"], strict=True)
        if first["start_ps"] <= start < guard
    ]
    assert ages
    assert found.slowdown_mean == pytest.approx(np.mean(ages + done))
    assert found.finished_mean == pytest.approx(
        np.mean([a / b for f in flows for a, b in zip(f["fct_ps"], f["ideal_fct_ps"], strict=True)])
    )


def test_flows_that_ran_while_tuning_are_shown_by_size(native: Path) -> None:
    table = rows(jobs(NATIVE, native))["mini-fb-hadoop"]
    shown = during_table("mini-fb-hadoop", table)
    assert list(shown.columns)[1:3] == ["mice, mean", "mice, p99"]
    assert len(shown.rows) == 3
    for line in shown.rows:
        assert all(re.fullmatch(r"[\d.]+ \([\d.]+\)", cell) for cell in line[1:])
    text = (write_results(NATIVE, {"mini-fb-hadoop": table}, [], native)).read_text()
    assert "FCT slowdown of the flows that ran while tuning" in text
    assert not re.search(r"\bnan\b", re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))
    found = json.loads((native / "results.json").read_text())
    assert "fresh" not in found["rows"][0]["figures"][0]


def test_intervals_need_nothing_but_the_plain_install(native: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['scipy'] = sys.modules['matplotlib'] = None\n"
        "from pathlib import Path\n"
        "from dcqcn_gym.comparison.plan import Plan, jobs\n"
        "from dcqcn_gym.comparison.results import rows\n"
        "from dcqcn_gym.comparison.text import markdown\n"
        f"plan = Plan({NATIVE.scenarios!r}, {NATIVE.tuners!r}, 2, 12, 1, 10)\n"
        f"out = Path({str(native)!r})\n"
        "print(markdown(plan, rows(jobs(plan, out)), [], out))\n"
    )
    plain = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert plain.stdout.strip() == markdown(NATIVE, rows(jobs(NATIVE, native)), [], native).strip()
    assert "±" in plain.stdout


SMALL = ["--scenario", "mini-fb-hadoop", "--tuners", "default,random", "--seeds", "1"]
SMALL += ["--intervals", "5", "--eval-seeds", "1", "--eval-intervals", "2", "--backend", "fake"]


def command(*words: str) -> str:
    """Run ``compare``; return what it says, its error included."""
    done = CliRunner().invoke(app, ["compare", "--quiet", "--jobs", "1", *words])
    return f"{done.output}{done.exception}"


def test_resume_takes_its_arguments_from_the_stored_run(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    command(*SMALL, "--out", out)
    before = logs(tmp_path / "out")
    log = tmp_path / "out/mini-fb-hadoop/random/seed1.jsonl"
    log.write_bytes(log.read_bytes()[:-300])
    stored = json.loads((tmp_path / "out/compare.json").read_text())
    assert "failed" not in command("--out", out)
    assert logs(tmp_path / "out") == before
    assert json.loads((tmp_path / "out/compare.json").read_text()) == stored
    command("--seeds", "2", "--out", out)  # what is given adds to it
    assert len(logs(tmp_path / "out")) == 2 * len(before)
    assert "intervals = 5, now it is 6" in command("--intervals", "6", "--out", out)


def test_resume_refuses_a_folder_without_a_comparison(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no comparison"):
        prepare(PLAN, tmp_path / "mistyped", resume=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not the plan of a comparison"),
        ("[1]", "is not the plan of a comparison"),
        ("{}", "scenarios: Field required"),
        ('{"scenarios":["mini-fb-hadoop"],"tuners":["default"],"seeds":"x","intervals":5}',
         "seeds: .*got 'x'"),
    ],
)  # fmt: skip
def test_a_damaged_plan_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "compare.json").write_text(text)
    with pytest.raises(RunError, match=says) as caught:
        stored_plan(tmp_path)
    assert "\n" not in str(caught.value)
