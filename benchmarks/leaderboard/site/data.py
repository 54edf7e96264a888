"""Reads the results of leaderboards, and of submissions beside them: all that the pages show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dcqcn_gym.benchmarks.leaderboard.categories import category_of, ranks_within
from dcqcn_gym.benchmarks.leaderboard.cost import cost_entries
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine, read_result
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
from dcqcn_gym.benchmarks.leaderboard.submission import ABOUT, open_submission
from dcqcn_gym.benchmarks.leaderboard.verification import (
    files_digest,
    read_verification,
    verdict_file,
)
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, RunError, quote
from dcqcn_gym.runs.results import read_results
from dcqcn_gym.tuners import TUNERS


def load_suites(
    folders: Sequence[Path],
    verdicts: Path | None = None,
    leave_out: Callable[[str], object] | None = None,
) -> list[SiteSuite]:
    """Return the suites of some folders of results, submissions beside the leaderboard's entries.

    A folder holds a leaderboard's results or is a submission, whose suite some leaderboard among
    the others tells. It needs one of the ``verdicts``. Raises ConfigError or RunError: no results,
    two leaderboards of one suite, two entries of one name. With ``leave_out`` a submission at fault
    is not among the entries, and ``leave_out`` is told why in one sentence.
    """
    found: dict[str, SiteSuite] = {}
    submitted = [folder for folder in folders if (folder / ABOUT).exists()]
    for folder in folders:
        if folder not in submitted:
            suite = _read(folder)
            if suite.name in found:
                raise RunError(
                    f"{folder} holds suite {suite.name!r}, as a folder before does; bench run adds "
                    "entries to one of them, so give one"
                )
            found[suite.name] = suite
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
    """Return the suite of a submission with its entry; RunError if nobody has verified its files.

    A verdict says that its figures are those of its logs, and those what the suite asks.
    """
    submission = open_submission(folder)
    about, digest = submission.about, files_digest(folder)
    suite = found.get(about.suite)
    if suite is None or suite.digest != about.suite_digest:
        raise RunError(
            f"{folder} is an entry of suite {about.suite!r}; give a leaderboard of that suite as "
            f"well (its digest begins with {about.suite_digest[:12]})"
        )
    place = None if verdicts is None else verdict_file(verdicts, about.suite, about.name)
    verification = None if place is None else read_verification(place, digest)
    if verification is None:
        raise RunError(
            f"{folder}: there is no verdict on its files; bench verify {folder} --verdicts FOLDER "
            "gives one, for bench site --verdicts FOLDER"
        )
    line = read_result(submission)
    built_in = about.tuner in TUNERS.builtin
    entry = SiteEntry(
        name=about.name,
        line=line.model_copy(
            update={"category": category_of(about.tuner) if built_in else about.category}
        ),
        details={"summary": f"by {', '.join(about.authors)} ({about.licence})",
                 **line.data()["learning_curve"]},
        tuner={"tuner": about.tuner, "arguments": about.tuner_args, "sha256": digest},
        versions={"dcqcn_gym": about.version},
        verification=verification,
        folder=folder,
        submitted=True,
        asked=int(suite.protocol["repetitions"]),
        changes=about.changes,
        link=about.link,
    )  # fmt: skip
    return _with_entry(suite, entry, folder)


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
        season = figures.get("season", {})
        summaries = {
            name: {"summary": f"by {one['authors']} ({one['licence']})"}
            for name, one in season.get("entries", {}).items()
        }
        entries = [
            SiteEntry(
                name=line.entry,
                line=line,
                details=figures["entries"].get(line.entry, {}) | summaries.get(line.entry, {}),
                tuner=data.tuners[line.entry].model_dump(), versions=data.versions,
                folder=folder,
                cost=costs.get(line.entry, {}),
                asked=asked,
            )
            for line in lines
        ]  # fmt: skip
        return SiteSuite(
            figures["suite"], figures["suite_digest"], figures["protocol"], figures["files"],
            figures["checkpoints"], entries, season,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{path} is not the file of a leaderboard's results: {quote(str(error))}; {anew}"
        ) from None


def _with_entry(suite: SiteSuite, entry: SiteEntry, folder: Path) -> SiteSuite:
    """Return a suite with a submission: listed by itself, or its verdict beside its own season's.

    A verdict goes to an entry that is measured here if its code is the same, by the season's list
    or by figures, and nobody else's.
    """
    same = suite.entry(entry.name)
    if same is None:
        return replace(suite, entries=[*suite.entries, entry])
    listed = suite.season.get("entries", {}).get(entry.name, {}).get("files_sha256")
    own = listed == entry.tuner["sha256"] if suite.season else same.runs == entry.runs
    if not own:
        raise RunError(
            f"entry {entry.name!r} stands in {same.folder} and in {folder} with other figures; "
            "give one of them"
        )
    if entry.status != "verified":
        return suite
    details = {**same.details, "summary": entry.details["summary"]}
    judged = replace(same, verification=entry.verification, link=entry.link,
                     details=details)  # fmt: skip
    entries = [judged if one is same else one for one in suite.entries]
    return replace(suite, entries=entries)


def _finished(suite: SiteSuite) -> SiteSuite:
    """Return the suite with its entries in order, and ranks in a season.

    Elsewhere the traffic was known before the entries, and there are none.
    """
    able = [e for e in suite.entries if e.ranked] if suite.season else []
    places = ranks_within(
        {e.name: e.category for e in able}, {e.name: e.risks("online") for e in able}
    )
    entries = sorted(
        suite.entries,
        key=lambda entry: (
            not entry.believed,
            entry.name not in places and bool(places),
            -entry.line.online.risk.value if entry.line.online else math.inf,
            entry.name,
        ),
    )
    return replace(suite, entries=entries, ranks=places)
