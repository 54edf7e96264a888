"""How good are decisions? ``python tools/decisions/decide.py [--only N] [--work DIR]``.

Each case of cases.py is tuned by the default tuner as ``dcqcn-gym tune`` does (60 intervals, 5
held-out seeds of 20 intervals). Where that says "cannot tell", it is judged as the sentence asks:
on 20 held-out seeds. The truth: 300 evaluations (every setting that the run tried and as many drawn
from the action space as make 100, on 3 seeds of 20 intervals each); the best of them that crosses
no limit on average, and what the decision deploys, are then judged on 50 held-out seeds.

- A deploy is false if on those 50 seeds the setting crosses a limit, or the interval of its S does
  not lie above 0.
- A gain is missed if the best one lowers slowdowns by more than 10 % on those 50 seeds with a
  verdict of yes, and the decision is to keep or a choice. "Cannot tell" is counted apart.

One line a case goes to WORK/cases.jsonl, from which an interrupted run goes on; ``--write`` writes
result.txt beside this file from it. Fixed before the first run; one run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, INTERVALS, Case, cases

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.score import geometric_ratio
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.verdict import Measured, Verdict, verdict
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.report.tuning import tune
from dcqcn_gym.runs.log import RunDir
from dcqcn_gym.runs.progress import QuietViewer
from dcqcn_gym.runs.session import Evaluation
from dcqcn_gym.runs.spec import RunSpec

FIRST = Evaluation(seeds=5, intervals=20)
SECOND = Evaluation(seeds=20, intervals=20)
SETTINGS, SEARCH_SEEDS = 100, range(5000, 5003)
TRUTH_SEEDS = range(9000, 9050)
WINDOW = 20
WORTH = 0.1


def decide(case: Case, folder: Path) -> tuple[dict[str, Any], dict[str, DeviceSetting]]:
    """Return the recommendation of the product, and the settings that it tried."""
    spec = RunSpec(case.scenario, "paraleon", 1, INTERVALS)
    best: dict[str, Any] = {}
    stages = 0
    for evaluation in (FIRST, SECOND):
        stages += 1
        where = RunDir(folder)
        best = tune(spec, where, evaluation=evaluation, viewer=QuietViewer(), force=stages > 1)
        if best["answer"]["action"] != "cannot tell":
            break
    base, data = case.scenario.initial_setting(), load_report_data(folder)
    tried: dict[str, DeviceSetting] = {n: base.replace(data.setting(n)) for n in data.tried}
    return {**best["answer"], "stages": stages}, tried


def drawn(case: Case, count: int) -> list[DeviceSetting]:
    """Return settings drawn uniformly from the action space."""
    scenario, rng = case.scenario, np.random.default_rng(32)
    space = KnobSpace(scenario.turned, scenario.line_rate_bps, scenario.table, scenario.ranges)
    base = case.scenario.initial_setting()
    return [space.setting(rng.uniform(-1, 1, space.n), base) for _ in range(count)]


def judged(
    case: Case, settings: Sequence[DeviceSetting], seeds: range, base: DeviceSetting
) -> list[Verdict]:
    """Return the verdict of each setting against the one in force."""
    rows: list[list[list[Measured]]] = evaluate(
        [base, *settings], [case.scenario], list(seeds), WINDOW, threads=1
    )
    return [verdict(row[0], rows[0][0]) for row in rows[1:]]


def truth(case: Case, tried: dict[str, DeviceSetting], decision: dict[str, Any]) -> dict[str, Any]:
    """Return what the best of 300 evaluations gains on 50 held-out seeds, and what is deployed."""
    base = tried[decision["baseline"]]
    known = [s for name, s in tried.items() if name != decision["baseline"]]
    known += drawn(case, SETTINGS - len(known) - 1)
    first = judged(case, known, SEARCH_SEEDS, base)
    harmless = [i for i, v in enumerate(first) if not _crossed(v)]
    best = max(harmless, key=lambda i: first[i].score.mean, default=None)
    looked = {} if best is None else {"best": known[best]}
    if decision["action"] == "deploy":
        looked["deployed"] = tried[decision["setting"]]
    found = judged(case, list(looked.values()), TRUTH_SEEDS, base)
    return {name: _said(v) for name, v in zip(looked, found, strict=True)}


def _crossed(of: Verdict) -> bool:
    return any(f.state != "few" and f.cost.harm.mean > f.limit for f in of.flags)


def _said(of: Verdict) -> dict[str, Any]:
    s = of.score
    harms = [flag.name for flag in of.flags if flag.state == "up"]
    return {"deploy": of.deploy, "score": [s.mean, s.low, s.high], "harms": harms}


def outcome(row: dict[str, Any]) -> str:
    """Return what became of a case."""
    best, deployed = row["truth"].get("best"), row["truth"].get("deployed")
    if deployed is not None:
        return "right deploy" if deployed["deploy"] == "yes" else "false deploy"
    gain = best is not None and best["deploy"] == "yes"
    gain = gain and _gain(row) > WORTH
    if row["decision"]["action"] in ("keep", "a choice"):
        return "missed gain" if gain else "right keep"
    return "cannot tell, a gain exists" if gain else "cannot tell, no gain known"


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the text of result.txt."""
    counts = {
        (kind, what): sum(r["without_gain"] is kind and outcome(r) == what for r in rows)
        for kind in (True, False)
        for what in (
            "right deploy", "false deploy", "right keep", "missed gain",
            "cannot tell, a gain exists", "cannot tell, no gain known",
        )
    }  # fmt: skip
    minutes = sum(r["cpu_s"] for r in rows) / 60
    lines = [f"{len(rows)} of {CASES} cases, {minutes:.0f} CPU minutes", "", *_goals(rows), ""]
    for (kind, what), n in counts.items():
        if n:
            lines.append(f"{'no gain by construction' if kind else 'others':24} {what:28} {n:3}")
    lines += ["", "case, decision, setting, best of 300 on 50 seeds: S and interval, outcome"]
    for r in sorted(rows, key=lambda r: str(r["case"])):
        best, d = r["truth"].get("best"), r["decision"]
        score = "none is harmless" if best is None else _interval(best["score"])
        lines.append(f"{r['case']}  {d['action']:12} {d['setting']:9} {score:26} {outcome(r)}")
    return "\n".join(lines) + "\n"


