"""Tuners against each other on the same traffic: which runs there are, and how they are made.

Every tuner runs on every scenario with every seed; what it recommends then runs on fresh seeds,
the same for all tuners. Each run is an event log of its own under the output directory, so an
interrupted comparison goes on where it stopped, and the number of workers changes no result.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dcqcn_gym.core.errors import DcqcnGymError, MissingExtraError, RunError
from dcqcn_gym.core.groups import setting_of
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.log import Run, read_run, write_json
from dcqcn_gym.runs.loop import RunSpec, run
from dcqcn_gym.runs.pool import step_back, worker_pool
from dcqcn_gym.runs.session import check_same, evaluation_seeds
from dcqcn_gym.tuners import TUNERS

__all__ = ["Job", "Plan", "all_tuners", "carry_out", "jobs", "label", "prepare"]

PLAN_FILE = "compare.json"
NEED_ARGUMENTS = ("fixed", "policy")
Progress = Callable[["Job", "str | None", int, int], None]
"""Called per finished job: the job, its error or None, how many are done, how many there are."""


def all_tuners() -> tuple[str, ...]:
    """Return every registered tuner but those that mean nothing without arguments."""
    return tuple(name for name in TUNERS.names() if name not in NEED_ARGUMENTS)


def label(tuner: str) -> str:
    """Return a tuner's name for tables and folders; ``dir/file.py:Class`` becomes file-Class."""
    path, separator, attribute = tuner.rpartition(":")
    short = f"{Path(path).stem}-{attribute}" if separator else tuner
    return re.sub(r"[^A-Za-z0-9_.-]", "_", short)


@dataclass(frozen=True)
class Plan:
    """What is compared. ``intervals`` is the budget of each run, seeds are 1..``seeds``.

    ``everything`` says that the tuners were asked for as "all": those that cannot run here are
    left out instead of being an error.
    """

    scenarios: Sequence[str]
    tuners: Sequence[str]
    seeds: int
    intervals: int
    eval_seeds: int = 2
    eval_intervals: int = 25
    backend: str = "native"
    everything: bool = False

    def command(self, out: Path, workers: int | None = None) -> str:
        """Return the command that makes this comparison."""
        tuners = "all" if self.everything else ",".join(self.tuners)
        words = ["dcqcn-gym", "compare", "--scenario", ",".join(self.scenarios)]
        words += ["--tuners", tuners, "--seeds", str(self.seeds)]
        words += ["--intervals", str(self.intervals), "--eval-seeds", str(self.eval_seeds)]
        words += ["--eval-intervals", str(self.eval_intervals)]
        if self.backend != "native":
            words += ["--backend", self.backend]
        if workers is not None:
            words += ["--jobs", str(workers)]
        return shlex.join([*words, "--out", str(out)])


@dataclass(frozen=True)
class Job:
    """One tuner on one scenario with one seed, and what it recommends on fresh seeds."""

    spec: RunSpec
    folder: Path
    eval_seeds: int
    eval_intervals: int

    @property
    def label(self) -> str:
        """The tuner's name in tables."""
        return label(self.spec.tuner)

    @property
    def log(self) -> Path:
        """The event log of the tuned run."""
        return self.folder / f"seed{self.spec.seed}.jsonl"

    @property
    def timing(self) -> Path:
        """Seconds of the tuned run; outside every same-bytes promise."""
        return self.folder / f"seed{self.spec.seed}.timing.json"

    @property
    def fresh(self) -> list[Path]:
        """The logs of the recommendation on fresh seeds."""
        return [
            self.folder / f"seed{self.spec.seed}-fresh{k}.jsonl" for k in range(self.eval_seeds)
        ]


def jobs(plan: Plan, out: Path) -> list[Job]:
    """Return every job: seed by seed, so that a comparison cut short holds whole seeds."""
    scenarios = [load_scenario(name) for name in plan.scenarios]
    return [
        Job(
            RunSpec(scenario, tuner, seed, plan.intervals, plan.backend),
            out / scenario.name / label(tuner),
            plan.eval_seeds,
            plan.eval_intervals,
        )
        for seed in range(1, plan.seeds + 1)
        for scenario in scenarios
        for tuner in plan.tuners
    ]


