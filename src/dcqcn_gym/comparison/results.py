"""Figures of a comparison, from its logs alone: a result per tuner and scenario.

*Final utility* is the mean utility of the recommended setting on held-out seeds, *online utility*
the mean over the run itself, exploration included; both leave out idle intervals. *Intervals to
95 % of best*: utilities are averaged over the last :data:`WINDOW` intervals with data; best is the
highest such average that any compared tuner reached on that seed; counted is the first interval
at which a tuner's own average is at least 95 % of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.answer import IN_SERVICE, Answer, answer, cannot_tell, name_of
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.interval import FloatArray, IntArray
from dcqcn_gym.core.score import ClassFigures, Flows, class_figures
from dcqcn_gym.core.statistics import Estimate, estimate, paired_change
from dcqcn_gym.core.verdict import Measured, Verdict, pooled, verdict
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.applications import applications_of_run, mean_applications
from dcqcn_gym.report.measurements import UNTOLD, measured, tells_unfinished
from dcqcn_gym.report.metrics import METRICS
from dcqcn_gym.report.network import NetworkFigures, mean_figures, network_figures
from dcqcn_gym.report.series import Series
from dcqcn_gym.report.traffic_choice import SessionLength, problem_of
from dcqcn_gym.runs.entries import reference_settings
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.trials import Trial

WINDOW = 10
"""Intervals with data that are averaged before utilities are compared with the best."""
SHARE_OF_BEST = 0.95


@dataclass(frozen=True)
class Figures:
    """What one finished job gives. ``utility`` has one entry per interval, NaN where idle."""

    seed: int
    utility: FloatArray
    online: float
    final: float
    slowdown_mean: float
    """Of all flows on held-out seeds, unfinished ones at their age; NaN if logs hold too little."""
    slowdown_p99: float
    unfinished: float
    """Flows still active at the end of a held-out run."""
    pause_share: float
    tuner_ms: float
    """CPU milliseconds of the tuner per interval."""
    finished_mean: float = math.nan
    """Slowdown of the flows alone that finished."""
    finished_p99: float = math.nan
    goodput_bps: float = math.nan
    """Payload delivered on held-out seeds, bit/s."""
    during: Sequence[ClassFigures] = ()
    """Slowdowns by class of size while tuning, search included; empty where unknown."""
    during_finished: Sequence[ClassFigures] = ()
    applications: Sequence[Mapping[str, Any]] = ()
    """What each application got done on held-out seeds: operations together, rates and times as
    means; empty without any."""
    network: NetworkFigures | None = None
    """Round trips, fairness and the papers' sizes on held-out seeds."""
    held_out: Measured | None = field(default=None, repr=False, metadata={"in_results": False})
    """What counts for the verdict, held-out seeds together; None where logs tell too little."""
    drawn: bool = True
    """False if the traffic is the same on every seed."""


UNKNOWN = Estimate(math.nan, None, None, 0)


