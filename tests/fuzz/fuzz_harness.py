"""Random bad input: what every fuzzer shares.

A fuzzer is a function of a random stream and an empty folder. It makes one input and uses it as a
person's command would. A :class:`DcqcnGymError` of one line is an answer, and so is success;
anything else that comes out is a failure. Case ``i`` of a seed is always the same.
"""

from __future__ import annotations

import resource
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.tally import BalanceError

Fuzzer = Callable[[Random, Path], None]

MOST_CPU_S = 20
MOST_BYTES = 2**30

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.0, -0.0, 0.5, 1e-300,
    5e-324, 1e308, float("inf"), float("-inf"), float("nan"), "", "x", "nan", "1e400", "[/x]",
    "\x1b[31mred", "../../../escape", "<script>alert(1)</script>", "y" * 5000, "\u202e", "\x00", [],
    [1], [None], [[1], [2, 3]], {}, {"a": 1}, {"cluster": 3}, {"cluster": {}}, b"bytes", 1j, object,
)  # fmt: skip
"""Values that nobody expects."""


@dataclass
class Outcome:
    """How the cases ended; a failure is (number of the case, its traceback)."""

    accepted: int = 0
    refused: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)


def fuzz(name: str, fuzzer: Fuzzer, cases: Iterable[int], seed: int = 1) -> Outcome:
    """Run these cases of a fuzzer."""
    outcome = Outcome()
    for i in cases:
        folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
        try:
            with _bounded():
                fuzzer(Random(f"{name} {seed} {i}"), folder)
            outcome.accepted += 1
        except BalanceError as error:
            outcome.failures.append((i, str(error)))
        except DcqcnGymError as error:
            problem = _problem(str(error))
            if problem:
                outcome.failures.append((i, f"{problem}: {str(error)[:300]!r}"))
            outcome.refused += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome.failures.append((i, traceback.format_exc(limit=-6)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return outcome


@contextmanager
def _bounded() -> Iterator[None]:
    """Let a case have :data:`MOST_CPU_S` of CPU time and :data:`MOST_BYTES` more memory.

    A case beyond either is a failure: TimeoutError or MemoryError.
    """

    def over(number: int, frame: object) -> None:
        raise TimeoutError(f"more than {MOST_CPU_S} s of CPU time")

    limit = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES
    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_S)
    resource.setrlimit(resource.RLIMIT_AS, (most, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _problem(text: str) -> str:
    """Return what is wrong with a message, or an empty string."""
    if not text.strip():
        return "an empty message"
    if "\n" in text:
        return "a message of several lines"
    return "a message of more than 2000 characters" if len(text) > 2000 else ""


def damage(random: Random, data: bytes) -> bytes:
    """Return the bytes cut, or with a few of them flipped, doubled, removed or replaced."""
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if not out:
            break
        at = random.randrange(len(out))
        how = random.randrange(5)
        if how == 0:
            out[at] ^= 1 << random.randrange(8)
        elif how == 1:
            del out[at : at + random.choice((1, 4, 64))]
        elif how == 2:
            out[at:at] = out[at : at + random.choice((1, 16, 256))]
        elif how == 3:
            out[at : at + 1] = random.choice((b"\x00", b"\xff\xfe", b"\n", b'"', b"[", b"="))
        else:
            del out[at:]
    return bytes(out)
