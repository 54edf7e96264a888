"""The protocol: which runs a suite asks of an entry, with which seeds, and where their logs lie.

Every entry meets the same traffic: the seed of a run follows from suite, scenario and repetition. A
tuner's own draws come from another seed, so that it cannot know the traffic. After its online run
the setting that it recommends runs on fresh traffic, which is again the same for all entries.

Seeds have 63 bits and the tuner's holds no name: neither can be tried out, and another name draws
nothing anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dcqcn_gym.benchmarks.leaderboard.entry_text import asked_entries
from dcqcn_gym.benchmarks.leaderboard.leaderboard_file import LeaderboardFile
from dcqcn_gym.benchmarks.leaderboard.salted_choices import seed, shuffled
from dcqcn_gym.benchmarks.leaderboard.suite import Suite, SuiteScenario, load_suite
from dcqcn_gym.benchmarks.leaderboard.tuner_host import Enclosure
from dcqcn_gym.core.config import load_json, validate
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.entries import Entry, changed_scenario, check_runs, unique
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.results import tuner_digest
from dcqcn_gym.runs.trials import carry_out_all
from dcqcn_gym.tuners import TUNERS

BASELINE = "default"
"""The entry that every other is scored against; it always runs."""

LEADERBOARD_FILE = "leaderboard.json"
RUNS_FOLDER = "runs"


@dataclass(frozen=True)
class Attempt:
    """One repetition of an entry on a scenario: the online run and what follows from it.

    With a ``salt``, its traffic and its tuner's draws are others than those of the suite.
    """

    suite: Suite
    scenario: SuiteScenario
    entry: Entry
    repetition: int
    folder: Path
    salt: str = ""
    hosting: Hosting = field(default_factory=Hosting)

    @property
    def title(self) -> str:
        """What is said of it while it runs."""
        return f"{self.entry.name} on {self.scenario.name}, repetition {self.repetition}"

    @property
    def tuned(self) -> RunJob:
        """The run in which the entry tunes."""
        spec = self.entry.spec(
            self.suite.scenarios[self.scenario.name],
            self._seed("online"),
            self.suite.file.intervals,
            "native",
        )
        spec = replace(spec, tuner_seed=self._seed("tuner"), hosting=self.hosting)
        return RunJob(spec, self._log("online"), self.title, self._log("timing"))

    def final(self, setting: DeviceSetting) -> RunJob:
        """Return the run of what the online run recommends, on fresh traffic."""
        spec = self.tuned.spec.with_setting(
            setting, self._seed("final"), self.suite.file.final_intervals
        )
        return RunJob(spec, self._log("final"), f"{self.title}, final", self._log("timing-final"))

    def judged(self, setting: DeviceSetting) -> list[RunJob]:
        """Return the final run as :mod:`~dcqcn_gym.runs.trials` asks for it."""
        return [self.final(setting)]

    @property
    def fresh(self) -> list[Path]:
        """The log of the final run."""
        return [self._log("final")]

    @property
    def timings(self) -> tuple[Path, Path]:
        """The files of seconds, which no promise covers, of the online run and of the final one."""
        return self._log("timing"), self._log("timing-final")

    @property
    def logs(self) -> tuple[Path, Path]:
        """The logs of the online run and of the final one."""
        return self._log("online"), self._log("final")

    def _seed(self, what: Literal["online", "final", "tuner"]) -> int:
        """Return the seed of one use; the tuner's is of another stream than the traffic's."""
        words = (self.suite.file.name, self.scenario.name, self.repetition)
        return seed(what, *words, self.salt)

    def _log(self, what: str) -> Path:
        kind = "json" if what.startswith("timing") else "jsonl"
        return self.folder / f"{what}-{self.repetition:02d}.{kind}"


@dataclass(frozen=True)
class Guest:
    """An entry of others in a season: its frozen code, and what its authors say of it."""

    enclosure: Enclosure
    category: str
    authors: str
    licence: str
    link: str
    files_sha256: str


@dataclass(frozen=True)
class Leaderboard:
    """A folder of runs: a suite, the entries in it, and how often each entry is repeated.

    ``salt`` and ``hosting`` are a verifier's: other seeds, and the sandbox of a plug-in.
    """

    suite: Suite
    entries: Sequence[Entry]
    out: Path
    repetitions: int
    slow: frozenset[str] = frozenset()
    """Names of the entries that run ``slow_repetitions`` times, the first of them all."""
    salt: str = ""
    hosting: Hosting = field(default_factory=Hosting)
    guests: Mapping[str, Guest] = field(default_factory=dict)
    """Entries of others by name: each runs in a sandbox of its own."""
    code: Mapping[str, str | None] = field(default_factory=dict)
    """Of plug-ins, by their entries' names, the digest of the file when its runs began."""

    @property
    def has_logs(self) -> bool:
        """Tell whether any run was made here; a committed leaderboard has none."""
        return (self.out / RUNS_FOLDER).is_dir()

    def repeated(self, entry: str) -> int:
        """Return how often the entry of a name runs on every scenario."""
        fewer = self.suite.file.slow_repetitions
        return min(fewer, self.repetitions) if entry in self.slow else self.repetitions

    def attempts(self, *entries: Entry) -> list[Attempt]:
        """Return those of some entries, by default all of them.

        They come repetition by repetition, so that a leaderboard cut short is balanced.
        """
        runs = self.out / RUNS_FOLDER
        return [
            Attempt(
                self.suite, scenario, entry, repetition, runs / entry.name / scenario.name,
                self.salt, self._hosting(entry),
            )
            for repetition in range(self.repetitions)
            for scenario in self.suite.file.scenarios
            for entry in entries or self.entries
            if repetition < self.repeated(entry.name)
        ]  # fmt: skip

    def _hosting(self, entry: Entry) -> Hosting:
        guest = self.guests.get(entry.name)
        return self.hosting if guest is None else replace(self.hosting, enclosure=guest.enclosure)

    @property
    def identity(self) -> tuple[str, int]:
        """What two leaderboards in one folder have to share."""
        return self.suite.digest, self.repetitions

    def header(self) -> dict[str, Any]:
        """Return what ``leaderboard.json`` holds; ConfigError if it could not be read again."""
        entries = [
            {
                "tuner": entry.tuner,
                "tuner_args": dict(entry.tuner_args),
                "changes": dict(entry.changes),
                "name": entry.name,
                "slow": entry.name in self.slow,
                "code": self.code.get(entry.name),
            }
            for entry in self.entries
        ]
        file = {
            "suite": self.suite.given,
            "suite_digest": self.suite.digest,
            "version": RELEASE,
            "repetitions": self.repetitions,
            "salt": self.salt,
            "entries": entries,
        }
        return validate(file, LeaderboardFile, source=str(self.out / LEADERBOARD_FILE)).model_dump(
            mode="json"
        )

    def check(self) -> Leaderboard:
        """Return the leaderboard; raise ConfigError for more runs than fit in memory."""
        online = count(self.repeated(entry.name) for entry in self.entries) * len(
            self.suite.file.scenarios
        )
        check_runs(2 * online, f"{len(self.entries)} entries with {self.repetitions} repetitions")
        scenario = self.suite.scenarios[self.suite.file.scenarios[0].name]
        for entry in self.entries:
            changed_scenario(
                scenario, entry.changes, f"{self.out / LEADERBOARD_FILE}: {entry.name}"
            )
        return self

    def check_code(self, *entries: Entry) -> Leaderboard:
        """Return the leaderboard; RunError if a plug-in changed since its runs began."""
        for entry in entries or self.entries:
            then, now = self.code.get(entry.name), plugin_digest(entry)
            if then and now and then != now:
                raise RunError(
                    f"{entry.tuner} has changed since its runs in {self.out} began; bench run with "
                    "another --out, or with --force, which removes all runs there, makes them anew"
                )
        return self

    def carry_out(
        self,
        *,
        workers: int | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> dict[Path, str]:
        """Make every log that is missing or unfinished; return the error of each that failed."""
        attempts = self.attempts()
        if self.salt:  # a plug-in shall not know by its turn what it meets
            attempts = shuffled(attempts, self.salt, "order")
        return carry_out_all(attempts, workers=workers, executor=executor, progress=progress)


def plugin_digest(entry: Entry) -> str | None:
    """Return the digest of a plug-in's file; None of a built-in tuner, or if it is not here."""
    return None if entry.tuner in TUNERS.builtin else tuner_digest(entry.tuner)


def start_leaderboard(
    suite: str, tuners: Iterable[str], out: Path, *, slow: Iterable[str] = (),
    repetitions: int | None = None, force: bool = False,
) -> Leaderboard:  # fmt: skip
    """Check everything that can be wrong, then make the folder and its ``leaderboard.json``.

    An entry is a tuner's name or ``TUNER@SCHEME``; those also in ``slow`` are repeated less often.
    A folder that holds a leaderboard of the same suite takes further entries; ``force`` removes its
    runs. Raises ConfigError, UnknownNameError or RunError; before that nothing is written.
    """
    found = load_suite(suite)
    asked = asked_entries([BASELINE, *tuners], slow)
    entries = [one.entry for one in asked]
    less = frozenset(one.entry.name for one in asked if one.slow)
    board = Leaderboard(
        found, entries, out, repetitions or found.file.repetitions, less,
        code={entry.name: plugin_digest(entry) for entry in entries},
    )  # fmt: skip
    if (out / LEADERBOARD_FILE).exists() and not force:
        board = _added(open_leaderboard(out), board)
    unique("entries", [(one.tuner, one.name, (one.tuner, one.changes)) for one in board.entries])
    for entry in board.entries:
        Attempt(found, found.file.scenarios[0], entry, 0, out).tuned.spec.check()
    header = board.check().check_code().header()
    if force and (out / RUNS_FOLDER).is_dir():
        shutil.rmtree(out / RUNS_FOLDER)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / LEADERBOARD_FILE, header)
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
    return board


