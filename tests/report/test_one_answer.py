"""Every surface gives one answer against one baseline, for runs whose figures are random.

``DCQCN_GYM_RUNS=300`` tries so many; 24 otherwise.

Made up are the flows, goodputs and pauses in the logs. Real is everything behind them: the log
writer, the reading of logs, the answer, `best.json`, what a terminal, a page and a table show, and
what `emit` prints and `hw apply` takes. The same logs laid out as a comparison's are judged by
`compare`. A page, which costs most, is made of every eighth run.
"""

from __future__ import annotations

import html
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verdict_cases
from dcqcn_gym.commands.emit import emit
from dcqcn_gym.commands.tune import _answer
from dcqcn_gym.comparison.compare import plan_of, study_of
from dcqcn_gym.comparison.results import results_of
from dcqcn_gym.comparison.text import answers, headline
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.hw.commands.fleet import _setting_in
from dcqcn_gym.report import build_report
from dcqcn_gym.report.answer import answer_of
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.report.runs_table import runs_table
from dcqcn_gym.report.tuning import best_of
from dcqcn_gym.runs.log import LogWriter, RunDir, write_json
from dcqcn_gym.runs.session import Evaluation
from synthetic_run import end_line, header

RUNS = int(os.environ.get("DCQCN_GYM_RUNS", "24"))
SEEDS = (1_001_000, 1_001_001, 1_001_002)
INTERVALS = 2
TUNER = "random"
AS_ENTRY = {"yours": "do-nothing", "candidate": TUNER}
"""What compare calls the settings of a tuning run."""

SCENARIO = """name = "toy"
{initial}
[topology]
kind = "single-switch"
hosts = 4
gbps = 100
[[workloads]]
kind = "poisson"
cdf = "FB_Hadoop"
load = 0.3
[guardrails]
slowdown = {slowdown}
slowdown_floor = {floor}
"""


def write(path: Path, head: dict[str, Any], seed: int, setting: Setting, shape: Any) -> None:
    lines = [verdict_cases._line(i, seed, setting, shape, "name") for i in range(INTERVALS)]
    with LogWriter(path, {**header(INTERVALS, seed, TUNER), **head}) as log:
        for line, _ in lines:
            log.append(line)
        left = verdict_cases._joined([flows for _, flows in lines])
        log.append({"end": end_line(setting, INTERVALS, left)})


def made(number: int, folder: Path) -> Path:
    """Write one run twice, as `tune` and as `compare` leave it; return the scenario's file."""
    draw = np.random.default_rng([7, number])
    yours = bool(draw.random() < 0.5)
    text = SCENARIO.format(
        initial="[initial]\nkmin = 60" if yours else "",
        slowdown=draw.choice([0.1, 0.25]), floor=draw.choice([1.0, 3.0, 10.0]),
    )  # fmt: skip
    (folder / "toy.toml").write_text(text)
    scenario = load_scenario(folder / "toy.toml")
    base = scenario.initial_setting()
    settings = {
        "default": default_setting(scenario.line_rate_bps),
        "expert": expert_setting(scenario.line_rate_bps),
        **({"yours": base} if yours else {}),
        "advise": base.replace({"kmin": 30}),
        "recommended": base.replace({"rp_ai_rate": 87}),
    }
    spread = draw.choice([0.03, 0.3, 0.8])
    shapes = {
        name: verdict_cases.Shape(
            slow=tuple(np.exp(draw.normal(0, spread, 3))),
            goodput=float(np.exp(draw.normal(0, 0.03))),
            pause=float(np.exp(draw.normal(0, 1))), starved=float(draw.choice([0, 0, 0.05])),
            wobble=float(draw.choice([0.01, 0.1])),
        )
        for name in settings
    }  # fmt: skip
    head = {"scenario": scenario.model_dump(mode="json")}
    out = RunDir(folder / "run")
    out.create()
    write(out.log, head, 1, settings["recommended"], shapes["recommended"])
    for name in ("default", "expert"):
        write(out.reference(name), head, 1, settings[name], shapes[name])
    for name, setting in settings.items():
        entry = AS_ENTRY.get("candidate" if name == "recommended" else name, name)
        place = folder / "compare/toy" / entry
        place.mkdir(parents=True)
        for k, seed in enumerate(SEEDS, start=1):
            log = out.evaluation(name, seed)
            write(log, head, seed, setting, shapes[name])
            (place / f"seed{k}.jsonl").hardlink_to(log)
            (place / f"seed{k}-held-out0.jsonl").hardlink_to(log)
            write_json(place / f"seed{k}.timing.json", {"tuner_cpu_s": 0.0, "intervals": INTERVALS})
    return folder / "toy.toml"


