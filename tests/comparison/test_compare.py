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
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.comparison.compare import (
    all_tuners,
    command_of,
    held_plan,
    plan_and_remarks,
    plan_of,
    startable,
    study_of,
)
from dcqcn_gym.comparison.figures import dots_figure, profile_figure
from dcqcn_gym.comparison.page import write_all
from dcqcn_gym.comparison.plan import Plan
from dcqcn_gym.comparison.ranks import leader, rank_table, ranks
from dcqcn_gym.comparison.results import EntryResult, Figures, collect, moving_mean, results_of
from dcqcn_gym.comparison.text import (
    COLUMNS,
    answers,
    cells,
    during_table,
    headline,
    markdown,
    verdict_table,
)
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import ConfigError, MissingExtraError, RunError, UnknownNameError
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.extras.search import optuna_tuners
from dcqcn_gym.runs.campaign import FinishedJob
from dcqcn_gym.runs.entries import label
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.table import with_interval
from dcqcn_gym.runs.trials import Trial, carry_out
from waiting import LONG_S, wait_for

ASKED: dict[str, Any] = {
    "scenarios": ("mini-fb-hadoop",), "tuners": ("default", "random"), "seeds": 2, "intervals": 12,
    "eval_seeds": 1, "eval_intervals": 5, "backend": "fake",
}  # fmt: skip
PLAN = plan_of(ASKED)


def ignore(done: FinishedJob[Any]) -> None:
    pass


def jobs(plan: Plan, out: Path) -> list[Trial]:
    return list(study_of(plan, out).jobs.values())


def table_of(plan: Plan, out: Path, failed: dict[Path, str] | None = None) -> list[EntryResult]:
    return results_of(jobs(plan, out), failed)["mini-fb-hadoop"]


def produce(plan: Plan, out: Path) -> dict[Path, str]:
    """Carry out a plan in threads, which begin at once: a worker process takes a second."""
    study = study_of(plan, out)
    study.begin(out)
    with ThreadPoolExecutor(2) as pool:
        return carry_out(study.jobs.values(), 2, ignore, pool)


