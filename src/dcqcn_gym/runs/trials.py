"""Trials: a tuner runs on a scenario, and what it recommends then runs on held-out seeds.

Every study of tuners is made of them. A trial leaves ``FOLDER/seedN.jsonl``, its seconds in
``seedN.timing.json``, and ``seedN-held-outK.jsonl`` for each of ``eval_seeds`` held-out seeds; what
is there of the same run is left or continued (:mod:`dcqcn_gym.runs.recorded`). The leaderboard's
attempts have files and seeds of their own and are carried out alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from dcqcn_gym.core.device_units import setting_on_devices
from dcqcn_gym.core.groups import DeviceSetting, by_group
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.parts import later_parts
from dcqcn_gym.runs import campaign
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.entries import evaluation_seeds
from dcqcn_gym.runs.recorded import RunJob, RunResult, held_out_job
from dcqcn_gym.runs.spec import RunSpec


@dataclass(frozen=True)
class Trial:
    """One entry on one scenario with one seed, and what it recommends on held-out seeds."""

    spec: RunSpec
    folder: Path
    eval_seeds: int = 0
    eval_intervals: int = 0
    eval_backend: str = ""
    """Where what was recommended runs; default: where the tuned run does."""
    sharing: int = 0
    """Seeds 1, 2, ... so many share a trace's parts behind the search; 0: all have the whole."""

    @property
    def label(self) -> str:
        """The entry's name in tables."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What is said of it while it runs."""
        return f"{self.folder.parent.name} {self.label} seed {self.spec.seed}"

    @property
    def log(self) -> Path:
        """The event log of the tuned run."""
        return self.folder / f"seed{self.spec.seed}.jsonl"

    @property
    def timing(self) -> Path:
        """Seconds of the tuned run; outside every same-bytes promise."""
        return self.folder / f"seed{self.spec.seed}.timing.json"

    @property
    def held_out(self) -> list[Path]:
        """The logs of the recommendation on held-out seeds."""
        return [
            self.folder / f"seed{self.spec.seed}-held-out{k}.jsonl" for k in range(self.eval_seeds)
        ]

    @property
    def files(self) -> list[Path]:
        """Everything that it leaves."""
        return [self.log, self.timing, *self.held_out]

    @property
    def tuned(self) -> RunJob:
        """The tuned run."""
        return RunJob(self.spec, self.log, self.title, self.timing)

    def judged(self, setting: DeviceSetting) -> list[RunJob]:
        """Return the runs of what the tuned run recommends, on seeds that all entries share.

        What was found behind devices runs elsewhere as devices hold it.
        """
        spec = replace(self.spec, backend=self.eval_backend or self.spec.backend)
        if self.spec.backend == "native-devices" != spec.backend:
            setting = {name: setting_on_devices(one) for name, one in by_group(setting)}
        seeds = evaluation_seeds(self.spec.seed, self.eval_seeds)
        return [
            held_out_job(here, setting, seed, self.eval_intervals, path, self.title)
            for seed, here, path in zip(seeds, self._on(spec), self.held_out, strict=True)
        ]

    def _on(self, spec: RunSpec) -> list[RunSpec]:
        """Return what each judging run has: all of the traffic, or a later part of a trace.

        No two seeds have a part in common; a seed with fewer parts than runs has them again.
        """
        most = self.sharing * self.eval_seeds
        # a part that two seeds shared would make them agree without being evidence
        parts = later_parts(spec.scenario, spec.intervals, self.eval_intervals, most)
        own = parts[spec.seed - 1 :: self.sharing] if 1 < self.sharing <= len(parts) else ()
        runs = [replace(spec, scenario=scenario, part=words) for scenario, words in own] or [spec]
        return [runs[k % len(runs)] for k in range(self.eval_seeds)]


class JudgedTrial(Protocol):
    """A tuned run, and the runs that judge what it recommends."""

    @property
    def folder(self) -> Path:
        """Where all of them leave their logs."""

    @property
    def tuned(self) -> RunJob:
        """The tuned run."""

    @property
    def held_out(self) -> Sequence[Path]:
        """The logs of the runs that judge."""

    def judged(self, setting: DeviceSetting) -> list[RunJob]:
        """Return the runs that judge, one for each of :attr:`held_out`."""


def carry_out_all(
    todo: Sequence[JudgedTrial],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> dict[Path, str]:
    """Make every log that is missing or unfinished; return the error of each log that failed.

    A tuner that fails keeps its log and stops no other.
    """
    tuned = [one.tuned for one in todo]
    owners = {job.path: one for job, one in zip(tuned, todo, strict=True)}
    for one in todo:
        one.folder.mkdir(parents=True, exist_ok=True)

    def then(job: RunJob, ran: RunResult) -> list[RunJob]:
        return owners[job.path].judged(ran.recommended) if job.path in owners else []

    return campaign.carry_out(
        tuned,
        workers=workers,
        executor=executor,
        then=then,
        expected=len(todo) + count(len(one.held_out) for one in todo),
        progress=progress,
    )


def carry_out(
    trials: Iterable[Trial],
    workers: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> dict[Path, str]:
    """Carry out trials; return the error of each that failed, by its log."""
    todo = list(trials)
    failed = carry_out_all(todo, workers=workers, executor=executor, progress=progress)
    owners = {path: trial.log for trial in todo for path in (trial.log, *trial.held_out)}
    return {owners[path]: error for path, error in failed.items()}
