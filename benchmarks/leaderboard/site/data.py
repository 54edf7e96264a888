"""Reads the results of leaderboards and joins those of one suite: all that the pages show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.categories import CATEGORIES, category_of
from dcqcn_gym.benchmarks.leaderboard.compared import p_values, regret
from dcqcn_gym.benchmarks.leaderboard.cost import cost_entries
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.ranking import rank_groups
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine, check_fits, read_result
from dcqcn_gym.benchmarks.leaderboard.submission import ABOUT, CODE, RESULT, open_submission
from dcqcn_gym.benchmarks.leaderboard.verification import (
    STATUSES,
    Verification,
    files_digest,
    read_verification,
    verdict_file,
    verdict_of,
)
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, RunError, quote
from dcqcn_gym.runs.results import read_results
from dcqcn_gym.tuners import TUNERS

FloatArray = npt.NDArray[np.float64]

HERE = "measured here"
SHOWN_STATUSES: Mapping[str, str] = {
    HERE: "run by whoever made this site, as part of a leaderboard",
    **STATUSES,
}
"""What each status on the pages means."""


@dataclass(frozen=True)
class SiteEntry:
    """One entry of one suite. ``line`` and ``details`` are those of ``results.json``.

    ``tuner`` holds its name, arguments and digest, ``versions`` what it ran with, ``cost`` its
    seconds where they are known, ``folder`` where it comes from. ``asked`` is how often it has to
    run for a rank: as often as the other entries of its leaderboard, or as the suite says.
    """

    name: str
    line: EntryLine
    details: Mapping[str, Any]
    tuner: Mapping[str, Any]
    versions: Mapping[str, Any]
    verification: Verification
    folder: Path
    cost: Mapping[str, float] = field(default_factory=dict)
    submitted: bool = False
    asked: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)
    link: str = ""
    code: Mapping[str, bytes] = field(default_factory=dict)
    """What a submission replaces of the scenarios, where its code lives, and its files."""

    @property
    def complete(self) -> bool:
        """True if every run of the entry is there."""
        return self.line.final is not None

    @property
    def category(self) -> str:
        """One of the categories."""
        return self.line.category

    @property
    def flags(self) -> Mapping[str, int]:
        """On how many scenarios each flag of the final stage is up."""
        return self.line.final.flags if self.line.final else {}

    def scores(self, stage: str) -> FloatArray:
        """Return S of a stage, of shape (scenarios, repetitions)."""
        return np.array(list(self.line.stage(stage).scores.values()), dtype=np.float64)

    @property
    def runs(self) -> object:
        """What its runs gave, whatever other entries gave: S and utility of both stages."""
        stages = [self.line.online, self.line.final]
        return [(stage.scores, stage.utility) for stage in stages if stage]

    @property
    def too_few(self) -> bool:
        """True if the entry ran too seldom for a rank: its flags' bounds are too wide."""
        return self.line.repetitions < self.asked

    @property
    def status(self) -> str:
        """One of :data:`SHOWN_STATUSES`."""
        return self.verification.status if self.submitted else HERE

    @property
    def of_maintainers(self) -> bool:
        """True if it was submitted, but its tuner comes with the package: it is nobody else's."""
        return self.submitted and self.tuner["tuner"] in TUNERS.builtin

    @property
    def believed(self) -> bool:
        """True if its figures count for others: measured here, or verified without conviction."""
        checked = self.status == "verified" and not self.verification.convicted
        return not self.submitted or (checked and not self.of_maintainers)

    @property
    def ranked(self) -> bool:
        """True if the entry can have a rank."""
        out = self.category == "oracle" or self.too_few or not self.believed
        return self.complete and not self.flags and not out


@dataclass(frozen=True)
class SiteSuite:
    """A suite with all its entries, best first; rank groups overall and within a category."""

    name: str
    digest: str
    protocol: Mapping[str, Any]
    files: Mapping[str, str]
    best_known: Mapping[str, Mapping[str, Any]]
    checkpoints: Sequence[float]
    entries: Sequence[SiteEntry]
    ranks: Mapping[str, int] = field(default_factory=dict)
    in_category: Mapping[str, int] = field(default_factory=dict)

    @property
    def scenarios(self) -> list[str]:
        """The names of its scenarios."""
        return [scenario["name"] for scenario in self.protocol["scenarios"]]

    @property
    def made(self) -> int:
        """The most repetitions that a complete entry has: fewer than the protocol's on a part."""
        return max((r.line.repetitions for r in self.entries if r.complete), default=0)

    def entry(self, name: str) -> SiteEntry | None:
        """Return an entry by its name."""
        return next((entry for entry in self.entries if entry.name == name), None)


