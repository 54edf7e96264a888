"""What tuners recommend, judged on fresh traffic: the table of docs/results.md.

Every tuner runs once per scenario; its recommendation, NVIDIA's default and the experts' setting
then run on the same fresh seeds. Each run is an event log of its own under the output directory,
so an interrupted benchmark goes on where it stopped.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.statistics import BOOTSTRAP_FROM
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.paired import ONE_TRACE, PairedRow, one_trace, paired_rows, series_of
from dcqcn_gym.runs.campaign import Progress, carry_out, raise_failures
from dcqcn_gym.runs.loop import RunSpec
from dcqcn_gym.runs.markdown import code
from dcqcn_gym.runs.markdown import plain as shown
from dcqcn_gym.runs.recorded import Ran, RunJob, fresh_jobs
from dcqcn_gym.runs.results import plain, write_results
from dcqcn_gym.runs.rows import (
    REFERENCES,
    Row,
    evaluation_seeds,
    label,
    load_scenarios,
    reference_settings,
    unique,
)
from dcqcn_gym.runs.table import Table, point, with_interval

__all__ = ["SCENARIOS", "TUNERS", "Plan", "markdown", "produce", "rows", "write_figures"]

SCENARIOS = ("fb-hadoop", "fb-hadoop-uplink30", "llm-alltoall")
TUNERS = ("paraleon", "paraleon-rescaled")
WORKERS = 2


@dataclass(frozen=True)
class Plan:
    """What is run: every tuner on every scenario, then the evaluation on fresh seeds."""

    scenarios: Sequence[str] = SCENARIOS
    tuners: Sequence[str] = TUNERS
    seed: int = 1
    intervals: int = 280
    eval_seeds: int = 5
    eval_intervals: int = 100
    backend: str = "native"

    def seeds(self) -> list[int]:
        """Return the fresh seeds, which no tuning run uses."""
        return evaluation_seeds(self.seed, self.eval_seeds)

    def command(self, out: Path) -> str:
        """Return the command that makes the table."""
        words = ["dcqcn-gym", "bench", "recommended", "--out", str(out), "--write"]
        words.append("docs/results.md")
        if tuple(self.scenarios) != SCENARIOS:
            words += [w for s in self.scenarios for w in ("--scenario", s)]
        if tuple(self.tuners) != TUNERS:
            words += [w for t in self.tuners for w in ("--tuner", t)]
        standard = Plan()
        for name in ("seed", "intervals", "eval_seeds", "eval_intervals", "backend"):
            value = getattr(self, name)
            if value != getattr(standard, name):
                words += ["--" + name.replace("_", "-"), str(value)]
        return shlex.join(words)


def _tuned(out: Path, scenario: Scenario, row: str) -> Path:
    return out / scenario.name / f"tuned-{row}.jsonl"


def _judged(out: Path, scenario: Scenario, row: str, seed: int) -> Path:
    return out / scenario.name / f"{row}-seed{seed}.jsonl"


def produce(plan: Plan, out: Path, progress: Progress | None = None) -> None:
    """Make every log that is missing or unfinished, two at a time; RunError names what failed."""
    scenarios = load_scenarios(plan.scenarios)
    rows_of = [Row(tuner) for tuner in plan.tuners]
    unique("row", [(r, r, r) for r in REFERENCES] + [(r.tuner, r.name, r.tuner) for r in rows_of])
    tuned = {
        _tuned(out, scenario, row.name): (row, scenario)
        for scenario in scenarios
        for row in rows_of
    }
    jobs = [
        RunJob(row.spec(scenario, plan.seed, plan.intervals, plan.backend), path)
        for path, (row, scenario) in tuned.items()
    ]
    for job in jobs:
        job.spec.check()
        job.path.parent.mkdir(parents=True, exist_ok=True)
    fixed = [
        _judging(plan, out, scenario, name, setting)
        for scenario in scenarios
        for name, setting in reference_settings(scenario).items()
    ]

    def judge(job: RunJob, ran: Ran) -> list[RunJob]:
        if job.path not in tuned:
            return []
        row, scenario = tuned[job.path]
        return _judging(plan, out, scenario, row.name, ran.recommended)

    jobs += chain(*fixed)
    total = len(jobs) + len(tuned) * plan.eval_seeds
    raise_failures(carry_out(jobs, workers=WORKERS, then=judge, expected=total, progress=progress))


def _judging(
    plan: Plan, out: Path, scenario: Scenario, name: str, setting: DeviceSetting
) -> list[RunJob]:
    base = RunSpec(scenario, "fixed", plan.seed, plan.eval_intervals, plan.backend)
    return fresh_jobs(
        base, setting, plan.seeds(), plan.eval_intervals,
        lambda seed: _judged(out, scenario, name, seed),
    )  # fmt: skip


def rows(plan: Plan, out: Path, scenario: str) -> list[PairedRow]:
    """Return the lines of a scenario: default, expert, then the tuners; differences to both."""
    of = load_scenario(scenario)
    names = (*REFERENCES, *map(label, plan.tuners))
    runs = {n: series_of(_judged(out, of, n, seed) for seed in plan.seeds()) for n in names}
    return paired_rows(runs, REFERENCES)


def write_figures(plan: Plan, out: Path) -> None:
    """Write ``results.json``: a row per setting and scenario."""
    write_results(
        out,
        "recommended",
        [{"scenario": s, **plain(row)} for s in plan.scenarios for row in rows(plan, out, s)],
        scenarios=load_scenarios(plan.scenarios),
        tuners={label(tuner): (tuner, {}) for tuner in (*REFERENCES, *plan.tuners)},
        seeds={"run": [plan.seed], "fresh": plan.seeds()},
        figures={"plan": plan},
    )


def markdown(plan: Plan, out: Path) -> str:
    """Return the table as Markdown, with the command that makes it."""
    method = "Student's t" if plan.eval_seeds < BOOTSTRAP_FROM else "BCa bootstrap"
    lines = [
        f"Made by {code(plan.command(out))}: each tuner ran {plan.intervals} intervals with seed "
        f"{plan.seed}; what it recommended, the default and the experts' setting then ran "
        f"{plan.eval_intervals} intervals on each of {plan.eval_seeds} fresh seeds. Brackets hold "
        f"95 % confidence intervals over the seeds ({method}); differences are paired by seed. "
        "Slowdown is FCT over the FCT in an idle network, all flow sizes together: of the flows "
        "that started in the first 80 % of a run, unfinished ones at their age; then of the flows "
        "alone that finished.",
    ]
    for scenario in plan.scenarios:
        found = rows(plan, out, scenario)
        title = f"{scenario} ({ONE_TRACE})" if one_trace(found) else scenario
        table = Table(COLUMNS, [_cells(row) for row in found])
        lines += ["", f"### {shown(title)}", "", table.markdown()]
    return "\n".join(lines) + "\n"


COLUMNS = (
    "setting", "mean utility", "against default", "against expert",
    "mean slowdown", "against default", "p99 slowdown", "against default",
    "finished only, mean", "p99", "unfinished",
)  # fmt: skip


def _cells(row: PairedRow) -> list[str]:
    gains = [with_interval(row.utility_gain.get(r), "+.4f", style="brackets") for r in REFERENCES]
    cells = [row.name, point(row.utility), *gains]
    for statistic, mean in row.slowdown.items():
        change = None if row.name == "default" else row.slowdown_change[statistic]
        cells.append(point(mean, ".2f"))
        cells.append(with_interval(change, "+.1f", 100, unit=" %", style="brackets"))
    cells += [point(one, ".2f") for one in row.slowdown_finished.values()]
    return [*cells, point(row.unfinished, ".0f")]
