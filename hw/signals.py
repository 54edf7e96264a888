"""Ctrl-C waits until calls to agents have been answered: gRPC does not survive it in the middle."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_held() -> Iterator[None]:
    """Let Ctrl-C, and a kill that somebody handles, do their work at the end of the block.

    An exception that a signal raises inside gRPC can leave a connection on which no call ever ends,
    the one that takes a change back included. Calls have deadlines, so the wait has an end.
    """
    if threading.current_thread() is not threading.main_thread():  # signals come to that one alone
        yield
        return
    came: list[int] = []
    held = {n: handler for n in _ENDS if callable(handler := signal.getsignal(n))}
    for number in held:
        signal.signal(number, lambda found, _: came.append(found))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for first in came[:1]:
            held[signal.Signals(first)](first, None)
