"""The protocol: which runs a suite asks of an entry, with which seeds, and where their logs lie.

Every entry meets the same traffic: the seed of a run follows from suite, scenario and repetition. A
tuner's own draws come from another seed, so that it cannot know the traffic. After its online run
the setting that it recommends runs on held-out traffic, which is again the same for all entries.

Seeds have 63 bits and the tuner's holds no name: neither can be tried out, and another name draws
nothing anew.

A folder of such runs is a :class:`~dcqcn_gym.runs.study.Study` of entries, scenarios and
repetitions: it takes more entries and repetitions, and refuses another suite, another salt, or code
of a plug-in that has changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.benchmarks.leaderboard.entry_text import asked_entries
from dcqcn_gym.benchmarks.leaderboard.risk import FLOOR
from dcqcn_gym.benchmarks.leaderboard.salted_choices import seed, shuffled
from dcqcn_gym.benchmarks.leaderboard.submission import About, looks_like, open_submission
from dcqcn_gym.benchmarks.leaderboard.suite import Digest, Suite, SuiteScenario, load_suite
from dcqcn_gym.benchmarks.leaderboard.tuner_host import Enclosure, sandbox_problem
from dcqcn_gym.benchmarks.leaderboard.verification import files_digest
from dcqcn_gym.core.config import StrictModel, validate
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.registry import is_file
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.envs.scenario.names import Name
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.claim import STUDY_FILE
from dcqcn_gym.runs.entries import Entry, changed_scenario, check_runs, unique
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.results import tuner_digest
from dcqcn_gym.runs.study import Study, held_study
from dcqcn_gym.runs.trials import carry_out_all
from dcqcn_gym.tuners import TUNERS, parse_settings

KIND = "bench run"
BASELINE = "default"
"""The entry that every other is scored against; it always runs."""

RUNS_FOLDER = "runs"
CODE_FOLDER = "code"
"""Where the code of submitted entries lies, by their names."""
DEADLINE_S = 60.0
"""The longest that a call of a submitted tuner may take."""
RUN_S = 600.0
"""The longest that all its calls in one run may take: it could stop just short of every one."""
MOST_REPETITIONS = 999
"""Of a scenario: the logs' names number them with three digits at most."""

_Text = Annotated[str, Field(min_length=1, max_length=4096)]


class Submitted(StrictModel):
    """What the authors of a submitted entry say of it, and the digest of its list of files."""

    files_sha256: Digest
    category: str
    authors: str
    licence: str
    link: str


class EntryPart(StrictModel):
    """An entry in ``study.json``, which may come from another machine.

    ``slow``: it has fewer repetitions. ``code`` is a plug-in's digest.
    """

    tuner: _Text
    tuner_args: dict[str, Any]
    changes: dict[str, Any]
    slow: bool
    code: Digest | None
    submitted: Submitted | None

    @model_validator(mode="after")
    def _check_tuner(self) -> Self:
        if is_file(self.tuner) or self.submitted:  # it may be of another machine
            return self
        TUNERS.check_name(self.tuner)
        if self.tuner in TUNERS.builtin and self.tuner_args:
            parse_settings(self.tuner, TUNERS.load(self.tuner), self.tuner_args)
        return self


