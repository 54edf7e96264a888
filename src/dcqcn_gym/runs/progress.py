"""What commands show while they run: a session's live panel, a campaign's bar, lines, nothing.

Everything goes to standard error; standard output belongs to results.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from dcqcn_gym.core.errors import QUOTED, printable, quote
from dcqcn_gym.runs.campaign import FinishedJob
from dcqcn_gym.runs.log import Line

_BARS = "▁▂▃▄▅▆▇█"
_UTILITY = re.compile(rb'^\{"i":(\d+),.*?"utility":([^,]+),')


class QuietViewer:
    """Shows nothing."""

    def begin(self) -> None:
        """Ignore the start."""

    def interval(self, line: Line, state: dict[str, Any], repeated: bool) -> None:
        """Ignore the interval."""

    def waiting(self, done: int, total: int) -> None:
        """Ignore the wait."""


class NotebookViewer(QuietViewer):
    """A bar in the output of a notebook's cell, as plain HTML: nothing to install."""

    def __init__(self, title: str, intervals: int) -> None:
        self._title, self._intervals = title, intervals
        self._display = importlib.import_module("IPython.display")
        self._shown = self._display.display(self._bar(0, intervals, title), display_id=True)

    def interval(self, line: Line, state: dict[str, Any], repeated: bool) -> None:
        """Move the bar."""
        at = line["i"] + 1
        self._shown.update(self._bar(at, self._intervals, f"{self._title}: interval {at}"))

    def waiting(self, done: int, total: int) -> None:
        """Show how far the runs that judge are."""
        self._shown.update(self._bar(done, total, f"{self._title}: judged by {done}/{total} runs"))

    def _bar(self, done: int, total: int, text: str) -> Any:
        shown = f'<progress max="{total}" value="{done}"></progress> {escape(text)}'
        return self._display.HTML(shown)


def in_notebook() -> bool:
    """Return True in a kernel of Jupyter, without importing anything of it."""
    shell = sys.modules.get("IPython")
    return shell is not None and "IPKernelApp" in getattr(shell.get_ipython(), "config", {})


class _Follower:
    """Reads the utilities of the default run while a worker is still writing its log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._known: dict[int, float] = {}

    def at(self, i: int) -> tuple[int, float] | None:
        """Return (interval, utility) of the newest interval up to ``i``; None if there is none.

        The default run has a worker and no priority, so it may lie some intervals behind.
        """
        if i not in self._known:
            self._read()
        newest = max((k for k in self._known if k <= i), default=None)
        return None if newest is None else (newest, self._known[newest])

    def _read(self) -> None:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:  # not there yet
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            if found := _UTILITY.match(line):
                self._known[int(found[1])] = float(found[2])


class _Figures:
    """The numbers that both viewers show, as text."""

    def __init__(self, default_log: Path, default: Mapping[str, float]) -> None:
        self._follower = _Follower(default_log)
        self._default = default
        self.best = -1.0
        self.history: list[float] = []
        self.line: Line = {}

    def add(self, line: Line) -> None:
        """Take one interval."""
        self.line = line
        if not line["idle"]:
            self.best = max(self.best, line["utility"])
        self.history.append(line["utility"])

    @property
    def simulated(self) -> str:
        """Simulated time at the end of the interval, warm-up included."""
        return f"{self.line['end_ps'] * 1e-9:.1f} ms"

    @property
    def utilities(self) -> tuple[str, str, str]:
        """U now, best so far, and the default's in the same interval (or its newest one)."""
        at = self._follower.at(self.line["i"])
        default = "-" if at is None else f"{at[1]:.4f}"
        if at is not None and at[0] != self.line["i"]:
            default += f" (interval {at[0] + 1})"
        best = f"{self.best:.4f}" if self.best >= 0 else "-"
        now = "idle" if self.line["idle"] else f"{self.line['utility']:.4f}"
        return now, best, default

    @property
    def network(self) -> tuple[str, str, str]:
        """Throughput, mean RTT, pause share of the mean device."""
        line = self.line
        rtt = line["rtt_mean_ps"]
        share = line["device_pause_ps"] / (line["end_ps"] - line["start_ps"])
        return (
            f"{line['throughput_bps'] * 1e-9:.1f} Gb/s",
            "-" if rtt is None else f"{rtt * 1e-6:.1f} us",
            f"{share:.2%}",
        )

    @property
    def changed(self) -> list[str]:
        """Knobs that differ from the default, in NVIDIA's units."""
        setting = self.line["setting"]
        values: Mapping[str, float] = setting.get("cluster", setting)
        return [
            f"{name}={value:g}" for name, value in values.items() if value != self._default[name]
        ]


