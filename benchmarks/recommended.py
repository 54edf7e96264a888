"""What tuners recommend, judged on fresh traffic: the table of docs/results.md.

Every tuner runs once per scenario; its recommendation, NVIDIA's default and the experts' setting
then run on the same fresh seeds. Each run is an event log of its own under the output directory,
so an interrupted benchmark goes on where it stopped.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcqcn_gym.core.errors import DcqcnGymError, RunError
from dcqcn_gym.core.groups import DeviceSetting, setting_of
from dcqcn_gym.core.knobs import default_setting, expert_setting
from dcqcn_gym.core.statistics import ALL_SIZES, Estimate, estimate, paired_change, slowdown_by_seed
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.data import Series
from dcqcn_gym.report.headline import mean_utility
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import RunSpec, run
from dcqcn_gym.runs.pool import worker_pool
from dcqcn_gym.runs.session import REFERENCES, evaluation_seeds

__all__ = ["SCENARIOS", "TUNERS", "Plan", "markdown", "produce"]

SCENARIOS = ("fb-hadoop", "fb-hadoop-uplink30", "llm-alltoall")
TUNERS = ("paraleon", "paraleon-rescaled")
WORKERS = 2

Progress = Callable[[str], None]


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


@dataclass(frozen=True)
class _Job:
    spec: RunSpec
    path: Path


def _tuned(out: Path, scenario: str, tuner: str) -> Path:
    return out / scenario / f"tuned-{tuner}.jsonl"


def _judged(out: Path, scenario: str, name: str, seed: int) -> Path:
    return out / scenario / f"{name}-seed{seed}.jsonl"


def produce(plan: Plan, out: Path, progress: Progress) -> None:
    """Make every log that is missing or unfinished, two at a time."""
    scenarios = {name: load_scenario(name) for name in plan.scenarios}
    tuning = [
        _Job(
            RunSpec(scenarios[s], tuner, plan.seed, plan.intervals, plan.backend),
            _tuned(out, s, tuner),
        )
        for s in plan.scenarios
        for tuner in plan.tuners
    ]
    for job in tuning:
        job.spec.check()
        job.path.parent.mkdir(parents=True, exist_ok=True)
    fixed = [job for s in scenarios.values() for job in _reference_jobs(plan, out, s)]
    _carry_out(tuning + fixed, progress)
    _carry_out(list(_recommendation_jobs(plan, out, scenarios)), progress)


def _reference_jobs(plan: Plan, out: Path, scenario: Scenario) -> Iterable[_Job]:
    rate = scenario.line_rate_bps
    settings = {"default": default_setting(rate), "expert": expert_setting(rate)}
    for name in REFERENCES:
        yield from _setting_jobs(plan, out, scenario, name, settings[name])


def _recommendation_jobs(
    plan: Plan, out: Path, scenarios: Mapping[str, Scenario]
) -> Iterable[_Job]:
    for name, scenario in scenarios.items():
        for tuner in plan.tuners:
            end = read_run(_tuned(out, name, tuner)).end
            assert end is not None  # the run before returned
            setting = setting_of(end["recommended"])
            yield from _setting_jobs(plan, out, scenario, tuner, setting)


def _setting_jobs(
    plan: Plan, out: Path, scenario: Scenario, name: str, setting: DeviceSetting
) -> Iterable[_Job]:
    base = RunSpec(scenario, "fixed", plan.seed, plan.eval_intervals, plan.backend)
    for seed in plan.seeds():
        spec = base.with_setting(setting, seed, plan.eval_intervals)
        yield _Job(spec, _judged(out, scenario.name, name, seed))


def _carry_out(jobs: Sequence[_Job], progress: Progress) -> None:
    with worker_pool(WORKERS) as pool:
        futures = [pool.submit(_work, job) for job in jobs]
        for done, future in enumerate(as_completed(futures), start=1):
            progress(f"{done} of {len(jobs)} runs: {future.result()}")


def _work(job: _Job) -> str:
    """Make one log in a worker: a finished one is kept, an unfinished one continued."""
    try:
        old = _previous(job)
        if old is None or not old.complete:
            run(job.spec, job.path, replay=old)
    except DcqcnGymError as error:
        raise RunError(f"{job.path.name}: {error}") from None
    return f"{job.path.parent.name}/{job.path.stem}"


def _previous(job: _Job) -> Run | None:
    """Return the log of the same run, if there is one."""
    try:
        old = read_run(job.path)
    except RunError:
        return None
    same = old.header == json.loads(json.dumps(job.spec.header()))
    return old if same else None


@dataclass(frozen=True)
class Row:
    """One setting on one scenario: means over the fresh seeds, changes paired by seed."""

    setting: str
    utility: Estimate
    utility_gain: Mapping[str, Estimate]
    slowdown: Mapping[str, Estimate]
    slowdown_change: Mapping[str, Estimate]


def rows(plan: Plan, out: Path, scenario: str) -> list[Row]:
    """Return the lines of a scenario: default, expert, then the tuners."""
    names = (*REFERENCES, *plan.tuners)
    utilities: dict[str, list[float]] = {}
    slow: dict[str, dict[str, list[float]]] = {}
    for name in names:
        runs = [Series.of(read_run(_judged(out, scenario, name, s))) for s in plan.seeds()]
        utilities[name] = [mean_utility(series) for series in runs]
        flows = [series.flows for series in runs]
        slow[name] = {
            stat: slowdown_by_seed(flows, ALL_SIZES, stat).tolist() for stat in ("mean", "p99")
        }
    result = []
    for name in names:
        others = [r for r in REFERENCES if r != name]
        gain = {r: paired_change(utilities[name], utilities[r]) for r in others}
        change = {
            stat: paired_change(slow[name][stat], slow["default"][stat], relative=True)
            for stat in ("mean", "p99")
        }
        means = {stat: estimate(values) for stat, values in slow[name].items()}
        result.append(Row(name, estimate(utilities[name]), gain, means, change))
    return result


def markdown(plan: Plan, out: Path) -> str:
    """Return the table as Markdown, with the command that makes it."""
    lines = [
        f"Made by `{plan.command(out)}`: each tuner ran {plan.intervals} intervals with seed "
        f"{plan.seed}; what it recommended, the default and the experts' setting then ran "
        f"{plan.eval_intervals} intervals on each of {plan.eval_seeds} fresh seeds. Brackets hold "
        "95 % confidence intervals over the seeds (Student's t); differences are paired by seed. "
        "Slowdown is FCT over the FCT in an idle network, all flow sizes together.",
    ]
    for scenario in plan.scenarios:
        lines += ["", f"### {scenario}", "", HEAD, RULE]
        lines += [_line(row) for row in rows(plan, out, scenario)]
    return "\n".join(lines) + "\n"


HEAD = (
    "| setting | mean utility | against default | against expert | mean slowdown "
    "| against default | p99 slowdown | against default |"
)
RULE = "|---|---|---|---|---|---|---|---|"


def _line(row: Row) -> str:
    own = row.setting == "default"
    cells = [
        row.setting,
        f"{row.utility.mean:.4f}",
        _signed(row.utility_gain.get("default"), 1, "+.4f", ""),
        _signed(row.utility_gain.get("expert"), 1, "+.4f", ""),
    ]
    for stat in ("mean", "p99"):
        cells.append(f"{row.slowdown[stat].mean:.2f}")
        cells.append(_signed(None if own else row.slowdown_change[stat], 100, "+.1f", " %"))
    return "| " + " | ".join(cells) + " |"


def _signed(change: Estimate | None, scale: float, form: str, unit: str) -> str:
    if change is None or np.isnan(change.mean):
        return "–"
    text = f"{change.mean * scale:{form}}{unit}"
    if change.low is None or change.high is None:
        return text
    return f"{text} [{change.low * scale:{form}}, {change.high * scale:{form}}]"
