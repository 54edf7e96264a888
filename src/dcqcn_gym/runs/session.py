"""One tuning session: the tuned run, the references on the same traffic, the evaluation, the files.

References (default and expert) and the evaluation on fresh seeds run in worker processes beside
the tuned run. Every log is a run of its own and can be repeated alone.
"""

from __future__ import annotations

import json
from concurrent.futures import Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from dcqcn_gym.core.errors import DcqcnGymError, RunError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.runs.log import (
    Line,
    Run,
    RunDir,
    read_run,
    setting_json,
    short_json,
    write_json,
)
from dcqcn_gym.runs.loop import RunSpec, Timing, run
from dcqcn_gym.runs.pool import step_back, worker_pool

__all__ = ["REFERENCES", "Evaluation", "Viewer", "check_same", "evaluation_seeds", "tune"]

REFERENCES = ("default", "expert")
"""The settings that every run is compared with."""

_SEED_BLOCK = 1_000_000


def evaluation_seeds(seed: int, count: int) -> list[int]:
    """Return ``count`` seeds for fresh traffic: the same for all tuners that ran with ``seed``."""
    return [_SEED_BLOCK + 1000 * seed + k for k in range(count)]


@dataclass(frozen=True)
class Evaluation:
    """How the recommended setting is judged: ``seeds`` fresh seeds of ``intervals`` intervals."""

    seeds: int = 5
    intervals: int = 20


class Viewer(Protocol):
    """What a session shows of itself; :mod:`dcqcn_gym.runs.progress` has those of the command."""

    def begin(self) -> None:
        """Everything that was given is fine; the warm-up begins."""

    def interval(self, line: Line, state: dict[str, Any], repeated: bool) -> None:
        """One interval of the tuned run is over."""

    def waiting(self, done: int, total: int) -> None:
        """So many of the reference and evaluation runs are finished."""


@dataclass(frozen=True)
class _Job:
    spec: RunSpec
    path: Path
    watched: bool = False
    """True for the default's run, which the display of the tuned run compares with."""


