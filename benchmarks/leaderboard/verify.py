"""A submission judged: hashes, replay of every log, the plug-in again in a sandbox, fresh seeds.

What is wrong with the files is refused with one sentence. What the plug-in does when it runs again
decides between ``verified`` and ``irreproducible``; without a sandbox an entry stays
``self-reported``. docs/leaderboard.md tells what each attack gets.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.bootstrap import fallen, hierarchical, scenario_mean
from dcqcn_gym.benchmarks.leaderboard.entry_text import asked_entries
from dcqcn_gym.benchmarks.leaderboard.plugin_code import differing_packages
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    BASELINE,
    DEADLINE_S,
    RUN_S,
    Attempt,
    Leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.replay import ReplayJob, difference
from dcqcn_gym.benchmarks.leaderboard.risk import FLOOR
from dcqcn_gym.benchmarks.leaderboard.salted_choices import number, shuffled
from dcqcn_gym.benchmarks.leaderboard.scoring import EntryScores, score_entries
from dcqcn_gym.benchmarks.leaderboard.submission import (
    REQUIREMENTS,
    RESULT,
    Submission,
    log_name,
    open_submission,
)
from dcqcn_gym.benchmarks.leaderboard.submit import result_bytes
from dcqcn_gym.benchmarks.leaderboard.suite import Suite, load_suite, suite_names
from dcqcn_gym.benchmarks.leaderboard.tuner_host import Enclosure, sandbox_problem
from dcqcn_gym.benchmarks.leaderboard.verification import (
    CONVICTING,
    Beside,
    Finding,
    Verification,
    checked_date,
    files_digest,
    verdict_file,
    write_verification,
)
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.groups import setting_of
from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.runs import campaign
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import MOST_LOG_BYTES
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.recorded import end_of
from dcqcn_gym.tuners import TUNERS

REFERENCES = ("expert", FLOOR, "paraleon", "keeper")
"""Run beside the default and an entry that comes between two seasons, on its own salt."""


@dataclass(frozen=True)
class Verifier:
    """How submissions are verified.

    ``work`` is a folder for the runs that are made, which a second try with the same salt goes on
    with; each submission has its own in there. ``day`` is what the verdict is dated, and
    ``salt`` what fresh seeds follow from: nobody but the verifier knows it before. ``fresh`` is the
    number of repetitions on them. ``suite`` stands in for one that does not come with the package;
    ``verdicts`` is the folder of verdicts. A call of the plug-in takes at most ``deadline_s``.
    """

    work: Path
    day: str
    salt: str
    fresh: int = 3
    suite: str | None = None
    deadline_s: float = DEADLINE_S
    workers: int | None = None
    executor: Executor | None = None
    progress: Progress | None = None
    problem: Callable[[], str | None] = field(default=sandbox_problem)
    verdicts: Path | None = None

    def verify(self, folder: Path) -> Verification:
        """Judge a submission, write the verdict into ``verdicts``, if there are, and return it.

        Raises ConfigError or RunError, one sentence, for a submission that is refused; nothing is
        written then.
        """
        checked_date(self.day)
        submission = open_submission(folder)
        case = _Examination(self, submission, self._suite(submission), files_digest(folder))
        case.check_logs()
        case.repeat()
        found = case.verdict()
        if self.verdicts is not None:
            about = submission.about
            write_verification(verdict_file(self.verdicts, about.suite, about.name), found)
        return found

    def carry_out(self, jobs: Sequence[Any]) -> dict[Path, str]:
        """Carry out jobs with the workers of this verifier, in an order that nobody can foresee."""
        return campaign.carry_out(
            shuffled(jobs, self.salt, "order"), workers=self.workers, executor=self.executor,
            progress=self.progress,
        )  # fmt: skip

    def _suite(self, submission: Submission) -> Suite:
        about = submission.about
        if about.version != RELEASE:
            raise ConfigError(
                f"{submission.folder}: made with dcqcn-gym {about.version}, this is "
                f"{RELEASE}; an entry belongs to one version: verify it with that "
                "one, or run it again"
            )
        if self.suite is None and about.suite not in suite_names():
            raise ConfigError(
                f"{submission.folder}: was run on suite {about.suite!r}, which is none of the "
                "package; give its folder by --suite"
            )
        suite = load_suite(self.suite or about.suite)
        if suite.digest != about.suite_digest or suite.file.name != about.suite:
            raise ConfigError(
                f"{submission.folder}: was run on suite {about.suite!r} with the digest "
                f"{about.suite_digest[:12]}; {suite.file.name!r} here has {suite.digest[:12]}"
            )
        return suite


def _equal(one: EntryScores, other: EntryScores) -> bool:
    """Tell whether two entries have the same figures in every run, to the last bit."""
    return all(
        np.array_equal(one.parts[name].risk, other.parts[name].risk)
        and np.array_equal(one.parts[name].score, other.parts[name].score)
        for name in one.parts
    )


def _amounts(entry: EntryScores) -> Beside:
    """Return the online R with its interval, S and harm of an entry, as verdicts do."""
    online = entry.parts["online"]
    risk = hierarchical(online.risk).model_dump()
    return Beside(**risk, gain=scenario_mean(online.score), harm=online.harm.share)


class _Examination:
    """One submission and what has been found about it."""

    def __init__(
        self, verifier: Verifier, submission: Submission, suite: Suite, digest: str
    ) -> None:
        about = submission.about
        self.by = verifier
        self.submission = submission
        self.suite = suite
        self.digest = digest
        self.work = verifier.work / digest[:16]
        self.entry = about.entry
        self.entries = [Entry(BASELINE), self.entry]
        self.findings: list[Finding] = []
        self.checked: dict[str, int] = {}
        self.scores: dict[str, EntryScores] = {}
        self.beside: dict[str, Beside] = {}
        self.problem: str | None = None
        self.reproduced = True
        if about.name == BASELINE:
            raise ConfigError(f"{submission.folder}: the entry {BASELINE!r} is everybody's; rename")

    def check_logs(self) -> None:
        """Replay every log, compute the result again; ConfigError or RunError if they differ."""
        about, by = self.submission.about, self.by
        other = differing_packages(self.submission.read(REQUIREMENTS).decode("utf-8", "replace"))
        if other:
            self._note("other-packages", "; ".join(other))
        given = Leaderboard(self.suite, [self.entry], self.work / "submitted", about.repetitions)
        made = Leaderboard(self.suite, self.entries, self.work / "replayed", about.repetitions)
        self._unpack(given)
        pairs = list(zip(made.attempts(self.entry), given.attempts(), strict=True))
        for stage in (0, 1):
            self._refuse(by.carry_out([self._replay(*pair, stage) for pair in pairs]))
        self.checked["replayed"] = 2 * len(pairs)
        self._refuse(replace(made, entries=self.entries[:1]).carry_out(**self._how))
        if self.submission.read(RESULT) != result_bytes(made, self.entry):
            raise RunError(
                f"{self.submission.folder / RESULT}: its figures are not those of its logs"
            )
        self.scores["reported"] = self._own(score_entries(made))

    def repeat(self) -> None:
        """Run the plug-in again: on its own seeds, and twice on fresh ones."""
        self.problem = None if self.entry.tuner in TUNERS.builtin else self.by.problem()
        if self.problem is not None:
            self._note("no-sandbox", f"{self.problem}; the plug-in was not run again")
            return
        work, salt = self.work, self.by.salt
        anew = work / f"salt-{number(salt):016x}"
        if (work / "plugin").exists():
            shutil.rmtree(work / "plugin")  # of an earlier try
        code = self.submission.copy_code(work / "plugin")
        hosting = Hosting(self.by.deadline_s, enclosure=Enclosure(code), run_s=RUN_S)
        repetitions = self.submission.about.repetitions
        own = Leaderboard(self.suite, [self.entry], work / "again", repetitions, hosting=hosting)
        self._same(own, work / "submitted", "is not what was submitted")
        if not self.reproduced:
            return
        asked = asked_entries(REFERENCES).values()
        others = [one for one in asked if one.name != self.entry.name]
        fresh = Leaderboard(
            self.suite, [*self.entries, *others], anew / "fresh", self.by.fresh, salt=salt,
            hosting=hosting,
        )  # fmt: skip
        if self._scored_anew(fresh, "fresh"):
            second = replace(fresh, entries=[self.entry], out=anew / "twice", repetitions=1)
            self._same(second, fresh.out, "differs from run to run")
        self._compare()

    def verdict(self) -> Verification:
        """Return what has been found."""
        status = "self-reported" if self.problem else "verified"
        return Verification(
            status=status if self.reproduced else "irreproducible",
            date=self.by.day,
            files_sha256=self.digest,
            salt=self.by.salt,
            versions={
                "dcqcn_gym": RELEASE,
                "python": platform.python_version(),
                "numpy": np.__version__,
            },
            platform={"system": sys.platform, "machine": platform.machine(),
                      "libc": " ".join(platform.libc_ver())},
            checked=self.checked,
            risks={
                name: hierarchical(found.parts["online"].risk)
                for name, found in self.scores.items()
            },
            beside=self.beside,
            findings=tuple(self.findings),
        )  # fmt: skip

    @property
    def _how(self) -> dict[str, Any]:
        by = self.by
        return {"workers": by.workers, "executor": by.executor, "progress": by.progress}

    def _note(self, name: str, text: str) -> None:
        self.findings.append(Finding(name=name, text=text[:4000]))

    def _unpack(self, board: Leaderboard) -> None:
        """Lay the submitted logs as `bench run` does; ConfigError unless they are all there."""
        wanted = {
            log_name(attempt.scenario.name, log): log
            for attempt in board.attempts()
            for log in attempt.logs
        }
        for name in wanted.keys() - set(self.submission.logs):
            raise ConfigError(f"{self.submission.folder / name}: no such file; the suite asks it")
        for name in set(self.submission.logs) - wanted.keys():
            raise ConfigError(f"{self.submission.folder / name}: the suite asks no such run")
        self.submission.check_unpacked(wanted)
        for name, log in wanted.items():
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_bytes(self.submission.read_log(name))

    def _replay(self, ours: Attempt, theirs: Attempt, stage: int) -> ReplayJob:
        job = ours.tuned
        if stage:
            job = ours.final(setting_of(end_of(theirs.logs[0])["recommended"]))
        shown = str(self.submission.folder / log_name(ours.scenario.name, ours.logs[stage]))
        return ReplayJob(job.spec, theirs.logs[stage], ours.logs[stage], shown)

    def _refuse(self, failed: dict[Path, str]) -> None:
        if failed:
            first = min(failed)
            more = f" ({len(failed)} logs in all)" if len(failed) > 1 else ""
            raise RunError(f"{failed[first]}{more}")

    def _same(self, board: Leaderboard, other: Path, words: str) -> None:
        """Run the plug-in once more and compare its logs with those below ``other``."""
        attempts = board.attempts()
        for attempt in attempts:
            attempt.folder.mkdir(parents=True, exist_ok=True)
        failed = self.by.carry_out([attempt.tuned for attempt in attempts])
        for attempt in attempts:
            path = attempt.logs[0]
            said = failed.get(path)
            if said is None:
                then = read_file(other / path.relative_to(board.out), MOST_LOG_BYTES)
                said = difference(then, read_file(path, MOST_LOG_BYTES))
            if said is not None:
                self.reproduced = False
                where = f"{attempt.scenario.name}, repetition {attempt.repetition}"
                self._note("irreproducible", f"{where}: what the plug-in does {words}: {said}")
                return
        self.checked["repeated"] = self.checked.get("repeated", 0) + len(attempts)

    def _scored_anew(self, board: Leaderboard, name: str) -> bool:
        """Run the entry beside the others on other traffic; return whether all went well."""
        failed = board.carry_out(**self._how)
        own = {path for attempt in board.attempts(self.entry) for path in attempt.logs}
        self._refuse({path: why for path, why in failed.items() if path not in own})
        if failed:
            self.reproduced = False
            path = min(failed)
            self._note("failed", f"{path.parent.name}, on {name} seeds: {failed[path]}")
            return False
        # reported and fresh alike, without the floor among the references
        self.scores[name] = self._own(score_entries(replace(board, entries=self.entries)))
        scored = score_entries(board)
        self.checked[name] = len(board.attempts(self.entry))
        if name == "fresh" and len(scored) > len(self.entries):
            self.beside = {one.name: _amounts(one) for one in scored if one.name != BASELINE}
        ours = self._own(scored)
        for one in scored:
            if one is not ours and _equal(ours, one):
                self._note("same-as-reference", f"in every run on {name} seeds it is {one.name!r}")
        return True

    def _own(self, scored: Sequence[EntryScores]) -> EntryScores:
        return next(one for one in scored if one.name == self.entry.name)

    def _compare(self) -> None:
        """Note that an entry is lower on traffic that its authors have not seen."""
        if "fresh" not in self.scores:
            return
        then, now = (self.scores[name].parts["online"].risk for name in ("reported", "fresh"))
        if fallen(then, now):
            before, after = (scenario_mean(risk) for risk in (then, now))
            text = (
                f"R is {before:+.3f} as reported, {after:+.3f} on fresh seeds: lower by more than "
                "its interval"
            )
            self._note(CONVICTING, text)
