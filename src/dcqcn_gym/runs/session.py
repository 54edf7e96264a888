"""Record a tuning session: the tuned run, references on its traffic, runs on held-out traffic.

Each leaves a log, is a run of its own and can be repeated alone. References (default and expert)
and evaluations run in worker processes beside the tuned run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.sums import count, total
from dcqcn_gym.envs.scenario.parts import later_parts
from dcqcn_gym.runs.campaign import Campaign, raise_failures
from dcqcn_gym.runs.entries import REFERENCES, evaluation_seeds, tried_settings
from dcqcn_gym.runs.log import Line, RunDir, write_json
from dcqcn_gym.runs.loop import Timing
from dcqcn_gym.runs.pool import worker_pool
from dcqcn_gym.runs.recorded import RunJob, check_same, held_out_job
from dcqcn_gym.runs.spec import RunSpec


@dataclass(frozen=True)
class Evaluation:
    """How the recommended setting is judged: on ``seeds`` held-out seeds of ``intervals``."""

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


def record_session(
    spec: RunSpec,
    out: RunDir,
    *,
    evaluation: Evaluation,
    viewer: Viewer,
    resume: bool = False,
    force: bool = False,
) -> None:
    """Write every log of a session, and its timings, into ``out``.

    Everything that a person can get wrong raises before anything is written. ``resume``
    continues an interrupted session (a finished one is left as it is), ``force`` replaces one.
    What the logs come to is asked of :mod:`dcqcn_gym.report`, which only reads them, so that a
    page made later cannot say anything else.
    """
    recorded = out.check(resume=resume, force=force)
    if recorded is not None:
        check_same(recorded, spec)
    spec.check()  # builds the network and starts the tuner: bad input leaves no folder behind
    out.create(fresh=recorded is None)
    viewer.begin()
    try:
        timing = _simulate(spec, out, evaluation, viewer)
    except BaseException:
        out.remove_if_empty()
        raise
    if not out.timing.exists() or any(part["intervals"] for part in timing.values()):
        write_json(out.timing, {**_previous(out.timing, resume), **timing})  # else nothing ran


def _simulate(spec: RunSpec, out: RunDir, evaluation: Evaluation, viewer: Viewer) -> dict[str, Any]:
    """Produce every log; return the timings."""
    judged, tried = _judged_on(spec, evaluation), tried_settings(spec.scenario)

    def held_out(name: str, seed: int, setting: DeviceSetting) -> RunJob:
        path = out.evaluation(name, seed)
        return held_out_job(judged[seed], setting, seed, evaluation.intervals, path)

    # a log of other options would be judged together with these, on other traffic
    used = {out.evaluation(name, seed) for seed in judged for name in ("recommended", *tried)}
    for path in (out.root / "evaluation").glob("*.jsonl"):
        if path not in used:
            path.unlink()
    same = [
        RunJob(
            spec.with_setting(tried[name], spec.seed, spec.intervals),
            out.reference(name),
            watched=name == "default",  # the display of the tuned run compares with it
        )
        for name in REFERENCES
    ]
    finished: list[Timing] = []
    failed: dict[Path, str] = {}
    with worker_pool() as pool:
        campaign = Campaign[RunJob](pool)
        # before the tuned run, so that the workers are busy while this process steps the tuner;
        # seed by seed, so that one that is cut short has whole seeds, on which settings compare
        campaign.add([*same, *(held_out(name, s, tried[name]) for s in judged for name in tried)])
        tuned = RunJob(spec, out.log).run(viewer.interval)
        campaign.add([held_out("recommended", seed, tuned.recommended) for seed in judged])
        viewer.waiting(0, campaign.total)
        for done in campaign.finished():
            if done.error is None:
                finished.append(done.result.timing)
            else:
                failed[done.job.path] = done.error
            viewer.waiting(done.count, done.total)
    raise_failures(failed)
    return {"run": _summed([tuned.timing]), "references_and_evaluation": _summed(finished)}


def _judged_on(spec: RunSpec, evaluation: Evaluation) -> dict[int, RunSpec]:
    """Return held-out seed -> what runs there: other traffic, or a later part of the same trace."""
    seeds = evaluation_seeds(spec.seed, evaluation.seeds)
    n = evaluation.seeds
    parts = later_parts(spec.scenario, spec.intervals, evaluation.intervals, n, spec.seed)
    if not parts:
        return dict.fromkeys(seeds, spec)
    runs = [replace(spec, scenario=scenario, part=words) for scenario, words in parts]
    return dict(zip(seeds, runs, strict=False))  # there may be fewer parts


def _summed(timings: list[Timing]) -> dict[str, float]:
    rows = [asdict(t) for t in timings]
    summed = {key: total(row[key] for row in rows) for key in Timing.__dataclass_fields__}
    return {**summed, "intervals": count(t.intervals for t in timings)}


def _previous(path: Path, resume: bool) -> dict[str, Any]:
    """Return the timings of an earlier part of a resumed session, under ``before_resume``."""
    if not resume or not path.exists():
        return {}
    try:
        return {"before_resume": parse_json(read_file(path))}
    except ValueError:
        return {}