def tune(
    spec: RunSpec,
    out: RunDir,
    *,
    evaluation: Evaluation,
    viewer: Viewer,
    resume: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Carry out a whole session in ``out`` and return what ``best.json`` holds.

    Everything that a person can get wrong raises before anything is written. ``resume``
    continues an interrupted session (a finished one is left as it is), ``force`` replaces one.
    """
    recorded = out.check(resume=resume, force=force)
    if recorded is not None:
        check_same(recorded, spec)
    spec.check()
    out.create(fresh=recorded is None)
    viewer.begin()
    try:
        timing = _simulate(spec, out, evaluation, viewer, recorded)
    except BaseException:
        out.remove_if_empty()
        raise
    best = _best(spec, out, evaluation)
    write_json(out.best, best)
    if not out.timing.exists() or any(part["intervals"] for part in timing.values()):
        write_json(out.timing, {**_previous(out.timing, resume), **timing})  # else nothing ran
    return best


def _simulate(
    spec: RunSpec, out: RunDir, evaluation: Evaluation, viewer: Viewer, recorded: Run | None
) -> dict[str, Any]:
    """Produce every log; return the timings."""
    _remove_stale(spec, out, evaluation)
    finished: list[Timing] = []
    try:
        with worker_pool() as pool:
            futures = _submit(pool, _fixed_jobs(spec, out, evaluation))
            tuned = _continue(_Job(spec, out.log), recorded, viewer)
            recommended = Setting.from_nvidia(_end(out.log)["recommended"])
            futures |= _submit(pool, _evaluation_jobs(spec, out, evaluation, recommended))
            viewer.waiting(0, len(futures))
            for future in as_completed(futures):
                finished.append(future.result())
                viewer.waiting(len(finished), len(futures))
    except BrokenProcessPool as error:
        raise RunError(
            f"a worker process died (out of memory?); {out.log} is kept: continue with --resume"
        ) from error
    return {"run": _summed([tuned]), "references_and_evaluation": _summed(finished)}


def check_same(recorded: Run, spec: RunSpec) -> None:
    """Raise RunError naming the first argument that differs from the recorded run's."""
    old, new = recorded.header, json.loads(json.dumps(spec.header()))
    if old == new:
        return
    for key in new:
        if old.get(key) != new[key]:
            part, before, after = _difference(key, old.get(key), new[key])
            raise RunError(
                f"--resume: {recorded.path} was made with {part} = {short_json(before)}, "
                f"now it is {short_json(after)}; give the same arguments, or --force to start again"
            )


def _difference(name: str, old: Any, new: Any) -> tuple[str, Any, Any]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return _difference(f"{name}.{key}", old.get(key), new.get(key))
    return name, old, new


def _fixed_jobs(spec: RunSpec, out: RunDir, evaluation: Evaluation) -> list[_Job]:
    rate = spec.scenario.line_rate_bps
    settings = {"default": default_setting(rate), "expert": expert_setting(rate)}
    same = [
        _Job(
            spec.with_setting(settings[n], spec.seed, spec.intervals),
            out.reference(n),
            watched=n == "default",
        )
        for n in REFERENCES
    ]
    fresh = [
        _Job(spec.with_setting(settings[n], seed, evaluation.intervals), out.evaluation(n, seed))
        for seed in evaluation_seeds(spec.seed, evaluation.seeds)
        for n in REFERENCES
    ]
    return same + fresh


def _evaluation_jobs(
    spec: RunSpec, out: RunDir, evaluation: Evaluation, recommended: Setting
) -> list[_Job]:
    return [
        _Job(
            spec.with_setting(recommended, seed, evaluation.intervals),
            out.evaluation("recommended", seed),
        )
        for seed in evaluation_seeds(spec.seed, evaluation.seeds)
    ]


def _remove_stale(spec: RunSpec, out: RunDir, evaluation: Evaluation) -> None:
    """Remove logs of fresh seeds that this session does not use (after other options)."""
    seeds = evaluation_seeds(spec.seed, evaluation.seeds)
    used = {out.evaluation(name, seed) for seed in seeds for name in ("recommended", *REFERENCES)}
    for path in (out.root / "evaluation").glob("*.jsonl"):
        if path not in used:
            path.unlink()


def _submit(pool: Executor, jobs: list[_Job]) -> set[Future[Timing]]:
    return {pool.submit(_work, job) for job in jobs}


def _work(job: _Job) -> Timing:
    """Produce one log in a worker; a log of the same run is continued, any other replaced."""
    if not job.watched:
        step_back()
    try:
        try:
            recorded: Run | None = read_run(job.path)
        except RunError:
            recorded = None
        if recorded is not None and recorded.header != json.loads(json.dumps(job.spec.header())):
            recorded = None
        return _continue(job, recorded, None)
    except DcqcnGymError as error:
        raise RunError(f"{job.path.name}: {error}") from None  # every error tree survives pickling


def _continue(job: _Job, recorded: Run | None, viewer: Viewer | None) -> Timing:
    if recorded is not None and recorded.complete:
        return Timing(0.0, 0.0, 0.0, 0)
    watch = None if viewer is None else viewer.interval
    return run(job.spec, job.path, replay=recorded, watch=watch)


def _end(path: Path) -> Line:
    end = read_run(path).end
    assert end is not None  # the run returned
    return end


def _best(spec: RunSpec, out: RunDir, evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of best.json, from the logs alone."""
    end = _end(out.log)
    table = spec.scenario.initial_setting().table
    default = setting_json(default_setting(spec.scenario.line_rate_bps, table))
    recommended = end["recommended"]
    names = ("recommended", *REFERENCES)
    seeds = evaluation_seeds(spec.seed, evaluation.seeds)
    fresh = {n: [_end(out.evaluation(n, s))["mean_utility"] for s in seeds] for n in names}
    return {
        "scenario": spec.scenario.name,
        "tuner": spec.tuner,
        "seed": spec.seed,
        "intervals": end["intervals"],
        "recommended": recommended,
        "changed": {
            name: {"default": default[name], "recommended": value, "unit": table[name].unit}
            for name, value in recommended.items()
            if value != default[name]
        },
        "utility_while_tuning": {
            "tuned": end["mean_utility"],
            **{n: _end(out.reference(n))["mean_utility"] for n in REFERENCES},
        },
        "utility_on_fresh_seeds": {
            "seeds": seeds,
            "intervals": evaluation.intervals,
            "mean": {n: _mean(fresh[n]) for n in names},
            "per_seed": fresh,
        },
    }


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _summed(timings: list[Timing]) -> dict[str, float]:
    rows = [asdict(t) for t in timings]
    return {key: sum(row[key] for row in rows) for key in Timing.__dataclass_fields__}


def _previous(path: Path, resume: bool) -> dict[str, Any]:
    """Return the timings of an earlier part of a resumed session, under ``before_resume``."""
    if not resume or not path.exists():
        return {}
    try:
        return {"before_resume": parse_json(read_file(path))}
    except ValueError:
        return {}