def _goals(rows: list[dict[str, Any]]) -> list[str]:
    """Return what is promised of decisions, and how often it was broken."""
    missed = [r for r in rows if outcome(r) == "missed gain"]
    choices = [r for r in missed if r["decision"]["action"] == "a choice"]
    wrong = [r for r in missed if r not in choices and _gain(r) > 0.2]
    null = [r for r in rows if r["without_gain"]]
    moved = [r for r in null if r["decision"]["action"] not in ("keep", "cannot tell")]
    return [
        f"false deploys: {sum(outcome(r) == 'false deploy' for r in rows)} (at most 1)",
        f"missed gains above 10 %: {len(missed)}, {len(choices)} of them named as a choice (5)",
        f"keep where a harmless setting gains more than 20 %: {len(wrong)} (2)",
        f"no gain by construction, and neither keep nor cannot tell: {len(moved)} of {len(null)}",
    ]


def _gain(row: dict[str, Any]) -> float:
    return 1 - geometric_ratio(row["truth"]["best"]["score"][0])


def _interval(score: list[float | None]) -> str:
    mean, low, high = (0.0 if x is None else x for x in score)
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def carry_out(case: Case, work: Path) -> dict[str, Any]:
    """Decide a case and look at the truth."""
    begin = _cpu_s()
    folder = work / case.name
    shutil.rmtree(folder, ignore_errors=True)
    decision, tried = decide(case, folder)
    row = {"case": case.name, "without_gain": case.without_gain, "decision": decision}
    row["truth"] = truth(case, tried, decision)
    shutil.rmtree(folder)
    return {**row, "cpu_s": _cpu_s() - begin}


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, action="append", help="this case alone; repeatable")
    parser.add_argument("--work", type=Path, default=Path("runs/decisions"))
    parser.add_argument("--write", action="store_true", help="write result.txt")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    log = given.work / "cases.jsonl"
    rows = [json.loads(x) for x in log.read_text().splitlines()] if log.exists() else []
    done = {row["case"] for row in rows}
    for case in cases():
        wanted = given.only is None or int(case.name[-2:]) in given.only
        if wanted and not given.write and case.name not in done:
            rows.append(carry_out(case, given.work))
            with log.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(time.strftime("%H:%M"), case.name, outcome(rows[-1]), flush=True)
    text = summary(rows)
    print(text)
    if given.write:
        (Path(__file__).parent / "result.txt").write_text(text)


if __name__ == "__main__":
    main()
