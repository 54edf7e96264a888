"""The protocol: which runs a suite asks of a row, with which seeds, and where their logs lie.

Every row meets the same traffic: the seed of a run follows from suite, scenario and repetition. A
tuner's own draws come from another seed, so that it cannot know the traffic. After its online run
the setting that it recommends runs on fresh traffic, which is again the same for all rows.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dcqcn_gym
from dcqcn_gym.benchmarks.board.draw import seed, shuffled
from dcqcn_gym.benchmarks.board.row_text import asked_rows
from dcqcn_gym.benchmarks.board.suite import Entry, Suite, load_suite
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, RunError, quote
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.sums import total
from dcqcn_gym.runs import campaign
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.log import write_atomically, write_json
from dcqcn_gym.runs.loop import Timing
from dcqcn_gym.runs.pool import cpu_count
from dcqcn_gym.runs.recorded import Ran, RunJob
from dcqcn_gym.runs.rows import Row, unique
from dcqcn_gym.runs.tuner_host import Hosting

__all__ = [
    "BASELINE",
    "BOARD_FILE",
    "CAMPAIGNS_FILE",
    "Attempt",
    "Board",
    "cut",
    "open_board",
    "start_board",
]

BASELINE = "default"
"""The row that every other is scored against; it always runs."""

BOARD_FILE = "board.json"
RUNS_FOLDER = "runs"
CAMPAIGNS_FILE = "timing-campaigns.json"
"""Seconds of each call that made runs; no promise covers it."""


@dataclass(frozen=True)
class Attempt:
    """One repetition of a row on a scenario: the online run and what follows from it.

    With a ``salt``, its traffic and its tuner's draws are others than those of the suite.
    """

    suite: Suite
    entry: Entry
    row: Row
    repetition: int
    folder: Path
    salt: str = ""
    hosting: Hosting = field(default_factory=Hosting)

    @property
    def title(self) -> str:
        """What is said of it while it runs."""
        return f"{self.row.name} on {self.entry.name}, repetition {self.repetition}"

    @property
    def online(self) -> RunJob:
        """The run in which the row tunes."""
        words = self._words
        spec = self.row.spec(
            self.suite.scenarios[self.entry.name],
            seed(*words),
            self.suite.file.intervals,
            "native",
        )
        spec = replace(spec, tuner_seed=seed(*words, self.row.name), hosting=self.hosting)
        return RunJob(spec, self._log("online"), self.title, self._log("timing"))

    def final(self, setting: DeviceSetting) -> RunJob:
        """Return the run of what the online run recommends, on fresh traffic."""
        fresh = seed(*self._words, "final")
        spec = self.online.spec.with_setting(setting, fresh, self.suite.file.final_intervals)
        return RunJob(spec, self._log("final"), f"{self.title}, final", self._log("timing-final"))

    @property
    def timings(self) -> tuple[Path, Path]:
        """The files of seconds, which no promise covers, of the online run and of the final one."""
        return self._log("timing"), self._log("timing-final")

    @property
    def logs(self) -> tuple[Path, Path]:
        """The logs of the online run and of the final one."""
        return self._log("online"), self._log("final")

    @property
    def _words(self) -> tuple[str | int, ...]:
        """What the seeds follow from."""
        words = (self.suite.file.name, self.entry.name, self.repetition)
        return (*words, self.salt) if self.salt else words

    def _log(self, what: str) -> Path:
        kind = "json" if what.startswith("timing") else "jsonl"
        return self.folder / f"{what}-{self.repetition:02d}.{kind}"


@dataclass(frozen=True)
class Board:
    """A folder of runs: a suite, the rows in it, and how often each row is repeated.

    ``salt`` and ``hosting`` are a verifier's: other seeds, and the sandbox of a plug-in.
    """

    suite: Suite
    rows: Sequence[Row]
    out: Path
    repetitions: int
    slow: frozenset[str] = frozenset()
    """Names of the rows that run ``slow_repetitions`` times, the first of them all."""
    salt: str = ""
    hosting: Hosting = field(default_factory=Hosting)
    share: tuple[int, int] = (0, 1)
    """(i, n): of the runs only every n-th, from the i-th on, is made here."""

    @property
    def has_logs(self) -> bool:
        """Tell whether any run was made here; a kept board has none."""
        return (self.out / RUNS_FOLDER).is_dir()

    def repeated(self, row: str) -> int:
        """Return how often the row of a name runs on every scenario."""
        fewer = self.suite.file.slow_repetitions
        return min(fewer, self.repetitions) if row in self.slow else self.repetitions

    def attempts(self, *rows: Row) -> list[Attempt]:
        """Return those of some rows, by default all of them.

        They come repetition by repetition, so that a board cut short is balanced.
        """
        runs = self.out / RUNS_FOLDER
        return [
            Attempt(
                self.suite, entry, row, repetition, runs / row.name / entry.name, self.salt,
                self.hosting,
            )
            for repetition in range(self.repetitions)
            for entry in self.suite.file.scenarios
            for row in rows or self.rows
            if repetition < self.repeated(row.name)
        ]  # fmt: skip

    @property
    def identity(self) -> tuple[str, int, tuple[int, int]]:
        """What two boards in one folder have to share."""
        return self.suite.digest, self.repetitions, self.share

    @property
    def own_attempts(self) -> list[Attempt]:
        """Those that are made here: all, or a share of them in which no row stands out."""
        first, count = self.share
        if count == 1:
            return self.attempts()
        return shuffled(self.attempts(), self.suite.file.name, "share")[first::count]

    def header(self) -> dict[str, Any]:
        """Return what ``board.json`` holds."""
        return {
            "suite": self.suite.given,
            "suite_digest": self.suite.digest,
            "version": dcqcn_gym.__version__,
            "repetitions": self.repetitions,
            **({"share": list(self.share)} if self.share != (0, 1) else {}),
            "rows": [
                {
                    "tuner": row.tuner,
                    "tuner_args": dict(row.tuner_args),
                    "changes": dict(row.changes),
                    "name": row.name,
                    "slow": row.name in self.slow,
                }
                for row in self.rows
            ],
        }

    def carry_out(
        self,
        *,
        workers: int | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> dict[Path, str]:
        """Make every log that is missing or unfinished; return the error of each that failed."""
        attempts = self.own_attempts
        if self.salt:  # a plug-in shall not know by its turn what it meets
            attempts = shuffled(attempts, self.salt, "order")
        by_log = {attempt.online.path: attempt for attempt in attempts}
        for attempt in attempts:
            attempt.folder.mkdir(parents=True, exist_ok=True)

        clock = _Clock()

        def then(job: RunJob, ran: Ran) -> list[RunJob]:
            clock.count(ran.timing)
            attempt = by_log.get(job.path)
            return [] if attempt is None else [attempt.final(ran.recommended)]

        failed = campaign.carry_out(
            [attempt.online for attempt in attempts],
            workers=workers,
            executor=executor,
            then=then,
            expected=2 * len(attempts),
            progress=progress,
        )
        own = workers or cpu_count() if executor is None else None
        clock.write(self.out / CAMPAIGNS_FILE, own)
        return failed


class _Clock:
    """Seconds of the runs that one call makes, for ``bench status --cost``."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._runs: list[Timing] = []

    def count(self, timing: Timing) -> None:
        """Add a run, unless it was there already."""
        if timing.intervals:
            self._runs.append(timing)

    def write(self, path: Path, workers: int | None) -> None:
        """Add what was made to the file of earlier calls; None: by an executor from outside."""
        if not self._runs:
            return
        before = parse_json(read_text(path)) if path.exists() else []
        now = {
            "workers": workers,
            "runs": len(self._runs),
            "wall_s": time.perf_counter() - self._began,
            "run_wall_s": total(timing.wall_s for timing in self._runs),
            "run_cpu_s": total(timing.cpu_s for timing in self._runs),
        }
        write_atomically(path, (json.dumps([*before, now], indent=2) + "\n").encode())


