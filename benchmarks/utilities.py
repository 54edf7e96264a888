"""Mean utilities of many runs at once, by what they are runs of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from dcqcn_gym.runs.campaign import Progress, carry_out, raise_failures
from dcqcn_gym.runs.recorded import RunJob, end_of

__all__ = ["utilities"]

Key = TypeVar("Key")


def utilities(
    jobs: Mapping[Key, Sequence[RunJob]],
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[Key, list[float]]:
    """Carry out what is missing and return the mean utility of every run while its tuner acted."""
    every = [job for several in jobs.values() for job in several]
    for job in every:
        job.path.parent.mkdir(parents=True, exist_ok=True)
    raise_failures(carry_out(every, workers=workers, progress=progress))
    return {
        key: [float(end_of(job.path)["mean_utility"]) for job in several]
        for key, several in jobs.items()
    }