@dataclass(frozen=True)
class EntryResult:
    """One tuner on one scenario; estimates are over seeds, ``error`` says why one is missing."""

    tuner: str
    seeds: int
    final: Estimate
    against_baseline: Estimate | None
    online: Estimate
    reached: Sequence[float]
    """Intervals to 95 % of best per seed; infinite where it was not reached."""
    slowdown_mean: Estimate
    slowdown_p99: Estimate
    unfinished: Estimate
    pause_share: Estimate
    tuner_ms: float
    error: str = ""
    figures: Sequence[Figures] = field(default=(), repr=False)
    finished_mean: Estimate = UNKNOWN
    finished_p99: Estimate = UNKNOWN
    goodput_bps: Estimate = UNKNOWN
    verdict: Verdict | None = None
    """Against the baseline on the same held-out seeds; None for the baseline, or without it."""
    baseline: str = "default"
    """The entry that every other one is judged against: the setting in service."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is the setting in service."""
        return self.tuner == self.baseline

    @property
    def goodput_change(self) -> Estimate | None:
        """Relative change of goodput against the baseline, paired by seed; None if unknown."""
        flags = self.verdict.flags if self.verdict else ()
        return next((flag.cost.change for flag in flags if flag.key == "goodput"), None)

    @property
    def reached_median(self) -> float:
        """Median over the seeds, of two the quicker; infinite if most of them never reached it."""
        ordered = sorted(self.reached)
        return ordered[(len(ordered) - 1) // 2] if ordered else math.nan


def collect(job: Trial) -> Figures | None:
    """Read what a job left; None if it is not finished."""
    try:
        run = read_run(job.log)
        held_out = [read_run(path) for path in job.held_out]
        spent = parse_json(read_file(job.timing))
    except (RunError, ValueError):  # a ConfigError is one
        return None
    if not run.complete or not all(part.complete for part in held_out):
        return None
    series = Series.of(run)
    judged = [Series.of(part) for part in held_out]
    idle = np.array([bool(line["idle"]) for line in series.records])
    found = pooled([measured(part) for part in judged])

    def held_out_mean(name: str) -> float:
        return _mean([METRICS[name].of(part) for part in judged])

    return Figures(
        seed=job.spec.seed,
        utility=np.where(idle, np.nan, series.utility),
        online=METRICS["utility"].of(series),
        final=held_out_mean("utility"),
        slowdown_mean=held_out_mean("slowdown-mean"),
        slowdown_p99=held_out_mean("slowdown-p99"),
        unfinished=held_out_mean("unfinished"),
        pause_share=_mean(series.pause_share),
        tuner_ms=1e3 * float(spent["tuner_cpu_s"]) / max(1, int(spent["intervals"])),
        finished_mean=held_out_mean("finished-mean"),
        finished_p99=held_out_mean("finished-p99"),
        during=_classes(*series.every_flow) if tells_unfinished(series) else (),
        during_finished=_classes(*series.flows),
        goodput_bps=found.goodput_bps,
        applications=mean_applications([applications_of_run(part) for part in judged]),
        network=mean_figures([network_figures(part) for part in judged]),
        held_out=found if all(map(tells_unfinished, judged)) else None,
        drawn=found.drawn,
    )


def _classes(size: IntArray, slowdown: FloatArray) -> list[ClassFigures]:
    return class_figures(Flows(size, slowdown, np.ones(size.size, dtype=np.bool_)))


def _mean(values: Sequence[float] | FloatArray) -> float:
    known = [float(v) for v in values if not math.isnan(v)]
    return math.fsum(known) / len(known) if known else math.nan


def moving_mean(utility: FloatArray, window: int = WINDOW) -> FloatArray:
    """Return the mean of the last ``window`` known values at each known one, NaN elsewhere.

    Positions with fewer known values before them are NaN, unless there are fewer in all.
    """
    result = np.full(utility.shape, np.nan)
    at = np.flatnonzero(~np.isnan(utility))
    if not at.size:
        return result
    n = min(window, at.size)
    sums = np.cumsum(np.concatenate([[0.0], utility[at]]))
    result[at[n - 1 :]] = (sums[n:] - sums[:-n]) / n
    return result


def results_of(
    jobs: Iterable[Trial], failed: Mapping[Path, str] | None = None
) -> dict[str, list[EntryResult]]:
    """Return the table of each scenario, best score over the baseline first; failed tuners last.

    Where logs hold too little for scores, the best final utility comes first.
    """
    found: dict[str, dict[str, list[Figures]]] = {}
    scenarios: dict[str, Scenario] = {}
    errors: dict[tuple[str, str], str] = {}
    for job in jobs:
        name = job.folder.parent.name
        figures = collect(job)
        scenarios[name] = job.spec.scenario
        of_tuner = found.setdefault(name, {}).setdefault(job.label, [])
        if figures is not None:
            of_tuner.append(figures)
        elif failed and job.log in failed:
            errors.setdefault((name, job.label), f"seed {job.spec.seed}: {failed[job.log]}")
    return {name: _table(name, scenarios[name], of, errors) for name, of in found.items()}


def _table(
    name: str,
    scenario: Scenario,
    tuners: Mapping[str, list[Figures]],
    errors: Mapping[tuple[str, str], str],
) -> list[EntryResult]:
    best = _best_by_seed(tuners)
    base = baseline_of(scenario)
    theirs = {f.seed: f for f in tuners.get(base, ())}
    made = [
        _result(tuner, figures, best, theirs, errors.get((name, tuner), ""), scenario.guardrails)
        for tuner, figures in tuners.items()
    ]
    return in_order([replace(one, baseline=base) for one in made])


def baseline_of(scenario: Scenario) -> str:
    """Return the tuner that holds the setting in service: the default, or ``do-nothing``."""
    same = scenario.initial_setting() == reference_settings(scenario)["default"]
    return "default" if same else IN_SERVICE


def answer_of(
    entries: Sequence[EntryResult], scenario: Scenario, baseline: str, asked: SessionLength
) -> Answer:
    """Return the answer of a scenario from every entry that has all seeds of the baseline."""
    tried = {
        entry.tuner: [f.held_out for f in sorted(entry.figures, key=lambda f: f.seed) if f.held_out]
        for entry in entries
    }
    seeds = {entry.tuner: sorted(f.seed for f in entry.figures) for entry in entries}
    base = seeds.get(baseline)
    if not base:
        why = f"there is no finished run of {baseline} to compare with"
        return cannot_tell(why, baseline, "the command that made the comparison continues it")
    if len(tried[baseline]) < len(base):
        return cannot_tell(UNTOLD, baseline)
    tried = {n: of for n, of in tried.items() if seeds[n] == base and len(of) == len(base)}
    if len(tried) < 2:
        why = f"no other setting was tried than {name_of(baseline)}"
        return cannot_tell(why, baseline, "name tuners by --tuners")
    found = answer(
        tried,
        baseline,
        scenario.guardrails,
        problem=problem_of(scenario, asked),
    )
    return replace(found, calibrated=scenario.calibrated)


def _best_by_seed(tuners: Mapping[str, list[Figures]]) -> dict[int, float]:
    best: dict[int, float] = {}
    for figures in tuners.values():
        for f in figures:
            smooth = moving_mean(f.utility)
            if not np.all(np.isnan(smooth)):
                best[f.seed] = max(best.get(f.seed, -math.inf), float(np.nanmax(smooth)))
    return best


def _result(
    tuner: str,
    figures: list[Figures],
    best: Mapping[int, float],
    base: Mapping[int, Figures],
    error: str,
    rails: Guardrails,
) -> EntryResult:
    pairs = [(f, base[f.seed]) for f in figures if f.seed in base and f is not base[f.seed]]
    gain = (
        paired_change([a.final for a, _ in pairs], [b.final for _, b in pairs]) if pairs else None
    )
    if gain and not all(f.drawn for f in figures):
        gain = gain.of_one_trace()
    return EntryResult(
        tuner=tuner,
        seeds=len(figures),
        final=estimate([f.final for f in figures]),
        against_baseline=gain,
        online=estimate([f.online for f in figures]),
        reached=[_reached(f, best.get(f.seed, math.nan)) for f in figures],
        slowdown_mean=estimate([f.slowdown_mean for f in figures]),
        slowdown_p99=estimate([f.slowdown_p99 for f in figures]),
        unfinished=estimate([f.unfinished for f in figures]),
        pause_share=estimate([f.pause_share for f in figures]),
        tuner_ms=_mean([f.tuner_ms for f in figures]),
        error=error,
        figures=figures,
        finished_mean=estimate([f.finished_mean for f in figures]),
        finished_p99=estimate([f.finished_p99 for f in figures]),
        goodput_bps=estimate([f.goodput_bps for f in figures]),
        verdict=_verdict(pairs, rails),
    )


def _verdict(pairs: Sequence[tuple[Figures, Figures]], rails: Guardrails) -> Verdict | None:
    """Judge an entry by its pairs with the baseline, one per seed of the tuning runs."""
    ours = [a.held_out for a, b in pairs if a.held_out and b.held_out]
    theirs = [b.held_out for a, b in pairs if a.held_out and b.held_out]
    return verdict(ours, theirs, rails) if ours and len(ours) == len(pairs) else None


def _reached(figures: Figures, best: float) -> float:
    there = np.flatnonzero(moving_mean(figures.utility) >= SHARE_OF_BEST * best)
    return float(there[0] + 1) if there.size else math.inf


def in_order(entries: Sequence[EntryResult]) -> list[EntryResult]:
    """Return the entries, the best first and those without a finished run last."""
    by_score = scored(entries)
    return sorted(entries, key=lambda entry: -_worth(entry, by_score) if entry.seeds else math.inf)


def _worth(entry: EntryResult, by_score: bool) -> float:
    if not by_score:
        return entry.final.mean
    return entry.verdict.score.mean if entry.verdict else 0.0


def scored(entries: Sequence[EntryResult]) -> bool:
    """True if the entries have scores over the baseline, which then decide their order."""
    done = [entry for entry in entries if entry.seeds]
    others = [entry.verdict for entry in done if not entry.is_baseline]
    return 0 < len(others) < len(done) and all(v and v.score.n for v in others)
