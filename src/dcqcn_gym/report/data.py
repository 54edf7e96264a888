"""Reads a run directory's logs into arrays: the only part of the report that knows their form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.knobs import DCQCN, KnobTable
from dcqcn_gym.core.verdict import Measured
from dcqcn_gym.envs.scenario.parts import REORDERED
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.measurements import measured, tells_unfinished
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import REFERENCES
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.log_check import need_keys

PARTS, SAME = "later parts of the same trace", "the same traffic"


@dataclass(frozen=True)
class ReportData:
    """Everything the page shows. ``notes`` are sentences on what is missing or cut short."""

    directory: Path
    run: Series
    references: Mapping[str, Series]
    evaluation: Mapping[str, Mapping[int, Series]]
    recommended: Mapping[str, float] | None
    """The setting that was recommended, in NVIDIA's units; None if the log ends too early."""
    finished: bool
    notes: list[str] = field(default_factory=list)
    timing: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def scenario(self) -> Scenario | None:
        """The scenario of the run; None if it is unreadable."""
        return recorded_scenario(self.run.header)

    @property
    def guardrails(self) -> Guardrails:
        """What the scenario lets a setting cost."""
        return Guardrails() if self.scenario is None else self.scenario.guardrails

    @property
    def knob_table(self) -> KnobTable:
        """The knobs of the scenario; DCQCN's if it is unreadable."""
        return DCQCN if self.scenario is None else self.scenario.table

    @property
    def held_out(self) -> Mapping[str, list[Series]]:
        """The runs on held-out seeds: default, expert and ``candidate``; empty without any."""
        names = {**{name: name for name in REFERENCES}, "candidate": "recommended"}
        if not self.seeds:
            return {}
        return {k: [self.evaluation[name][s] for s in self.seeds] for k, name in names.items()}

    @property
    def tried(self) -> Mapping[str, list[Series]]:
        """The runs of every setting that ran on all held-out seeds: :attr:`held_out` and others."""
        every = set(self.seeds)
        more = {
            name: [runs[seed] for seed in self.seeds]
            for name, runs in self.evaluation.items()
            if name not in ("recommended", *REFERENCES) and every <= set(runs)
        }
        return {**self.held_out, **more} if every else {}

    @cached_property
    def measured(self) -> Mapping[str, list[Measured]]:
        """What counts for the verdict of every run of :attr:`tried`."""
        return {name: list(map(measured, runs)) for name, runs in self.tried.items()}

    @property
    def complete(self) -> bool:
        """Whether every log of :attr:`tried` has its unfinished flows: else nothing is judged."""
        return all(tells_unfinished(run) for runs in self.tried.values() for run in runs)

    @property
    def baseline(self) -> str:
        """The setting in service, which everything is judged against: ``yours`` or ``default``.

        ``yours`` is the scenario's ``[initial]`` where it is not NVIDIA's default.
        """
        return "yours" if "yours" in self.tried else "default"

    def setting(self, name: str) -> Mapping[str, Any] | None:
        """Return a setting of :attr:`tried` as logs hold it; None if no log says it."""
        if name == "candidate":
            end = self.run.end
        else:
            end = next((s.end for s in self.evaluation.get(name, {}).values()), None)
        found = (end or {}).get("recommended")
        return found if isinstance(found, Mapping) else None

    @property
    def judged_on(self) -> str:
        """How the judging runs differ in traffic: held-out seeds, parts of a trace, or not."""
        runs = self.held_out.get("candidate", [])
        if runs and all(run.part for run in runs):
            more = f", {REORDERED}" if REORDERED in runs[0].part else self.stretch
            return f"{PARTS}{more}"
        return "held-out seeds" if all(run.drawn for run in [self.run, *runs]) else SAME

    @property
    def stretch(self) -> str:
        """Which stretch of a longer trace the run had, in words behind a comma; empty: all."""
        for one in self.run.header["scenario"].get("workloads", ()):
            if found := one.get("stretch_ms"):
                begin, end, whole = found
                return f", {begin:.6g} to {end:.6g} of its {whole:.6g} ms"
        return ""

    @property
    def seeds(self) -> list[int]:
        """Held-out seeds on which the recommendation and both references were run."""
        names = ("recommended", *REFERENCES)
        if any(name not in self.evaluation for name in names):
            return []
        return sorted(set.intersection(*(set(self.evaluation[name]) for name in names)))


