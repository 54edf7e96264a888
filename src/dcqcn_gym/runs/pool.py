"""Runs in worker processes: nothing of them outlives the program, nothing of them answers Ctrl-C.

The number of workers never changes a result: a run is one process with its own seed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection
from typing import ParamSpec, TypeVar

_BACKGROUND = 10
_CLOSING_S = 10.0

P = ParamSpec("P")
T = TypeVar("T")


def cpu_count() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


class _Pool(ProcessPoolExecutor):
    """An executor whose workers never see Ctrl-C, not even while they start."""

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a call; a worker born here inherits the blocked signal."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(function, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def worker_pool(workers: int | None = None) -> Iterator[Executor]:
    """Yield an executor of fresh worker processes; leave by an error and they are stopped."""
    executor = _Pool(
        max_workers=cpu_count() if workers is None else workers,
        mp_context=multiprocessing.get_context("spawn"),  # a fork would copy a threaded parent
        initializer=_prepare_worker,
    )
    try:
        yield executor
    except BaseException:
        processes = list((getattr(executor, "_processes", None) or {}).values())
        manager = getattr(executor, "_executor_manager_thread", None)
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        if manager is not None:  # else Python's exit may wake it on a pipe that it is closing
            manager.join(_CLOSING_S)
        raise
    else:
        executor.shutdown()


def step_back() -> None:
    """Lower a worker's priority below the program's own; more calls change nothing.

    Does nothing in a program's own process, where a thread pool works.
    """
    if multiprocessing.parent_process() is not None:
        os.nice(max(0, _BACKGROUND - os.nice(0)))


def _prepare_worker() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent is gone, also by kill -9, and go as well."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
