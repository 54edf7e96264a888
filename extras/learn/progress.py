"""What a training shows while it runs, on standard error: a bar, plain lines, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from dcqcn_gym.runs.progress import Meter, open_meter

LINES = 20
"""Plain lines in a whole training."""


class SilentViewer:
    """What a training calls to be shown; this one shows nothing."""

    def begin(self, done: int, notes: list[str]) -> None:
        """Training starts, or goes on after ``done`` steps."""

    def step(self, done: int, utility: float) -> None:
        """So many steps are done; ``utility`` is the mean over the last of them."""


class _MeterViewer(SilentViewer):
    """Shows utility and speed; where there is no bar, a line for every twentieth of the budget."""

    def __init__(self, meter: Meter, title: str, total: int) -> None:
        self._meter, self._title, self._total = meter, title, total

    def begin(self, done: int, notes: list[str]) -> None:
        """Say what is about to run."""
        self._shown = self._start = done
        self._since = time.perf_counter()
        line = f"{self._title}: {done} of {self._total} steps done"
        self._meter.show(done, self._total, self._title, line)
        for note in notes:
            self._meter.say(note)

    def step(self, done: int, utility: float) -> None:
        """Show the step."""
        rate = (done - self._start) / max(time.perf_counter() - self._since, 1e-9)
        last = self._shown < self._total <= done
        due = last or (done - self._shown) * LINES >= self._total > self._shown
        if due:
            self._shown = done
        line = f"step {done}/{self._total}  utility={utility:.4f}  {rate:.0f} steps/s"
        text = f"{self._title}  utility {utility:.4f}  {rate:.0f} steps/s"
        self._meter.show(done, self._total, text, line if due else "")


@contextmanager
def open_train_viewer(title: str, total: int, *, quiet: bool = False) -> Iterator[SilentViewer]:
    """Yield the viewer that fits: none if quiet, a bar on a terminal, lines elsewhere."""
    with open_meter(quiet=quiet) as meter:
        yield SilentViewer() if quiet else _MeterViewer(meter, title, total)