def load_suites(
    folders: Sequence[Path],
    verdicts: Path | None = None,
    leave_out: Callable[[str], object] | None = None,
) -> list[SiteSuite]:
    """Return the suites of some folders of results, entries of one suite together.

    A folder holds a leaderboard's results or is a submission, whose suite some leaderboard among
    the others tells. ``verdicts`` are the maintainers'; without them all is self-reported. Raises
    ConfigError or RunError: no results, two suites of one name, two entries of one name. With
    ``leave_out`` a submission at fault is not among the entries, and ``leave_out`` is told why in
    one sentence.
    """
    found: dict[str, SiteSuite] = {}
    submitted = [folder for folder in folders if (folder / ABOUT).exists()]
    for folder in folders:
        if folder not in submitted:
            suite = _read(folder)
            old = found.get(suite.name)
            found[suite.name] = suite if old is None else _joined(old, suite, folder)
    for folder in submitted:
        try:
            suite = _with_submission(found, folder, verdicts)
        except DcqcnGymError as error:
            if leave_out is None:
                raise
            leave_out(str(error))
        else:
            found[suite.name] = suite
    return [_finished(suite) for suite in found.values()]


def _with_submission(
    found: Mapping[str, SiteSuite], folder: Path, verdicts: Path | None
) -> SiteSuite:
    """Return the suite of a submission with its entry."""
    name, digest, entry = submitted_entry(folder, verdicts)
    if name not in found or found[name].digest != digest:
        raise RunError(
            f"{folder} is an entry of suite {name!r}; give a leaderboard of that suite as well "
            f"(its digest begins with {digest[:12]})"
        )
    suite = found[name]
    check_fits(str(folder / RESULT), entry.line, suite.scenarios, suite.checkpoints)
    entry = replace(entry, asked=int(suite.protocol["repetitions"]))
    best = _best_of(suite, entry) if entry.believed else {}
    return _joined(suite, replace(suite, entries=[entry], best_known=best), folder)


def submitted_entry(folder: Path, verdicts: Path | None) -> tuple[str, str, SiteEntry]:
    """Return suite, digest and entry of a submission, checked against its list of files."""
    submission = open_submission(folder)
    about = submission.about
    line = read_result(submission)
    digest = files_digest(folder)
    verification = verdict_of("self-reported")
    built_in, authors = about.tuner in TUNERS.builtin, ", ".join(about.authors)
    if verdicts is not None:
        verification = read_verification(verdict_file(verdicts, about.suite, about.name), digest)
    return (
        about.suite,
        about.suite_digest,
        SiteEntry(
            name=about.name,
            line=line.model_copy(
                update={"category": category_of(about.tuner) if built_in else about.category}
            ),
            details={"summary": f"built in; handed in by {authors}" if built_in
                                else f"by {authors} ({about.licence})",
                     "recovery": {}, **line.data()["learning_curve"]},
            tuner={"tuner": about.tuner, "arguments": about.tuner_args,
                   "sha256": digest},
            versions={"dcqcn_gym": about.version},
            verification=verification,
            folder=folder,
            submitted=True,
            changes=about.changes,
            link=about.link,
            code={name: submission.read(name) for name in submission.names
                  if name.startswith(f"{CODE}/") and name.endswith(".py")},
        ),
    )  # fmt: skip


def _best_of(suite: SiteSuite, entry: SiteEntry) -> dict[str, dict[str, Any]]:
    """Return what a submission reached where it raises no flag; its settings lie in its logs."""
    raised = entry.line.stage("final").flags_by_scenario
    return {
        name: {"entry": entry.name, "score": float(np.mean(scores)), "repetition": best, "setting":
        {}, "setting_score": float(scores[best])} for name, scores in zip(suite.scenarios,
        entry.scores("final"), strict=True) if name not in raised for best in
        (int(np.argmax(scores)),)
    }  # fmt: skip


