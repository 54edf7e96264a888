"""Independent jobs on any executor: each leaves one file, and one that fails stops no other.

A job is any picklable object with a name, the path of the file it leaves and ``work()``, which
makes the file or finds that it is there. It depends on nothing but itself, so the number of workers
and the order in which jobs end change no byte. What depends on a result (the recommended setting,
judged on held-out seeds) is a job of the second wave: ``then`` makes it once its input is there.
:mod:`dcqcn_gym.runs.recorded` has the job that carries out a run.
"""

from __future__ import annotations

import heapq
import math
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from dcqcn_gym.core.config import json_object
from dcqcn_gym.core.errors import (
    DEBUG_VARIABLE,
    ConfigError,
    DcqcnGymError,
    RunError,
    in_one_line,
)
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.log import encode_line
from dcqcn_gym.runs.pool import cpu_count, step_back, worker_pool


class Job(Protocol):
    """A picklable piece of work; ``path`` is the file that it leaves, and no other job's."""

    @property
    def name(self) -> str:
        """What people read that is being done."""

    @property
    def path(self) -> Path:
        """The file that :meth:`work` leaves."""

    def work(self) -> Any:
        """Make the file, unless it is there; called in a worker, the result has to pickle."""


@dataclass(frozen=True)
class JsonJob:
    """A job that leaves what ``make`` returns as JSON; a file that is whole is left as it is.

    ``make`` has to pickle: a function of a module, or a ``partial`` of one.
    """

    name: str
    path: Path
    make: Callable[[], Mapping[str, Any]]

    @property
    def files(self) -> list[Path]:
        """The one file."""
        return [self.path]

    def work(self) -> None:
        """Make the file in a worker."""
        if self._there() is None:
            step_back()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, encode_line(self.make()))

    def result(self) -> dict[str, Any]:
        """Return what the file holds; RunError if it is missing or damaged."""
        found = self._there()
        if found is None:
            raise RunError(f"{self.path} is missing or damaged; run it again")
        return found

    def _there(self) -> dict[str, Any] | None:
        try:
            return json_object(self.path.read_bytes(), str(self.path))
        except (OSError, ConfigError):
            return None


J = TypeVar("J", bound=Job)


@dataclass(frozen=True)
class FinishedJob(Generic[J]):
    """A job that has ended: its result, or the sentence of what went wrong.

    ``count`` jobs have ended now, of ``total``.
    """

    job: J
    result: Any
    error: str | None
    count: int
    total: int

    def __str__(self) -> str:
        return f"{self.count} of {self.total} runs: {self.job.name}"


Progress: TypeAlias = Callable[[FinishedJob[Any]], None]
"""Called in the program's own thread after every job."""
Order: TypeAlias = tuple[int, ...]


class Campaign(Generic[J]):
    """Jobs on an executor; with ``workers`` at most twice as many are handed over at a time.

    ``then`` makes the jobs that follow from a result; they come before whatever was added later
    than their parent, so that a campaign cut short holds whole chains. ``expected`` is the number
    of jobs that there will be, where that is known before the second wave.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        then: Callable[[J, Any], Iterable[J]] | None = None,
        workers: int | None = None,
        expected: int = 0,
    ) -> None:
        self._executor = executor
        self._then = then
        self._workers = workers
        self._expected = expected
        self._added = 0
        self._ended = 0
        self._writers: dict[Path, str] = {}
        self._waiting: list[tuple[Order, J]] = []
        self._running: dict[Future[Any], tuple[Order, J]] = {}

    @property
    def total(self) -> int:
        """Jobs known so far, or the ``expected`` number if that is larger."""
        return max(self._added, self._expected)

    def add(self, jobs: Iterable[J], after: Order = ()) -> None:
        """Take jobs in their order; ConfigError if two would write the same file."""
        for job in jobs:
            if job.path in self._writers:
                raise ConfigError(
                    f"{self._writers[job.path]} and {job.name} would both write {job.path}; "
                    "give each a name of its own"
                )
            self._writers[job.path] = job.name
            heapq.heappush(self._waiting, ((*after, self._added), job))
            self._added += 1
        self._hand_over()

    def finished(self) -> Iterator[FinishedJob[J]]:
        """Yield every job as it ends, failed ones included.

        Raises RunError, naming the suspects, if a worker process died; what is finished stays.
        """
        while self._running:
            ended, _ = wait(self._running, return_when=FIRST_COMPLETED)
            # of those that ended at once the first in order first: what follows is then the same
            for future in sorted(ended, key=lambda f: self._running[f][0]):
                yield self._close(future)
            self._hand_over()

    def cancel(self) -> None:
        """Start nothing more; what runs goes on."""
        for future in self._running:
            future.cancel()

    def _hand_over(self) -> None:
        # twice as many, so that a worker which ends a job finds the next one waiting; not all, so
        # that jobs of the second wave can still go before those that were added later
        limit = math.inf if self._workers is None else 2 * self._workers
        while self._waiting and len(self._running) < limit:
            order, job = heapq.heappop(self._waiting)
            try:
                self._running[self._executor.submit(_guarded, job)] = order, job
            except BrokenExecutor as error:
                raise self._died() from error

    def _close(self, future: Future[Any]) -> FinishedJob[J]:
        try:
            result, error = future.result()
        except DcqcnGymError as failed:  # the executor could not carry this one out
            result, error = None, str(failed)
        except BrokenExecutor as died:
            raise self._died() from died
        order, job = self._running.pop(future)
        self._ended += 1
        if error is None and self._then is not None:
            try:
                self.add(self._then(job, result), after=order)
            except DcqcnGymError as unusable:
                error = str(unusable)
        return FinishedJob(job, result, error, self._ended, self.total)

    def _died(self) -> RunError:
        """Return the error that names what was running: workers begin jobs in their order."""
        running = list(self._running.values())[: self._workers or cpu_count()]
        names = [job.name for _, job in running]
        return RunError(
            f"a worker process died (out of memory?) during {' or '.join(names) or 'its start'}; "
            "what is finished is kept: the same command continues it"
        )


def _guarded(job: Job) -> tuple[Any, str | None]:
    """Carry out a job in a worker; every error becomes a sentence, since not all of them pickle."""
    try:
        return job.work(), None
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exception(error)
        return None, str(error) if isinstance(error, DcqcnGymError) else in_one_line(error)


def carry_out(
    jobs: Iterable[J],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    then: Callable[[J, Any], Iterable[J]] | None = None,
    expected: int = 0,
    progress: Progress | None = None,
) -> dict[Path, str]:
    """Carry out all jobs; return the error of each that failed, by its path.

    ``executor`` is any of :mod:`concurrent.futures`, or one that behaves like it; by default a pool
    of ``workers`` processes (one per CPU). Left by an error or Ctrl-C, nothing more is started.
    """
    count = workers or cpu_count()
    place: AbstractContextManager[Executor] = (
        worker_pool(count) if executor is None else nullcontext(executor)
    )
    failed: dict[Path, str] = {}
    with place as pool:
        campaign = Campaign(pool, then=then, workers=count, expected=expected)
        try:
            campaign.add(jobs)
            for done in campaign.finished():
                if done.error is not None:
                    failed[done.job.path] = done.error
                if progress is not None:
                    progress(done)
        except BaseException:
            campaign.cancel()
            raise
    return failed


def raise_failures(failed: Mapping[Path, str]) -> None:
    """Raise RunError with every failure, if there is one."""
    if failed:
        each = "; ".join(
            f"{path.parent.name}/{path.stem}: {error}" for path, error in failed.items()
        )
        raise RunError(each if len(failed) == 1 else f"{len(failed)} runs failed: {each}")