def names(text: str) -> str:
    """Return a sentence as if tune had told it: compare calls the candidate by its tuner."""
    return re.sub(rf"\b{TUNER}\b", "the candidate", text)


@pytest.mark.slow
def test_every_surface_gives_the_same_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = set()
    for number in range(RUNS):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = made(number, folder)
        root, scenario = folder / "run", load_scenario(file)
        out = RunDir(root)

        write_json(out.best, best_of(out, Evaluation(len(SEEDS), INTERVALS)))
        best = json.loads(out.best.read_text())
        said = best["answer"]
        title, action, setting, baseline = (
            said[key] for key in ("title", "action", "setting", "baseline")
        )
        seen.add((action, baseline))
        assert baseline == ("yours" if scenario.initial != "default" else "default")
        assert (said["setting"] == baseline) == (action in ("keep", "cannot tell"))
        assert ("recommended" in best, "choice" in best) == (
            action == "deploy", action == "a choice",
        )  # fmt: skip
        assert set(said["tried"]) == {"default", "expert", "advise", "candidate", "yours"} & {
            *said["tried"], "default", "expert",
        } - {baseline}  # fmt: skip

        _answer(out, None, quiet=True, asked=True)  # the terminal's last line
        assert capsys.readouterr().err.strip() == f"{title}."

        data = load_report_data(root)
        rows = runs_table([data])
        assert rows.columns[1] == f"slowdowns against {baseline}"
        shown = {row[-1] for row in rows.rows} - {"–"}
        assert shown <= {action}

        take = partial(emit, root, "all", changed_only=False, rollback=False)
        if action == "deploy":
            take(force=False)
            assert title in " ".join(capsys.readouterr().out.replace("#", " ").split())
            assert dict(_setting_in(out.best, force=False)) == best["recommended"]
        else:
            for refused, error in (
                (partial(take, force=False), RunError),
                (partial(_setting_in, out.best, force=False), ConfigError),
            ):
                with pytest.raises(error) as caught:
                    refused()
                assert title in str(caught.value)

        plan = plan_of({
            "scenarios": (str(file),), "tuners": ("default", "expert", "advise", TUNER),
            "seeds": len(SEEDS), "intervals": INTERVALS, "eval_seeds": 1,
            "eval_intervals": INTERVALS,
        })  # fmt: skip
        tables = results_of(study_of(plan, folder / "compare").jobs.values())
        other = answers(plan, tables)["toy"]
        assert (other.action, other.setting, other.baseline) == (
            action, AS_ENTRY.get(setting, setting), AS_ENTRY.get(baseline, baseline),
        )  # fmt: skip
        assert names(other.title) == title
        assert other.title in headline("toy", tables["toy"], other)
        assert {AS_ENTRY.get(n, n): v["text"] for n, v in said["tried"].items()} == {
            n: v.text for n, v in other.verdicts.items()
        }

        if number % 8 == 0:
            page = html.unescape(build_report(root).read_text())
            assert f'data-action="{action}" data-setting="{setting}"' in page
            assert f"Next: {said['next_step']}" in page
            plain = re.sub(r"<[^>]*>", "", page).lower()
            assert answer_of(data).answer.sentence.lower() in plain
            written = json.loads((root / "results.json").read_text())
            assert written["figures"]["answer"] == said
    if RUNS < 24:
        return
    assert {action for action, _ in seen} >= {"deploy", "keep", "cannot tell"}
    assert {base for _, base in seen} == {"yours", "default"}
