"""The protocol: which runs a suite asks of a row, with which seeds, and where their logs lie.

Every row meets the same traffic: the seed of a run follows from suite, scenario and repetition. A
tuner's own draws come from another seed, so that it cannot know the traffic. After its online run
the setting that it recommends runs on fresh traffic, which is again the same for all rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dcqcn_gym
from dcqcn_gym.benchmarks.board.draw import seed
from dcqcn_gym.benchmarks.board.row_text import asked_rows
from dcqcn_gym.benchmarks.board.suite import Entry, Suite, load_suite
from dcqcn_gym.core.errors import DcqcnGymError, RunError, quote
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.runs import campaign
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.recorded import Ran, RunJob
from dcqcn_gym.runs.rows import Row, unique

__all__ = ["BASELINE", "Attempt", "Board", "open_board", "start_board"]

BASELINE = "default"
"""The row that every other is scored against; it always runs."""

BOARD_FILE = "board.json"


@dataclass(frozen=True)
class Attempt:
    """One repetition of a row on a scenario: the online run and what follows from it."""

    suite: Suite
    entry: Entry
    row: Row
    repetition: int
    folder: Path

    @property
    def title(self) -> str:
        """What is said of it while it runs."""
        return f"{self.row.name} on {self.entry.name}, repetition {self.repetition}"

    @property
    def online(self) -> RunJob:
        """The run in which the row tunes."""
        words = (self.suite.file.name, self.entry.name, self.repetition)
        spec = self.row.spec(
            self.suite.scenarios[self.entry.name],
            seed(*words),
            self.suite.file.intervals,
            "native",
        )
        spec = replace(spec, tuner_seed=seed(*words, self.row.name))
        return RunJob(spec, self._log("online"), self.title, self._log("timing"))

    def final(self, setting: DeviceSetting) -> RunJob:
        """Return the run of what the online run recommends, on fresh traffic."""
        fresh = seed(self.suite.file.name, self.entry.name, self.repetition, "final")
        spec = self.online.spec.with_setting(setting, fresh, self.suite.file.final_intervals)
        return RunJob(spec, self._log("final"), f"{self.title}, final")

    @property
    def logs(self) -> tuple[Path, Path]:
        """The logs of the online run and of the final one."""
        return self._log("online"), self._log("final")

    def _log(self, what: str) -> Path:
        kind = "json" if what == "timing" else "jsonl"
        return self.folder / f"{what}-{self.repetition:02d}.{kind}"


@dataclass(frozen=True)
class Board:
    """A folder of runs: a suite, the rows in it, and how often each row is repeated."""

    suite: Suite
    rows: Sequence[Row]
    out: Path
    repetitions: int
    slow: frozenset[str] = frozenset()
    """Names of the rows that run ``slow_repetitions`` times, the first of them all."""

    def repeated(self, row: str) -> int:
        """Return how often the row of a name runs on every scenario."""
        fewer = self.suite.file.slow_repetitions
        return min(fewer, self.repetitions) if row in self.slow else self.repetitions

    def attempts(self, *rows: Row) -> list[Attempt]:
        """Return those of some rows, by default all of them.

        They come repetition by repetition, so that a board cut short is balanced.
        """
        return [
            Attempt(self.suite, entry, row, repetition, self.out / "runs" / row.name / entry.name)
            for repetition in range(self.repetitions)
            for entry in self.suite.file.scenarios
            for row in rows or self.rows
            if repetition < self.repeated(row.name)
        ]

    def header(self) -> dict[str, Any]:
        """Return what ``board.json`` holds."""
        return {
            "suite": self.suite.given,
            "suite_digest": self.suite.digest,
            "version": dcqcn_gym.__version__,
            "repetitions": self.repetitions,
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
        attempts = self.attempts()
        by_log = {attempt.online.path: attempt for attempt in attempts}
        for attempt in attempts:
            attempt.folder.mkdir(parents=True, exist_ok=True)

        def then(job: RunJob, ran: Ran) -> list[RunJob]:
            attempt = by_log.get(job.path)
            return [] if attempt is None else [attempt.final(ran.recommended)]

        return campaign.carry_out(
            [attempt.online for attempt in attempts],
            workers=workers,
            executor=executor,
            then=then,
            expected=2 * len(attempts),
            progress=progress,
        )


def start_board(
    suite: str, tuners: Iterable[str], out: Path, *, slow: Iterable[str] = (),
    repetitions: int | None = None, force: bool = False,
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
    board = Board(found, rows, out, repetitions or found.file.repetitions, less)
    if (out / BOARD_FILE).exists() and not force:
        old = open_board(out)
        if old.suite.digest != found.digest or old.repetitions != board.repetitions:
            raise RunError(
                f"{out} holds suite {old.suite.file.name!r} with {old.repetitions} repetitions; "
                "give another --out, or --force to replace it"
            )
        known = {row.name for row in old.rows}
        more = [row for row in rows if row.name not in known]
        added = frozenset(row.name for row in more) & less
        board = replace(board, rows=[*old.rows, *more], slow=old.slow | added)
    unique("row", [(row.tuner, row.name, (row.tuner, row.changes)) for row in board.rows])
    for row in board.rows:
        Attempt(found, found.file.scenarios[0], row, 0, out).online.spec.check()
    if force and (out / "runs").is_dir():
        shutil.rmtree(out / "runs")
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / BOARD_FILE, board.header())
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
    return board


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
        board = Board(suite, rows, out, int(data["repetitions"]), slow)
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