def prepare(
    plan: Plan, out: Path, *, resume: bool = False, force: bool = False
) -> tuple[Plan, list[str]]:
    """Check everything that can be wrong, then make the folders.

    Return the plan and notes. With all tuners, those whose packages are missing are left out and
    noted. Raises ConfigError or RunError; before that nothing is written.
    """
    _check_out(out, resume=resume, force=force)
    plan, notes = _available(plan)
    todo = jobs(plan, out)
    if resume:
        for job in todo:
            if job.log.exists():
                check_same(read_run(job.log), job.spec)
    for job in todo:
        try:
            job.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
        for old in (job.log, job.timing, *job.fresh) if force else ():
            old.unlink(missing_ok=True)
    write_json(out / PLAN_FILE, {**asdict(plan), "command": plan.command(out)})
    return plan, notes


def _check_out(out: Path, *, resume: bool, force: bool) -> None:
    if resume and force:
        raise RunError("--resume continues a comparison and --force replaces it; give one of them")
    held = (out / PLAN_FILE).exists()
    if held and not (resume or force):
        raise RunError(
            f"{out} already holds a comparison; continue it with --resume, replace it with "
            "--force, or give another --out"
        )
    if out.exists() and not out.is_dir():
        raise RunError(f"--out {out} is a file; give a directory")


def _available(plan: Plan) -> tuple[Plan, list[str]]:
    """Try every start; leave out tuners of ``all`` that lack their packages or are broken.

    Broken can only be a plug-in of another package; our own tuners have to run.
    """
    kept, notes = list(plan.tuners), []
    first: Scenario = load_scenario(plan.scenarios[0])
    for tuner in plan.tuners:
        try:
            RunSpec(first, tuner, 1, plan.intervals, plan.backend).check()
        except DcqcnGymError as error:
            ours = tuner in TUNERS.builtin and not isinstance(error, MissingExtraError)
            if ours or not plan.everything:
                raise
            kept.remove(tuner)
            notes.append(f"{tuner} was left out: {error}")
    for name in plan.scenarios[1:]:
        scenario = load_scenario(name)
        for tuner in kept:
            RunSpec(scenario, tuner, 1, plan.intervals, plan.backend).check()
    return replace(plan, tuners=tuple(kept)), notes


def carry_out(todo: Sequence[Job], workers: int, progress: Progress) -> dict[Path, str]:
    """Make every log that is missing or unfinished; return the error of each log that failed.

    A tuner that fails keeps its log and does not stop the others.
    """
    failed: dict[Path, str] = {}
    try:
        with worker_pool(workers) as pool:
            futures = {pool.submit(_work, job): job for job in todo}
            for done, future in enumerate(as_completed(futures), start=1):
                job, error = futures[future], future.result()
                if error is not None:
                    failed[job.log] = error
                progress(job, error, done, len(todo))
    except BrokenProcessPool as error:
        raise RunError(
            "a worker process died (out of memory?); finished runs are kept: continue with --resume"
        ) from error
    return failed


def _work(job: Job) -> str | None:
    """Carry out a job in a worker; return what went wrong in it, or None."""
    step_back()
    try:
        old = _previous(job.log, job.spec)
        if old is None or not old.complete or not job.timing.exists():
            timing = run(job.spec, job.log, replay=None if old is None else _unfinished(old))
            write_json(job.timing, asdict(timing))
        for path, spec in _evaluation(job):
            done = _previous(path, spec)
            if done is None or not done.complete:
                run(spec, path, replay=done)
    except DcqcnGymError as error:
        return str(error)
    return None


def _unfinished(old: Run) -> Run | None:
    """Return the log to continue; a finished one without its timing is made again."""
    return None if old.complete else old


def _evaluation(job: Job) -> Iterator[tuple[Path, RunSpec]]:
    """Yield the runs of the recommendation on fresh seeds, the same seeds for every tuner."""
    end = read_run(job.log).end
    assert end is not None  # the run returned
    setting = setting_of(end["recommended"])
    seeds = evaluation_seeds(job.spec.seed, job.eval_seeds)
    for path, seed in zip(job.fresh, seeds, strict=True):
        yield path, job.spec.with_setting(setting, seed, job.eval_intervals)


def _previous(path: Path, spec: RunSpec) -> Run | None:
    """Return the log of the same run, if there is one."""
    try:
        old = read_run(path)
    except RunError:
        return None
    return old if old.header == json.loads(json.dumps(spec.header())) else None
