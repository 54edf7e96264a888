"""Jobs on the workers of a Dask cluster (extra ``dask``) that see the same files.

Every worker starts a job in the folder of the program, so that relative paths and plug-ins mean
the same there. A job whose worker dies is given to another one, which continues its log.
"""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dcqcn_gym.core.errors import MissingExtraError, RunError, in_one_line, quote
from dcqcn_gym.core.version import code_versions, version_difference
from dcqcn_gym.runs.campaign import ExecutorLost

PATIENCE_S = 20
"""How long a scheduler may take to answer and to have a worker."""
FEWEST_AT_ONCE = 16
"""Jobs that are handed over at a time even if there are few workers: more may join."""

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def dask_executor(address: str, folder: Path) -> Iterator[tuple[Executor, int]]:
    """Yield an executor on the workers of a scheduler, and how many jobs to hand over at a time.

    ``folder`` is where the jobs leave their files. Raises MissingExtraError without the extra, and
    RunError if no scheduler answers, it has no worker, or a worker has another version or does not
    see the folder.
    """
    try:
        dask = importlib.import_module("distributed")
    except ImportError:
        raise MissingExtraError("--dask", "dask") from None
    try:
        client = dask.Client(address, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise RunError(
            f"no Dask scheduler answers at {quote(address)}: {in_one_line(error)}; "
            "`dask scheduler` starts one and prints its address"
        ) from None
    with client:
        _check_workers(client, address, folder)
        threads = len(client.nthreads())
        executor = _DaskExecutor(client)
        try:
            yield executor, max(FEWEST_AT_ONCE, threads)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        executor.shutdown()


def _check_workers(client: Any, address: str, folder: Path) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE_S)
    except TimeoutError:
        raise RunError(
            f"the Dask scheduler at {address} has no worker; "
            f"`dask worker {address} --nworkers 2 --nthreads 1` starts two"
        ) from None
    token = folder / f".dcqcn-gym-{uuid.uuid4().hex}"
    token.touch()
    try:
        answers = client.run(_seen, str(token.resolve()))
    finally:
        token.unlink()
    for worker, (versions, seen) in answers.items():
        if differs := version_difference(versions):
            raise RunError(
                f"Dask worker {worker} has other code: {differs}; install the same there"
            )
        if not seen:
            raise RunError(
                f"Dask worker {worker} does not see {folder}; workers need the same file system"
            )


def _seen(token: str) -> tuple[dict[str, str], bool]:
    """Return, on a worker, its versions and whether it sees a file."""
    return code_versions(), Path(token).exists()


def _in_folder(folder: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on a worker, in the folder of the program that asked for it."""
    os.chdir(folder)
    return function(*args, **kwargs)


class _DaskExecutor(Executor):
    """Dask's own executor, with errors that say what to do."""

    def __init__(self, client: Any) -> None:
        self._inner = client.get_executor(pure=False)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a call; it starts again on another worker if its own dies."""
        inner = self._inner.submit(_in_folder, os.getcwd(), fn, *args, **kwargs)
        outer: Future[T] = Future()
        inner.add_done_callback(lambda done: _pass_on(done, outer))
        outer.add_done_callback(lambda given: inner.cancel() if given.cancelled() else None)
        return outer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Give up what was not begun, or wait for everything."""
        self._inner.shutdown(wait=wait and not cancel_futures)


def _pass_on(done: Future[Any], outer: Future[Any]) -> None:
    with suppress(InvalidStateError):  # given up in the meantime
        try:
            outer.set_result(done.result())
        except CancelledError:
            outer.set_exception(
                ExecutorLost(
                    "the Dask scheduler went away; what is finished is kept: the same command "
                    "continues it"
                )
            )
        except Exception as error:
            outer.set_exception(RunError(_words(error)))


def _words(error: Exception) -> str:
    if isinstance(error, importlib.import_module("distributed").KilledWorker):
        return "every Dask worker that took it died (out of memory?)"
    return in_one_line(error)
