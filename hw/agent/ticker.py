"""One thread that keeps the time of every agent in this process, a few times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

TICK_S = 0.2


class Ticker:
    """Calls everything that was added every :data:`TICK_S`; runs while there is anything."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []
        self._pass = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, call: Callable[[], None]) -> None:
        """Call it from now on."""
        with self._pass:
            self._calls.append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="ticker")
                self._thread.start()

    def remove(self, call: Callable[[], None]) -> None:
        """Never call it again once this returns; nothing happens if it was not added."""
        with self._pass, suppress(ValueError):
            self._calls.remove(call)

    def call_all(self) -> None:
        """Call everything once, whatever one of them raises, a plug-in's errors included."""
        for call in self._calls:
            with suppress(BaseException):  # time goes on: it is called again
                call()

    def _run(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._pass:
                self.call_all()
                if not self._calls:
                    self._thread = None
                    return
