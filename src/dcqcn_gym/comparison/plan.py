"""Tuners against each other on the same traffic: which runs there are, and how they are made.

The runs are those of a :class:`~dcqcn_gym.comparison.study.plan.Study` of the tuners without
arguments. Here is what only a comparison has: a plan that grows with what is given later, and
tuners of "all" that cannot run here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dcqcn_gym.benchmarks.leaderboard.tuner_host import Hosting
from dcqcn_gym.comparison.study.plan import Study, in_turn
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import DcqcnGymError, MissingExtraError, RunError, quote
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.runs.entries import label
from dcqcn_gym.runs.log import read_run, write_json
from dcqcn_gym.runs.recorded import check_same
from dcqcn_gym.runs.trials import Trial
from dcqcn_gym.tuners import TUNERS

PLAN_FILE = "compare.json"
NEED_ARGUMENTS = ("fixed", "policy")


def all_tuners() -> tuple[str, ...]:
    """Return every registered tuner but those that mean nothing without arguments."""
    return tuple(name for name in TUNERS.names() if name not in NEED_ARGUMENTS)


Names = Annotated[Sequence[str], Field(min_length=1, max_length=1000)]
Seeds = Annotated[int, Field(strict=True, ge=1, le=999)]
Intervals = Annotated[int, Field(strict=True, ge=1, le=10**9)]


@dataclass(frozen=True)
class Plan:
    """What is compared. ``intervals`` is the budget of each run, seeds are 1..``seeds``.

    ``everything`` says that the tuners were asked for as "all": those that cannot run here are
    left out instead of being an error. ``deadline_s`` bounds a decision of a plug-in (None: as
    :class:`~dcqcn_gym.benchmarks.leaderboard.tuner_host.Hosting` has it) and decides no byte.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    scenarios: Names
    tuners: Names
    seeds: Seeds
    intervals: Intervals
    eval_seeds: Seeds = 2
    eval_intervals: Intervals = 25
    backend: str = "native"
    everything: bool = False
    deadline_s: float | None = None

    @property
    def hosting(self) -> Hosting:
        """Where tuners run."""
        return Hosting() if self.deadline_s is None else Hosting(self.deadline_s)

    @property
    def study(self) -> Study:
        """Its runs; ConfigError if two scenarios or two tuners would share a folder."""
        data = {
            "description": "tuners on the same traffic",
            "intervals": self.intervals,
            "seeds": self.seeds,
            "fresh_seeds": self.eval_seeds,
            "fresh_intervals": self.eval_intervals,
            "cases": [{"scenario": name} for name in self.scenarios],
            "entries": [
                {"name": label(tuner), "tuner": tuner, "backend": self.backend}
                for tuner in self.tuners
            ],
            "tables": [{"kind": "fresh"}],
        }
        return validate(data, Study, source="compare")

    def command(self, out: Path, workers: int | None = None) -> str:
        """Return the command that makes this comparison."""
        known = self.everything and set(self.tuners) <= set(all_tuners())
        tuners = "all" if known else ",".join(self.tuners)
        words = ["dcqcn-gym", "compare", "--scenario", ",".join(self.scenarios)]
        words += ["--tuners", tuners, "--seeds", str(self.seeds)]
        words += ["--intervals", str(self.intervals), "--eval-seeds", str(self.eval_seeds)]
        words += ["--eval-intervals", str(self.eval_intervals)]
        if self.backend != "native":
            words += ["--backend", self.backend]
        if self.deadline_s is not None:
            words += ["--tuner-deadline", f"{self.deadline_s:g}"]
        if workers is not None:
            words += ["--jobs", str(workers)]
        return shlex.join([*words, "--out", str(out)])


def jobs(plan: Plan, out: Path) -> list[Trial]:
    """Return every trial, seed by seed; each seed has later parts of a trace of its own."""
    trials = in_turn(plan.study.trials(out, plan.hosting))
    return [replace(trial, sharing=plan.seeds) for trial in trials]


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


def stored_plan(out: Path) -> Plan:
    """Return the plan of the comparison in ``out``; RunError if it holds none."""
    path = out / PLAN_FILE
    if not path.exists():
        raise RunError(f"{out} holds no comparison ({PLAN_FILE} is missing)")
    try:
        values = dict(parse_json(read_file(path)))
        values.pop("command", None)
        plan = TypeAdapter(Plan).validate_python(values)
    except (ValidationError, ValueError, TypeError) as error:
        raise RunError(f"{path} is not the plan of a comparison: {_reason(error)}") from None
    return replace(plan, tuners=_joined(all_tuners(), plan.tuners)) if plan.everything else plan


def added(held: Plan, given: Mapping[str, Any]) -> Plan:
    """Return a stored plan with what is given besides: more scenarios, tuners, seeds.

    Raises RunError for fewer seeds than it has: what is there is not taken away.
    """
    for key in ("seeds", "eval_seeds"):
        has, wanted = getattr(held, key), given.get(key)
        if wanted is not None and wanted < has:
            option = "--" + key.replace("_", "-")
            raise RunError(
                f"{option} {wanted}: the comparison has {has}, and what is given adds "
                f"to it; give {has} or more, or another --out"
            )
    joined = {
        key: _joined(getattr(held, key), given.get(key, ())) for key in ("scenarios", "tuners")
    }
    everything = held.everything or bool(given.get("everything"))
    return replace(held, **{**given, **joined, "everything": everything})


def _joined(first: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """Return both, each name once."""
    return tuple(dict.fromkeys((*first, *more)))


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}; got {quote(first['input'])}"
    return " ".join(str(error).split())


def _check_out(out: Path, *, resume: bool, force: bool) -> None:
    if resume and force:
        raise RunError("a comparison is continued or replaced; give one of them")
    held = (out / PLAN_FILE).exists()
    if resume and not held:
        raise RunError(f"{out} holds no comparison ({PLAN_FILE} is missing)")
    if held and not (resume or force):
        raise RunError(
            f"{out} already holds a comparison; replace it with --force, or give another --out"
        )
    if out.exists() and not out.is_dir():
        raise RunError(f"--out {out} is a file; give a directory")


def _available(plan: Plan) -> tuple[Plan, list[str]]:
    """Try every start; leave out tuners of ``all`` that lack their packages or are broken.

    A plug-in that was named and is broken stays: its runs fail, each with its reason, and the
    others run. Our own tuners have to run.
    """
    kept, notes = list(plan.tuners), []
    for place, trial in enumerate(jobs(replace(plan, seeds=1), Path())):
        tuner = trial.spec.tuner
        ours = tuner in TUNERS.builtin
        if tuner not in kept or (not ours and place >= len(plan.tuners)):
            continue
        try:
            trial.spec.check()
        except DcqcnGymError as error:
            TUNERS.check_name(tuner)  # a misspelt name is no broken plug-in
            if ours and not (plan.everything and isinstance(error, MissingExtraError)):
                raise
            if plan.everything:
                kept.remove(tuner)
                notes.append(f"{tuner} was left out: {error}")
            else:
                notes.append(f"{tuner} cannot start: {error}")
    return replace(plan, tuners=tuple(kept)), notes
