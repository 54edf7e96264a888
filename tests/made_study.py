"""Studies carried out for tests, as the command ``study`` does it."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.comparison.plan import Plan, Trials, check
from dcqcn_gym.runs.campaign import Progress, raise_failures
from dcqcn_gym.runs.trials import carry_out


def produce(
    plan: Plan,
    out: Path,
    workers: int | None = None,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> Trials:
    """Make every run of a plan that ``out`` lacks, as ``study`` does, and return all."""
    trials = plan.trials(out)
    check(trials)
    study = plan.study("study", trials)
    study.begin(out, force=force)
    raise_failures(carry_out(study.jobs.values(), workers, progress))
    return trials
