"""Studies carried out for tests, as the command ``study`` does it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dcqcn_gym.comparison.plan import Plan, Trials, check
from dcqcn_gym.runs.campaign import Progress, raise_failures
from dcqcn_gym.runs.trials import carry_out


def produce(
    plan: Plan,
    out: Path,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> Trials:
    """Make every run of a plan that ``out`` lacks, as ``study`` does, and return all.

    In threads, which begin at once: a worker process takes a second.
    """
    trials = plan.trials(out)
    check(trials)
    study = plan.study("study", trials)
    study.begin(out, force=force)
    with ThreadPoolExecutor(2) as pool:
        raise_failures(carry_out(study.jobs.values(), 2, progress, pool))
    return trials