def logs(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*.jsonl"))}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "out"
    assert not produce(PLAN, out)
    return out


def test_every_run_has_its_log(done: Path) -> None:
    assert len(logs(done)) == 2 * 2 * 2
    assert json.loads((done / "study.json").read_text())["command"].startswith("dcqcn-gym comp")


def test_tuners_see_the_same_traffic_and_are_judged_on_the_same(done: Path) -> None:
    for name in ("seed1.jsonl", "seed2.jsonl", "seed1-held-out0.jsonl"):
        headers = [
            read_run(done / "mini-fb-hadoop" / t / name).header for t in ("default", "random")
        ]
        assert headers[0]["seed"] == headers[1]["seed"]
        assert headers[0]["scenario"] == headers[1]["scenario"]
    held_out = read_run(done / "mini-fb-hadoop/random/seed1-held-out0.jsonl").header["seed"]
    assert held_out == 1_001_000  # what results.json says


def test_worker_processes_make_the_same_logs_as_threads(done: Path, tmp_path: Path) -> None:
    assert not carry_out(jobs(PLAN, tmp_path), 2)  # worker processes
    assert logs(tmp_path) == logs(done)


def test_more_seeds_and_what_was_cut_end_with_the_same_bytes(done: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    produce(plan_of({**ASKED, "seeds": 1}), out)
    log = out / "mini-fb-hadoop/random/seed1.jsonl"
    log.write_bytes(log.read_bytes()[:-700])
    (out / "mini-fb-hadoop/default/seed1-held-out0.jsonl").unlink()
    assert not produce(PLAN, out)
    assert logs(out) == logs(done)


def test_unknown_names_come_with_near_matches() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'paraleon'"):
        startable(plan_of({**ASKED, "tuners": ("paraleno",)}))
    with pytest.raises(ConfigError, match="did you mean 'mini-fb-hadoop'"):
        plan_of({**ASKED, "scenarios": ("mini-fb-hadop",)})


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
    plan = plan_of({**ASKED, "tuners": ("default", f"{file}:Bad"), "seeds": 1})
    out = tmp_path / "out"
    failed = produce(plan, out)
    assert len(failed) == 1
    assert "pmax = nan" in next(iter(failed.values()))
    assert len(read_run(out / "mini-fb-hadoop/bad-Bad/seed1.jsonl").intervals) == 4
    table = table_of(plan, out, failed)
    assert [(row.tuner, row.seeds) for row in table] == [("default", 1), ("bad-Bad", 0)]
    assert "pmax = nan" in markdown(plan, {"mini-fb-hadoop": table}, [], out)


def test_all_leaves_out_what_cannot_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna_tuners.TpeTuner, "modules", ("a_module_nobody_has",))
    plan, notes = startable(plan_of({**ASKED, "tuners": all_tuners()}), everything=True)
    names = {entry.name for entry in plan.entries}
    assert "tpe" not in names
    assert "random" in names
    assert any("tpe was left out" in note and "[optuna]" in note for note in notes)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[optuna\]'"):
        startable(plan_of({**ASKED, "tuners": ("tpe",)}))


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
    plan = plan_of({**ASKED, "tuners": ("random", "broken"), "seeds": 1})
    kept, notes = startable(plan, everything=True)
    assert [entry.name for entry in kept.entries] == ["default", "random"]
    assert len(notes) == 1
    assert "broken was left out" in notes[0]
    assert "a_module_nobody_has" in notes[0]
    # named, it fails alone
    kept, notes = startable(plan)
    assert kept == plan
    assert len(notes) == 1
    assert "broken cannot start" in notes[0]
    failed = produce(kept, tmp_path / "named")
    assert len(failed) == 1
    assert "broken_tuner cannot be imported" in next(iter(failed.values()))
    assert len(logs(tmp_path / "named")) == 2 * 2  # with the baseline


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
    monkeypatch.setattr("dcqcn_gym.comparison.plan.tuner_digest", lambda *_: None)
    plan = plan_of({**ASKED, "tuners": ("default", "a"), "seeds": 1})
    table = table_of(plan, tmp_path)
    assert [row.tuner for row in table] == ["a", "default"]
    assert table[0].reached == [19]
    assert table[1].reached == [math.inf]
    assert table[0].against_baseline is not None
    assert table[0].against_baseline.mean == pytest.approx(0.3)


def figures(utility: np.ndarray[tuple[int], np.dtype[np.float64]], final: float) -> Figures:
    return Figures(1, utility, float(utility.mean()), final, 2.0, 9.0, 5.0, 0.01, 0.1)


def test_unfinished_flows_are_those_of_the_last_held_out_interval(done: Path) -> None:
    job = jobs(PLAN, done)[0]
    last = [json.loads(path.read_text().splitlines()[-2]) for path in job.held_out]
    found = collect(job)
    assert found is not None
    assert found.unfinished == np.mean([line["active_flows"] for line in last])
    assert cells(results_of([job])["mini-fb-hadoop"][0])[COLUMNS.index("unfinished")] != "–"


def test_intervals_as_text() -> None:
    assert with_interval(Estimate(0.5, 0.4, 0.6, 5)) == "0.5000 ± 0.1000"
    assert with_interval(Estimate(0.5, 0.45, 0.6, 25), ".2f") == "0.50 [0.45, 0.60]"
    assert with_interval(Estimate(0.5, None, None, 1), "+.1f") == "+0.5"
    assert with_interval(Estimate(math.nan, None, None, 0)) == "–"


def test_page_table_and_plots(done: Path, tmp_path: Path) -> None:
    table = table_of(PLAN, done)
    page = write_all(PLAN, {"mini-fb-hadoop": table}, ["a note"], done)
    html = page.read_text()
    assert "random" in html
    assert "a note" in html
    assert html.count("<figure") == html.count('class="chart') == 3
    assert "http" not in html.replace("http://www.w3.org", "")
    plots = sorted(p.name for p in (done / "plots").iterdir())
    assert plots == [f"mini-fb-hadoop-{kind}.svg" for kind in ("final", "profile", "utility")]
    assert (done / "plots" / plots[0]).read_text().startswith("<svg xmlns=")
    assert (done / "table.md").read_text().count("\n| `") == 2
    said = answers(PLAN, {"mini-fb-hadoop": table})["mini-fb-hadoop"]
    assert headline("mini-fb-hadoop", table, said) in unescape(html)
    written = json.loads((done / "results.json").read_text())["figures"]["answers"][
        "mini-fb-hadoop"
    ]
    assert written["title"] == said.title


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "dcqcn_gym.cli", "compare", "--scenario", "mini-fb-hadoop",
        "--tuners", "default,random", "--seeds", "2", "--intervals", "60", "--jobs", "1",
        "--eval-seeds", "1", "--eval-intervals", "10",
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
    with pytest.raises(ConfigError, match="both called 'mini-fb-hadoop' and differ: rename one"):
        plan_of({**ASKED, "scenarios": ("mini-fb-hadoop", str(copy))})
    copy.write_text('name = "../escape"\n' + text)
    with pytest.raises(ConfigError, match=r"name: '\.\./escape' holds '/'; .*names folders"):
        plan_of({**ASKED, "scenarios": (str(copy),)})
    with pytest.raises(ConfigError, match="both called 't-Random' and differ"):
        plan_of({**ASKED, "tuners": ("a/t.py:Random", "b/t.py:Random")})


def test_results_hold_every_row_and_seed(done: Path) -> None:
    table = results_of(jobs(PLAN, done))
    write_all(PLAN, table, [], done)
    found = json.loads((done / "results.json").read_text())
    assert [row["tuner"] for row in found["rows"]] == [r.tuner for r in table["mini-fb-hadoop"]]
    assert found["rows"][0]["final"]["mean"] == table["mini-fb-hadoop"][0].final.mean
    assert [len(f["utility"]) for row in found["rows"] for f in row["figures"]] == [12] * 4
    assert found["seeds"] == {"runs": [1, 2], "held_out": [1001000, 1002000]}
    assert set(found["tuners"]) == {"default", "random"}


OF_NATIVE: dict[str, Any] = {
    **ASKED, "tuners": ("default", "expert", "random"), "eval_intervals": 10, "backend": "native",
}  # fmt: skip
NATIVE = plan_of(OF_NATIVE)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("native") / "out"
    assert not produce(NATIVE, out)
    return out


def test_every_row_has_a_verdict_over_the_default(native: Path) -> None:
    table = table_of(NATIVE, native)
    by_name = {row.tuner: row for row in table}
    assert by_name["default"].verdict is None
    expert = by_name["expert"].verdict
    assert expert is not None
    assert expert.score.n == 2
    assert {flag.key for flag in expert.flags} >= {"goodput", "unfinished", "pause"}
    shown = {line[0]: line for line in verdict_table("mini-fb-hadoop", table).rows}
    assert shown["default"][1] == "the baseline"
    assert shown["expert"][1] == expert.text
    assert re.match(r"[+-]\d\.\d{3} \[", shown["expert"][2])
    goodput = by_name["expert"].goodput_bps.mean
    assert 1e10 < goodput < 16 * 25e9
    assert shown["expert"][4].startswith(f"{goodput * 1e-9:.4g}")
    said = answers(NATIVE, {"mini-fb-hadoop": table})["mini-fb-hadoop"]
    assert said.verdicts["expert"] == expert
    assert headline("mini-fb-hadoop", table, said).startswith(f"mini-fb-hadoop: {leader(table)} ")


def test_the_score_decides_the_places_and_not_the_utility(native: Path) -> None:
    table = table_of(NATIVE, native)
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
    assert shown.columns[2:4] == ("S over the baseline", "S over the next")
    assert leader(table).startswith(f"{table[0].tuner} is ")
    assert "have shorter slowdowns than NVIDIA's default" in leader(table)
    assert "this score S over the baseline" in profile_figure(table).file()
    drawn = dots_figure(table).file()
    assert "Score S over the baseline" in drawn
    assert [f"{row.tuner}: S = {worth[row.tuner]:+.3f}" for row in table] == re.findall(
        r'data-tip="([^"]*)"', drawn
    )


def test_without_scores_the_final_utility_decides(done: Path) -> None:
    table = table_of(PLAN, done)
    finals = [row.final.mean for row in table]
    assert finals == sorted(finals, reverse=True)
    assert [p.score for p in ranks(table)] == [None] * len(table)
    assert rank_table(table).columns[2] == "ahead of the next by"
    assert "have a higher utility than NVIDIA's default" in leader(table)
    assert "this gain in final utility over the baseline" in profile_figure(table).file()


def test_the_headline_says_why_there_is_no_verdict(done: Path) -> None:
    untold = table_of(PLAN, done)

    def why(table: list[EntryResult]) -> str:
        return answers(PLAN, {"mini-fb-hadoop": table})["mini-fb-hadoop"].title

    assert "do not tell which flows were unfinished" in why(untold)
    alone = [row for row in untold if row.tuner != "default"]
    assert "no finished run of default" in why(alone)
    assert [line[1] for line in verdict_table("x", alone).rows] == ["unknown"]


def test_slowdowns_count_unfinished_flows_with_finished_ones_beside(native: Path) -> None:
    job = jobs(NATIVE, native)[0]
    found = collect(job)
    assert found is not None
    line = json.loads(job.held_out[0].read_text().splitlines()[-1])["end"]["unfinished"]
    first, *_, last = (json.loads(x) for x in job.held_out[0].read_text().splitlines()[1:-1])
    guard = first["start_ps"] + 0.8 * (last["end_ps"] - first["start_ps"])
    ages = [
        max(1.0, (last["end_ps"] - start) / ideal)
        for start, ideal in zip(line["start_ps"], line["ideal_fct_ps"], strict=True)
        if first["start_ps"] <= start < guard
    ]
    flows = [json.loads(x)["flows"] for x in job.held_out[0].read_text().splitlines()[1:-1]]
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
    table = table_of(NATIVE, native)
    shown = during_table("mini-fb-hadoop", table)
    assert list(shown.columns)[1:3] == ["mice, mean", "mice, p99"]
    assert len(shown.rows) == 3
    for line in shown.rows:
        assert all(re.fullmatch(r"[\d.]+ \([\d.]+\)", cell) for cell in line[1:])
    text = (write_all(NATIVE, {"mini-fb-hadoop": table}, [], native)).read_text()
    assert "FCT slowdown of the flows that ran while tuning" in text
    assert not re.search(r"\bnan\b", re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))
    found = json.loads((native / "results.json").read_text())
    assert "held_out" not in found["rows"][0]["figures"][0]


