"""How often a device brings its counters up to date: raised for a run, given back after it.

What the device did before is in the journal first, so that an agent that is killed in a run
gives it back when it starts again.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.drivers.base import Driver
from dcqcn_gym.hw.journal import Journal


class Cadence:
    """That of one device."""

    def __init__(self, driver: Driver, journal: Journal, lock: AbstractContextManager[Any]) -> None:
        """``lock`` is that of the device's guard: both write the journal."""
        self._driver, self._journal, self._lock = driver, journal, lock

    def prepare(self, interval_ms: float) -> None:
        """Get ready to report every so often; DeviceError if the device is slower."""
        with self._lock:
            before = self._driver.cadence()
            if before and not self._changed():
                self._note("prepared", before)
            self._driver.prepare(interval_ms)

    def release(self) -> None:
        """Give back what :meth:`prepare` changed, whoever did; a device that is away is left."""
        with self._lock, suppress(Exception):  # of figures alone: no setting depends on it
            before = self._changed()
            if before:
                self._driver.release(before)
                self._note("released", before)

    def _changed(self) -> str:
        """Return what was before, as the journal has it; empty if nothing is changed."""
        last = [r for r in self._journal.records if r.get("event") in ("prepared", "released")]
        return str(last[-1]["cadence"]) if last and last[-1]["event"] == "prepared" else ""

    def _note(self, event: str, before: str) -> None:
        record = {"event": event, "name": "", "who": "agent", "why": "counters", "cadence": before}
        try:
            self._journal.append({**record, "unix_s": time.time()})
        except DeviceError:
            if event == "prepared":
                raise
