"""What a training shows while it runs, on standard error: a bar, plain lines, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["BarViewer", "LineViewer", "SilentViewer", "open_train_viewer"]

LINES = 20
"""Plain lines in a whole training."""


class SilentViewer:
    """Shows nothing."""

    def begin(self, done: int, notes: list[str]) -> None:
        """Ignore the start."""

    def step(self, done: int, utility: float) -> None:
        """Ignore the step."""


class LineViewer:
    """A line now and then, for files and pipes."""

    def __init__(self, console: Console, title: str, total: int) -> None:
        self._console, self._title, self._total = console, title, total
        self._shown, self._start, self._since = 0, 0, time.perf_counter()

    def begin(self, done: int, notes: list[str]) -> None:
        """Say what is about to run."""
        self._shown = self._start = done
        self._since = time.perf_counter()
        self._print(f"{self._title}: {done} of {self._total} steps done")
        for note in notes:
            self._print(note)

    def step(self, done: int, utility: float) -> None:
        """Print a line for every twentieth of the budget."""
        if (done - self._shown) * LINES < self._total and done < self._total:
            return
        if self._shown >= self._total:
            return
        self._shown = done
        rate = (done - self._start) / max(time.perf_counter() - self._since, 1e-9)
        self._print(f"step {done}/{self._total}  utility={utility:.4f}  {rate:.0f} steps/s")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class BarViewer:
    """A progress bar, for terminals."""

    def __init__(self, progress: Progress, title: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(escape(title), total=total, utility="-", rate="")
        self._start, self._since = 0, time.perf_counter()

    def begin(self, done: int, notes: list[str]) -> None:
        """Draw the bar."""
        self._start, self._since = done, time.perf_counter()
        for note in notes:
            self._progress.console.print(note, markup=False)
        self._progress.start()
        self._progress.update(self._task, completed=done)

    def step(self, done: int, utility: float) -> None:
        """Move the bar."""
        rate = (done - self._start) / max(time.perf_counter() - self._since, 1e-9)
        self._progress.update(
            self._task, completed=done, utility=f"{utility:.4f}", rate=f"{rate:.0f} steps/s"
        )


@contextmanager
def open_train_viewer(
    title: str, total: int, *, quiet: bool = False
) -> Iterator[BarViewer | LineViewer | SilentViewer]:
    """Yield the viewer that fits: none if quiet, a bar on a terminal, lines elsewhere."""
    if quiet:
        yield SilentViewer()
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield LineViewer(console, title, total)
        return
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("utility {task.fields[utility]}"), TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(), TimeRemainingColumn(), console=console,
    )  # fmt: skip
    try:
        yield BarViewer(progress, title, total)
    finally:
        progress.stop()