def test_intervals_need_nothing_but_the_plain_install(native: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['scipy'] = sys.modules['matplotlib'] = None\n"
        "from pathlib import Path\n"
        "from dcqcn_gym.comparison.compare import plan_of, study_of\n"
        "from dcqcn_gym.comparison.results import results_of\n"
        "from dcqcn_gym.comparison.text import markdown\n"
        f"plan = plan_of({OF_NATIVE!r})\n"
        f"out = Path({str(native)!r})\n"
        "print(markdown(plan, results_of(study_of(plan, out).jobs.values()), [], out))\n"
    )
    plain = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert (
        plain.stdout.strip()
        == markdown(NATIVE, results_of(jobs(NATIVE, native)), [], native).strip()
    )
    assert "±" in plain.stdout


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ({"tuners": ("random",)}, {}),
        ({"tuners": ("expert",)}, {"tuners": ("default", "random", "expert")}),
        ({"scenarios": ("mini-storm",)}, {"scenarios": ("mini-fb-hadoop", "mini-storm")}),
        ({"seeds": 4, "eval_seeds": 1}, {"seeds": 4}),
    ],
)
def test_what_is_given_adds(given: dict[str, Any], changed: dict[str, Any]) -> None:
    assert plan_of(given, PLAN) == plan_of({**ASKED, **changed})