def _added(old: Leaderboard, new: Leaderboard) -> Leaderboard:
    """Return a leaderboard with the further entries of another; RunError if they do not fit."""
    if old.salt:
        raise RunError(
            f"{old.out} holds a season, and its traffic is known by now: an entry that comes later "
            "is verified (bench submit, bench verify), and joins the next season"
        )
    if old.identity != new.identity:
        raise RunError(
            f"{old.out} holds suite {old.suite.file.name!r} with {old.repetitions} repetitions"
            "; give another --out, or --force to replace it"
        )
    known = {entry.name for entry in old.entries}
    more = [entry for entry in new.entries if entry.name not in known]
    added = frozenset(entry.name for entry in more) & new.slow
    code = {**old.code, **{entry.name: new.code[entry.name] for entry in more}}
    return replace(new, entries=[*old.entries, *more], slow=old.slow | added, code=code)


def cut(board: Leaderboard, repetitions: int | None) -> Leaderboard:
    """Return a leaderboard with its first repetitions alone; None: all of them.

    Repetitions are made in turn over all scenarios and entries, so a leaderboard that was cut short
    is whole up to one of them. Raises ConfigError for more than there are.
    """
    if repetitions is not None and repetitions > board.repetitions:
        raise ConfigError(
            f"{board.out} has {board.repetitions} repetitions, so there are no {repetitions}; "
            "give fewer"
        )
    return board if repetitions is None else replace(board, repetitions=repetitions)


def open_leaderboard(out: Path) -> Leaderboard:
    """Return the leaderboard that a folder holds; ConfigError or RunError if there is none."""
    path = out / LEADERBOARD_FILE
    file = load_json(path, LeaderboardFile)
    suite = load_suite(file.suite)
    if file.suite_digest != suite.digest:
        raise RunError(
            f"{path} was made with another {suite.file.name!r}: its digest begins with "
            f"{file.suite_digest[:12]}, now it is {suite.digest[:12]}"
        )
    entries = [entry.entry for entry in file.entries]
    slow = frozenset(entry.name for entry in file.entries if entry.slow)
    code = {entry.name: entry.code for entry in file.entries}
    return Leaderboard(suite, entries, out, file.repetitions, slow, file.salt, code=code).check()