def recorded_scenario(header: Mapping[str, Any]) -> Scenario | None:
    """Return the scenario of a log; None if it is unreadable."""
    try:
        return Scenario.model_validate(header.get("scenario"))
    except ValueError:  # a ConfigError is one
        return None


def load_report_data(directory: Path) -> ReportData:
    """Read a run directory, however far the run came.

    Raise:
        RunError: there is no readable ``run.jsonl`` in the directory.
    """
    log = directory / "run.jsonl"
    if not log.is_file():
        raise RunError(f"{directory} holds no run: expected the event log {log}")
    recorded = read_run(log)
    need_keys(log, recorded.intervals)
    run = Series.of(recorded)
    notes: list[str] = []
    budget = run.header.get("intervals")
    finished = run.end is not None
    if not finished:
        notes.append(
            f"The log ends early, after {len(run)} of {budget} intervals: the run was stopped or "
            "is still going. Everything below is about those intervals; the same command "
            "continues it."
        )
    references = _references(directory, len(run), notes)
    evaluation = _evaluation(directory, notes)
    recommended = _recommended(run, notes)
    if finished and not evaluation:
        notes.append("The candidate was not tried on held-out seeds.")
    return ReportData(
        directory, run, references, evaluation, recommended, finished, notes, _timing(directory)
    )


def _read(path: Path, notes: list[str]) -> Series | None:
    try:
        recorded = read_run(path)
        need_keys(path, recorded.intervals)
        series = Series.of(recorded)
    except RunError as error:
        notes.append(f"{path.parent.name}/{path.name} was left out: {error}")
        return None
    return series if len(series) else None


def _references(directory: Path, n: int, notes: list[str]) -> dict[str, Series]:
    found: dict[str, Series] = {}
    for name in REFERENCES:
        path = directory / "reference" / f"{name}.jsonl"
        series = _read(path, notes) if path.is_file() else None
        if series is None:
            notes.append(f"There is no reference run with the {name} setting yet.")
            continue
        if len(series) < n:
            notes.append(
                f"The reference run with the {name} setting has {len(series)} of {n} intervals; "
                "comparisons use those."
            )
        found[name] = series.first(n)
    return found


def _evaluation(directory: Path, notes: list[str]) -> dict[str, dict[int, Series]]:
    found: dict[str, dict[int, Series]] = {}
    for path in sorted((directory / "evaluation").glob("*-seed*.jsonl")):
        name, _, seed = path.stem.rpartition("-seed")
        series = _read(path, notes) if seed.isdigit() else None
        if series is None:
            continue
        if series.end is None:
            notes.append(f"evaluation/{path.name} is cut short and was left out.")
            continue
        found.setdefault(name, {})[int(seed)] = series
    return found


def _recommended(run: Series, notes: list[str]) -> Mapping[str, float] | None:
    if run.end is not None and "recommended" in run.end:
        found = run.end["recommended"]
        if "cluster" in found:
            notes.append(
                "The candidate sets groups of devices apart: the table shows the group "
                f"'cluster', best.json all of them ({', '.join(found)})."
            )
        return cluster_setting(found)
    scored = [r for r in run.records if not r.get("idle")]
    if not scored:
        return None
    best = max(scored, key=lambda r: float(r["utility"]))
    notes.append(
        "No recommendation was made yet; the setting below is the one of the best single interval "
        f"so far (number {best['i']})."
    )
    return cluster_setting(best["setting"])


def cluster_setting(setting: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the setting of the whole cluster from a plain or a grouped one."""
    if "cluster" in setting:
        return dict(setting["cluster"])
    return dict(setting)


def _timing(directory: Path) -> Mapping[str, Any]:
    try:
        timing = parse_json(read_file(directory / "timing.json"))
    except ValueError:  # a ConfigError is one
        return {}
    return timing if isinstance(timing, dict) else {}