class _Held(StrictModel):
    """What ``study.json`` of a leaderboard holds: its names become folders, its numbers work."""

    suite: _Text
    suite_digest: Digest
    salt: str = Field(max_length=256)
    entries: dict[Name, EntryPart] = Field(min_length=1, max_length=1000)
    repetitions: int = Field(ge=1, le=MOST_REPETITIONS)

    @classmethod
    def of(cls, out: Path) -> _Held | None:
        """Return what a folder holds; None if it holds no leaderboard."""
        found = held_study(out, KIND)
        if found is None:
            return None
        value = {
            "suite": found.plan.get("suite"),
            "suite_digest": found.same.get("suite_digest"),
            "salt": found.same.get("salt"),
            "entries": found.parts.get("entry"),
            "repetitions": len(found.parts.get("repetition", ())),
        }
        return validate(value, cls, source=str(out / STUDY_FILE))


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
        """Return the run of what the online run recommends, on held-out traffic."""
        spec = self.tuned.spec.with_setting(
            setting, self._seed("final"), self.suite.file.final_intervals
        )
        return RunJob(spec, self._log("final"), f"{self.title}, final", self._log("timing-final"))

    def judged(self, setting: DeviceSetting) -> list[RunJob]:
        """Return the final run as :mod:`~dcqcn_gym.runs.trials` asks for it."""
        return [self.final(setting)]

    @property
    def held_out(self) -> list[Path]:
        """The log of the final run."""
        return [self._log("final")]

    @property
    def timings(self) -> tuple[Path, Path]:
        """The files of seconds, which no promise covers, of the online run and of the final one."""
        return self._log("timing"), self._log("timing-final")

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything that it leaves."""
        return (*self.logs, *self.timings)

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
class Leaderboard:
    """A folder of runs: a suite, the entries in it, and how often each entry is repeated.

    ``salt`` and ``hosting`` are those of a season or of a verifier: other seeds, and the sandbox of
    a plug-in.
    """

    suite: Suite
    entries: Sequence[Entry]
    out: Path
    repetitions: int
    slow: frozenset[str] = frozenset()
    """Names of the entries that run ``slow_repetitions`` times, the first of them all."""
    salt: str = ""
    hosting: Hosting = field(default_factory=Hosting)
    submitted: Mapping[str, Submitted] = field(default_factory=dict)
    """Entries of others by name: each runs in a sandbox of its own."""

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
        if entry.name not in self.submitted:
            return self.hosting
        code = Enclosure(self.out / CODE_FOLDER / entry.name)
        return Hosting(DEADLINE_S, enclosure=code, run_s=RUN_S)

    def study(self) -> Study[Attempt]:
        """Return what its folder holds: more entries and repetitions may come to it."""
        return Study(
            kind=KIND,
            same={
                "suite": self.suite.file.name,
                "suite_digest": self.suite.digest,
                "salt": self.salt,
            },
            parts={
                "entry": {entry.name: self._part(entry) for entry in self.entries},
                "scenario": {one.name: one.digest for one in self.suite.file.scenarios},
                "repetition": {str(i): None for i in range(self.repetitions)},
            },
            jobs={
                (one.entry.name, one.scenario.name, str(one.repetition)): one
                for one in self.attempts()
            },
            plan={"suite": self.suite.given},
        )

    def _part(self, entry: Entry) -> dict[str, Any]:
        plug_in = entry.tuner not in TUNERS.builtin and entry.name not in self.submitted
        return EntryPart(
            tuner=entry.tuner,
            tuner_args=dict(entry.tuner_args),
            changes=dict(entry.changes),
            slow=entry.name in self.slow,
            code=tuner_digest(entry.tuner) if plug_in else None,  # None, too, if it is not here
            submitted=self.submitted.get(entry.name),
        ).model_dump(mode="json")

    def check(self) -> Leaderboard:
        """Return the leaderboard; raise ConfigError for more runs than fit in memory."""
        online = count(self.repeated(entry.name) for entry in self.entries) * len(
            self.suite.file.scenarios
        )
        check_runs(2 * online, f"{len(self.entries)} entries with {self.repetitions} repetitions")
        scenario = self.suite.scenarios[self.suite.file.scenarios[0].name]
        for entry in self.entries:
            changed_scenario(scenario, entry.changes, f"{self.out / STUDY_FILE}: {entry.name}")
        return self

    def carry_out(
        self,
        *,
        workers: int | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> dict[Path, str]:
        """Make every log that is missing or unfinished; return the error of each that failed."""
        if self.submitted and (problem := sandbox_problem()) is not None:
            raise RunError(f"{problem}; entries of others run in it alone")
        attempts = self.attempts()
        if self.salt:  # a plug-in shall not know by its turn what it meets
            attempts = shuffled(attempts, self.salt, "order")
        return carry_out_all(attempts, workers=workers, executor=executor, progress=progress)


def planned(
    suite: str, tuners: Iterable[str], out: Path, *, slow: Iterable[str] = (),
    repetitions: int | None = None, salt: str = "", submissions: Sequence[Path] = (),
    force: bool = False,
) -> Leaderboard:  # fmt: skip
    """Return the leaderboard of these entries, and of those that ``out`` holds of the same suite.

    An entry is a tuner's name or ``TUNER@SCHEME``; those also in ``slow`` are repeated less often.
    With a ``salt`` the floor, against which guardrails are measured too, runs as well.
    ``repetitions`` are by default those of the folder, or the suite's. Raises ConfigError,
    UnknownNameError or RunError for whatever can be wrong; writes nothing.
    """
    if submissions and not salt:
        raise ConfigError("entries of others run on traffic that nobody knew: give --salt-file")
    found = load_suite(suite)
    references = [BASELINE, FLOOR] if salt else [BASELINE]
    asked = asked_entries([*references, *tuners])
    less = list(slow)
    for text in less:
        if text not in asked:
            raise UnknownNameError("slow entry", text, asked)
    others = [_submitted(folder, found) for folder in submissions]
    for (one, _), (two, _) in combinations(others, 2):
        if looks_like(one.name, two.name):
            raise ConfigError(
                f"entries {one.name!r} and {two.name!r} read alike; leave one out, or rename it"
            )
    entries = [*asked.values(), *(about.entry for about, _ in others)]
    unique("entries", [(one.tuner, one.name, (one.tuner, one.changes)) for one in entries])
    board = Leaderboard(
        found, entries, out, repetitions or found.file.repetitions,
        frozenset(asked[text].name for text in less), salt,
        submitted={about.name: told for about, told in others},
    )  # fmt: skip
    held = None if force else _Held.of(out)
    if held is not None and held.suite_digest == found.digest:
        board = _with_held(board, held, repetitions)
    for entry in board.entries:
        if entry.name not in board.submitted:
            Attempt(found, found.file.scenarios[0], entry, 0, out).tuned.spec.check()
    return board.check()


def _with_held(board: Leaderboard, held: _Held, repetitions: int | None) -> Leaderboard:
    """Return the leaderboard with what its folder holds: entries, and at least the repetitions."""
    known = [Entry(one.tuner, one.tuner_args, one.changes, name)
             for name, one in held.entries.items()]  # fmt: skip
    more = [entry for entry in board.entries if entry.name not in held.entries]
    again = {entry.name: entry for entry in board.entries}
    old = {name: one.submitted for name, one in held.entries.items() if one.submitted}
    return replace(
        board,
        entries=[again.get(entry.name, entry) for entry in known] + more,
        repetitions=max(held.repetitions, repetitions or 0),
        slow=board.slow | {n for n, one in held.entries.items() if one.slow and n not in again},
        submitted={**{n: one for n, one in old.items() if n not in again}, **board.submitted},
    )


def _submitted(folder: Path, suite: Suite) -> tuple[About, Submitted]:
    """Return a submission's entry; ConfigError if it has no place on this suite."""
    about = open_submission(folder).about
    if about.version != RELEASE or about.suite_digest != suite.digest:
        raise ConfigError(
            f"{folder}: made with dcqcn-gym {about.version} on {about.suite!r}; this is "
            f"dcqcn-gym {RELEASE} on {suite.file.name!r}: run and submit it again"
        )
    if about.tuner in TUNERS.builtin:
        raise ConfigError(f"{folder}: tuner {about.tuner!r} is built in, so it is nobody else's")
    return about, Submitted(
        files_sha256=files_digest(folder), category=about.category,
        authors=", ".join(about.authors), licence=about.licence, link=about.link,
    )  # fmt: skip


def copy_code(board: Leaderboard, submissions: Sequence[Path]) -> None:
    """Copy the code of submissions to where their entries run it."""
    for folder in submissions:
        given = open_submission(folder)
        place = board.out / CODE_FOLDER / given.about.name
        if place.exists():
            shutil.rmtree(place)
        given.copy_code(place)


def start_leaderboard(
    suite: str, tuners: Iterable[str], out: Path, *, force: bool = False, **given: Any
) -> Leaderboard:
    """Write ``study.json`` of what :func:`planned` returns, and return that."""
    board = planned(suite, tuners, out, force=force, **given)
    board.study().begin(out, force=force)
    copy_code(board, given.get("submissions", ()))
    return board


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
    held = _Held.of(out)
    if held is None:
        raise RunError(f"{out} holds no leaderboard; bench run SUITE --tuners NAME,... makes one")
    suite = load_suite(held.suite)
    if held.suite_digest != suite.digest:
        raise RunError(
            f"{out / STUDY_FILE} was made with another {suite.file.name!r}: its digest begins with "
            f"{held.suite_digest[:12]}, now it is {suite.digest[:12]}"
        )
    nothing = Leaderboard(suite, [], out, held.repetitions, salt=held.salt)
    return _with_held(nothing, held, None).check()