def start_board(
    suite: str, tuners: Iterable[str], out: Path, *, slow: Iterable[str] = (),
    repetitions: int | None = None, share: tuple[int, int] = (0, 1), force: bool = False,
) -> Board:  # fmt: skip
    """Check everything that can be wrong, then make the folder and its ``board.json``.

    A row is a tuner's name or ``TUNER@SCHEME``; those also in ``slow`` are repeated less often.
    A folder that holds a board of the same suite takes further rows; ``force`` removes its runs.
    Raises ConfigError, UnknownNameError or RunError; before that nothing is written.
    """
    found = load_suite(suite)
    asked = asked_rows([BASELINE, *tuners], slow)
    rows = [one.row for one in asked]
    less = frozenset(one.row.name for one in asked if one.slow)
    board = Board(found, rows, out, repetitions or found.file.repetitions, less, share=share)
    if (out / BOARD_FILE).exists() and not force:
        old = open_board(out)
        if old.identity != board.identity:
            part = "" if old.share == (0, 1) else f", share {old.share[0]} of {old.share[1]}"
            raise RunError(
                f"{out} holds suite {old.suite.file.name!r} with {old.repetitions} repetitions"
                f"{part}; give another --out, or --force to replace it"
            )
        known = {row.name for row in old.rows}
        more = [row for row in rows if row.name not in known]
        added = frozenset(row.name for row in more) & less
        board = replace(board, rows=[*old.rows, *more], slow=old.slow | added)
    unique("row", [(row.tuner, row.name, (row.tuner, row.changes)) for row in board.rows])
    for row in board.rows:
        Attempt(found, found.file.scenarios[0], row, 0, out).online.spec.check()
    if force and (out / RUNS_FOLDER).is_dir():
        shutil.rmtree(out / RUNS_FOLDER)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / BOARD_FILE, board.header())
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
    return board


def cut(board: Board, repetitions: int | None) -> Board:
    """Return a board with its first repetitions alone; None: all of them.

    Repetitions are made in turn over all scenarios and rows, so a board that was cut short is
    whole up to one of them. Raises ConfigError for more than there are.
    """
    if repetitions is not None and repetitions > board.repetitions:
        raise ConfigError(
            f"{board.out} has {board.repetitions} repetitions, so there are no {repetitions}; "
            "give fewer"
        )
    return board if repetitions is None else replace(board, repetitions=repetitions)


def open_board(out: Path) -> Board:
    """Return the board that a folder holds; ConfigError or RunError if there is none."""
    path = out / BOARD_FILE
    text = read_text(path)
    try:
        data = parse_json(text)
        suite = load_suite(data["suite"])
        rows = [
            Row(r["tuner"], r["tuner_args"], r.get("changes", {}), r["name"]) for r in data["rows"]
        ]
        slow = frozenset(str(r["name"]) for r in data["rows"] if r.get("slow", False))
        first, count = data.get("share", (0, 1))
        share = (int(first), int(count))
        board = Board(suite, rows, out, int(data["repetitions"]), slow, share=share)
    except DcqcnGymError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is not the file of a board: {quote(str(error))}") from None
    if data.get("suite_digest") != suite.digest:
        raise RunError(
            f"{path} was made with another {suite.file.name!r}: its digest begins with "
            f"{str(data.get('suite_digest'))[:12]}, now it is {suite.digest[:12]}"
        )
    return board