def _read(folder: Path) -> SiteSuite:
    path = folder / "results.json"
    anew = f"dcqcn-gym bench report {folder} makes it anew from the logs"
    try:
        data = read_results(path, "leaderboard")
    except ConfigError as error:
        raise RunError(f"{error}; {anew}") from None
    try:
        figures, costs = data.figures, cost_entries(folder)
        lines = [validate(line, EntryLine, source="rows") for line in data.rows]
        asked = max(line.repetitions for line in lines)
        entries = [
            SiteEntry(
                name=line.entry,
                line=line,
                details=figures["entries"].get(line.entry, {}),
                tuner=data.tuners[line.entry].model_dump(),
                versions=data.versions,
                verification=verdict_of("self-reported"),
                folder=folder,
                cost=costs.get(line.entry, {}),
                asked=asked,
            )
            for line in lines
        ]
        return SiteSuite(
            figures["suite"], figures["suite_digest"], figures["protocol"], figures["files"],
            figures["best_known"], figures["checkpoints"], entries,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{path} is not the file of a leaderboard's results: {quote(str(error))}; {anew}"
        ) from None


def _joined(old: SiteSuite, new: SiteSuite, folder: Path) -> SiteSuite:
    if old.digest != new.digest:
        raise RunError(
            f"{folder}: its {new.name!r} is another suite (digest {new.digest[:12]}) than that of "
            f"the folders before ({old.digest[:12]}); their entries did not meet the same traffic"
        )
    entries = list(old.entries)
    for entry in new.entries:
        same = old.entry(entry.name)
        if same is None:
            entries.append(entry)
        elif same.runs == entry.runs:
            own = same.submitted or not (entry.of_maintainers or entry.status == "self-reported")
            if (
                entry.submitted and own
            ):  # what was submitted and verified stands for what was run here
                line = entry.line.model_copy(update={"recovery": same.line.recovery})
                details = {**entry.details, "recovery": same.details.get("recovery", {})}
                entries[entries.index(same)] = replace(
                    entry, line=line, details=details, cost=same.cost
                )
        else:
            raise RunError(
                f"entry {entry.name!r} stands in {same.folder} and in {folder} with other figures; "
                "give one of them"
            )
    best = dict(old.best_known)
    for name, one in new.best_known.items():
        if name not in best or one["score"] > best[name]["score"]:
            best[name] = one
    return replace(old, entries=entries, best_known=best)


def _finished(suite: SiteSuite) -> SiteSuite:
    """Return the suite with its ranks, entries in order, and what depends on all of them."""
    clean = {entry.name: entry for entry in suite.entries if entry.ranked}
    ranks = rank_groups({name: entry.scores("final") for name, entry in clean.items()})
    in_category: dict[str, int] = {}
    for category in CATEGORIES:
        some = {
            n: entry.scores("final") for n, entry in clean.items() if entry.category == category
        }
        in_category |= rank_groups(some)
    given = {
        r.name: r.scores("final")
        for r in suite.entries
        if r.complete and r.believed and r.name != BASELINE
    }
    chance = p_values(given)
    place = {name: i for i, name in enumerate(ranks)}
    entries = sorted(
        (_against_all(suite, entry, chance) for entry in suite.entries),
        key=lambda entry: (
            place.get(entry.name, len(place)),
            not entry.believed,
            -entry.line.final.score.value if entry.line.final else math.inf,
            entry.name,
        ),
    )
    return replace(suite, entries=entries, ranks=ranks, in_category=in_category)


def _against_all(suite: SiteSuite, entry: SiteEntry, chance: Mapping[str, float]) -> SiteEntry:
    if not entry.complete or not entry.believed:
        return entry
    best = np.array([suite.best_known.get(n, {}).get("score", np.nan) for n in suite.scenarios])
    lost = regret(entry.scores("final"), best)
    names = zip(suite.scenarios, lost, strict=True)
    by_name = {name: float(v) if np.isfinite(v) else None for name, v in names}
    known = lost[np.isfinite(lost)]
    mean = float(np.mean(known)) if known.size else None
    line = entry.line.model_copy(update={"regret": mean, "p_default": chance.get(entry.name)})
    return replace(entry, line=line, details={**entry.details, "regret": by_name})