class PlainViewer:
    """One line per interval, for files and pipes."""

    def __init__(self, console: Console, figures: _Figures, intervals: int, title: str) -> None:
        self._console = console
        self._figures = figures
        self._intervals = intervals
        self._title = title

    def begin(self) -> None:
        """Print what is about to run."""
        self._print(f"{self._title}: warming up")

    def interval(self, line: Line, state: dict[str, Any], repeated: bool) -> None:
        """Print the interval."""
        self._figures.add(line)
        now, best, default = self._figures.utilities
        throughput, rtt, pause = self._figures.network
        mark = " (repeated from the log)" if repeated else ""
        self._print(
            f"interval {line['i'] + 1}/{self._intervals}  t={self._figures.simulated}  U={now}  "
            f"best={best}  default={default}  throughput={throughput}  RTT={rtt}  pause={pause}"
            f"{mark}"
        )

    def waiting(self, done: int, total: int) -> None:
        """Print now and then how far the runs beside the tuned one are."""
        if done not in (0, total // 2, total):
            return
        self._print(f"reference and evaluation runs: {done}/{total} finished")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveViewer:
    """A panel that is redrawn in place, for terminals."""

    def __init__(self, live: Live, figures: _Figures, intervals: int, title: str) -> None:
        self._live = live
        self._figures = figures
        self._title = title
        self._state: dict[str, Any] = {}
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )
        self._task = self._progress.add_task("intervals", total=intervals)
        self._runs = self._progress.add_task("other runs", total=None, visible=False)

    def begin(self) -> None:
        """Draw the panel."""
        title = Text(f"{self._title}   warming up", style="bold")
        self._live.update(Group(title, self._progress))
        self._live.start()

    def interval(self, line: Line, state: dict[str, Any], repeated: bool) -> None:
        """Redraw the panel."""
        self._figures.add(line)
        self._state = state
        self._progress.update(self._task, completed=line["i"] + 1)
        self._live.update(self._panel("repeating the log" if repeated else ""))

    def waiting(self, done: int, total: int) -> None:
        """Show how far the reference and evaluation runs are."""
        self._progress.update(self._runs, completed=done, total=total, visible=True)
        if self._figures.line:
            self._live.update(self._panel("judging the recommended setting"))

    def _panel(self, note: str) -> RenderableType:
        now, best, default = self._figures.utilities
        throughput, rtt, pause = self._figures.network
        grid = Table.grid(padding=(0, 3))
        grid.add_row(
            "utility", f"now [bold]{now}[/]", f"best [bold]{best}[/]", f"default {default}"
        )
        grid.add_row("network", throughput, f"RTT {rtt}", f"pause {pause}")
        shown = _figures_shown(self._state)
        rows: list[RenderableType] = [
            Text(f"{self._title}   simulated {self._figures.simulated}   {note}", style="bold"),
            self._progress,
            grid,
            Text(_sparkline(self._figures.history[-60:]), style="cyan"),
            Text("  ".join(self._figures.changed) or "the default setting"),
        ]
        if shown:
            rows.append(Text("  ".join(shown), style="dim"))
        return Group(*rows)


def _figures_shown(state: Mapping[str, Any]) -> list[str]:
    """Return what a tuner shows of itself; of what is true or not, only the name of what is."""
    words = {k: v for k, v in state.items() if v is not False}
    return [_plain(k) if v is True else f"{_plain(k)} {_plain(v)}" for k, v in words.items()]


def _plain(value: object) -> str:
    """Return what a tuner shows of itself, in few characters that cannot steer the terminal."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return printable(value[:QUOTED]) if isinstance(value, str) else quote(value)


def _sparkline(values: list[float]) -> str:
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[round((v - low) / span * (len(_BARS) - 1))] for v in values)


@contextmanager
def open_viewer(
    title: str,
    intervals: int,
    default_log: Path,
    default: Mapping[str, float],
    *,
    quiet: bool = False,
) -> Iterator[LiveViewer | PlainViewer | QuietViewer]:
    """Yield the viewer that fits: none if quiet, a panel on a terminal, lines elsewhere.

    ``default_log`` is the event log of the default setting on the same traffic, which may still
    be growing; ``default`` its setting in NVIDIA's units.
    """
    if quiet:
        yield QuietViewer()
        return
    console = Console(stderr=True)
    figures = _Figures(default_log, dict(default))
    if not console.is_terminal:
        yield PlainViewer(console, figures, intervals, title)
        return
    live = Live(console=console, refresh_per_second=4)
    try:
        yield LiveViewer(live, figures, intervals, title)
    finally:
        live.stop()


class Meter:
    """How far something is: a bar on a terminal, lines elsewhere; made by :func:`open_meter`."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console, self._bar = console, bar
        self._task = bar.add_task("", total=None)

    def show(self, done: int, total: int | None, text: str, line: str = "") -> None:
        """Move the bar and write ``text`` on it; print ``line``, if any, where there is no bar."""
        self._bar.update(self._task, completed=done, total=total, description=text)
        if line and not self._console.is_terminal:
            self.say(line)

    def say(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def open_meter(*, quiet: bool = False) -> Iterator[Meter]:
    """Yield a meter on standard error, which shows nothing if quiet."""
    console = Console(stderr=True, quiet=quiet)
    columns = (
        # the text may wrap: where all columns keep their line, a narrow terminal cuts the figures
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        yield Meter(console, bar)


@contextmanager
def open_progress(*, quiet: bool = False) -> Iterator[Callable[[FinishedJob[Any]], None]]:
    """Yield what a campaign calls after every job; jobs that failed are named at once."""
    with open_meter(quiet=quiet) as meter:

        def show(done: FinishedJob[Any]) -> None:
            name = done.job.name
            line = "" if done.error is not None else f"{done.count}/{done.total} {name}"
            meter.show(done.count, done.total, name, line)
            if done.error is not None:
                meter.say(f"{name} failed: {done.error}")

        yield show