@pytest.mark.parametrize("key", ["seeds", "eval_seeds"])
def test_fewer_seeds_are_refused(key: str) -> None:
    with pytest.raises(RunError, match=f"--{key.replace('_', '-')} 1: the comparison has 2"):
        plan_of({key: 1}, plan_of({**ASKED, "eval_seeds": 2}))


def test_the_folder_alone_continues_it(done: Path) -> None:
    held = held_plan(done)
    assert held is not None
    assert plan_of({}, held) == PLAN
    assert "--tuners default,random --seeds 2 --intervals 12 --eval-seeds 1" in command_of(
        held, done
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid JSON"),
        ("[1]", "expected an object"),
        ('{"kind": "compare"}', "versions"),
        ('{"kind":"compare","versions":{},"command":"","same":{},"parts":{},"plan":{"seeds":"x"}}',
         "description: this key is missing"),
    ],
)  # fmt: skip
def test_a_damaged_plan_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(RunError, match=says) as caught:
        held_plan(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_setting_in_service_is_compared_with_by_itself(tmp_path: Path) -> None:
    """Without asking for it: the default, or where [initial] gives another one, that."""
    assert plan_of({**ASKED, "tuners": ("random",)}).entries[0].name == "default"
    text = (CONFIGS / "scenarios/mini-fb-hadoop.toml").read_text()
    (tmp_path / "own.toml").write_text(f"initial = {{ kmin = 50 }}\n{text}")
    plan = plan_of({**ASKED, "scenarios": (str(tmp_path / "own.toml"),), "tuners": ("default",)})
    assert [e.name for e in plan.entries] == ["do-nothing", "default"]
    out = tmp_path / "out"
    assert not produce(plan, out)
    table = results_of(jobs(plan, out))["own"]
    assert {row.baseline for row in table} == {"do-nothing"}
    assert answers(plan, {"own": table})["own"].baseline == "do-nothing"
    assert "than your setting beyond chance" in leader(table)


def test_a_short_trace_is_said_and_fitted(tmp_path: Path) -> None:
    rows = "".join(f"{i % 3},{3 + i % 2},20000,{i * 500_000}\n" for i in range(160))
    (tmp_path / "flows.csv").write_text(f"src,dst,bytes,start_ns\n{rows}")
    topology = 'topology = { kind = "single-switch", hosts = 6, gbps = 25 }'
    traffic = '[[workloads]]\nkind = "flows"\nflows = "flows.csv"'
    (tmp_path / "short.toml").write_text(f"intervals = 60\n{topology}\n{traffic}\n")
    given = {"scenarios": (str(tmp_path / "short.toml"),), "tuners": ("random",), "seeds": 2}
    plan, said = plan_and_remarks(given)
    assert plan.intervals < 60
    assert plan.seeds * plan.held_out_seeds == 4
    assert "the trace has 79.5 ms, and 60 intervals with 4 parts of 25 need 185" in said[0]
    assert f"chose --intervals {plan.intervals} " in said[0]
    asked, said = plan_and_remarks({**given, "intervals": 60})
    assert asked.intervals == 60  # what is given stays, and that it is too much is said
    assert "capture 185 ms" in said[0]
