"""Reads the results of boards and joins those of one suite: all that the pages show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.board.compared import p_values, regret
from dcqcn_gym.benchmarks.board.cost import cost_rows
from dcqcn_gym.benchmarks.board.protocol import BASELINE
from dcqcn_gym.benchmarks.board.ranking import bands
from dcqcn_gym.benchmarks.board.result_file import check_fits, read_result
from dcqcn_gym.benchmarks.board.submission import ABOUT, CODE, RESULT, open_submission
from dcqcn_gym.benchmarks.board.tracks import TRACKS
from dcqcn_gym.benchmarks.board.verification import (
    Verification,
    files_digest,
    read_verification,
    verdict_file,
)
from dcqcn_gym.core.errors import RunError, quote
from dcqcn_gym.core.files import parse_json, read_text

__all__ = ["UNRANKED", "SiteRow", "SiteSuite", "load_suites"]

FloatArray = npt.NDArray[np.float64]

UNRANKED = ("irreproducible", "withdrawn")
"""Statuses whose rows have no rank."""


@dataclass(frozen=True)
class SiteRow:
    """One row of one suite. ``line`` and ``details`` are those of ``results.json``.

    ``tuner`` holds its name, arguments and digest, ``versions`` what it ran with, ``cost`` its
    seconds where they are known, ``folder`` where it comes from. ``asked`` is how often it has to
    run for a rank: as often as the other rows of its board, or as the suite says.
    """

    name: str
    line: Mapping[str, Any]
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
        """True if every run of the row is there."""
        return "final" in self.line

    @property
    def track(self) -> str:
        """One of the tracks."""
        return str(self.line["track"])

    @property
    def flags(self) -> Mapping[str, int]:
        """On how many scenarios each flag of the final stage is up."""
        return dict(self.line["final"]["flags"]) if self.complete else {}

    def scores(self, stage: str) -> FloatArray:
        """Return S of a stage, of shape (scenarios, repetitions)."""
        return np.array(list(self.line[stage]["scores"].values()), dtype=np.float64)

    @property
    def runs(self) -> object:
        """What its runs gave, whatever other rows gave: S and utility of both stages."""
        stages = [self.line.get(stage, {}) for stage in ("online", "final")]
        return [(stage.get("scores"), stage.get("utility")) for stage in stages]

    @property
    def too_few(self) -> bool:
        """True if the row ran too seldom for a rank: its flags' bounds are too wide."""
        return int(self.line["repetitions"]) < self.asked

    @property
    def ranked(self) -> bool:
        """True if the row can have a rank."""
        out = self.track == "oracle" or self.verification.status in UNRANKED or self.too_few
        return self.complete and not self.flags and not out


@dataclass(frozen=True)
class SiteSuite:
    """A suite with all its rows, best first, and their rank bands: overall and within a track."""

    name: str
    digest: str
    protocol: Mapping[str, Any]
    files: Mapping[str, str]
    best_known: Mapping[str, Mapping[str, Any]]
    checkpoints: Sequence[float]
    rows: Sequence[SiteRow]
    ranks: Mapping[str, int] = field(default_factory=dict)
    in_track: Mapping[str, int] = field(default_factory=dict)

    @property
    def scenarios(self) -> list[str]:
        """The names of its scenarios."""
        return [entry["name"] for entry in self.protocol["scenarios"]]

    @property
    def made(self) -> int:
        """The most repetitions that a whole row has: fewer than the protocol's on a part of it."""
        return max((int(r.line["repetitions"]) for r in self.rows if r.complete), default=0)

    def row(self, name: str) -> SiteRow | None:
        """Return a row by its name."""
        return next((row for row in self.rows if row.name == name), None)


def load_suites(folders: Sequence[Path], verdicts: Path | None = None) -> list[SiteSuite]:
    """Return the suites of some folders of results, rows of one suite together.

    A folder holds a board's results or is a submission, whose suite some board among the others
    tells. ``verdicts`` are the maintainers'; without them all is self-reported. Raises ConfigError
    or RunError: no results, two suites of one name, two rows of one name.
    """
    found: dict[str, SiteSuite] = {}
    submitted = [folder for folder in folders if (folder / ABOUT).exists()]
    for folder in folders:
        if folder not in submitted:
            suite = _read(folder)
            old = found.get(suite.name)
            found[suite.name] = suite if old is None else _joined(old, suite, folder)
    for folder in submitted:
        name, digest, row = submitted_row(folder, verdicts)
        if name not in found or found[name].digest != digest:
            raise RunError(
                f"{folder} is a row of suite {name!r}; give a board of that suite as well "
                f"(its digest begins with {digest[:12]})"
            )
        check_fits(str(folder / RESULT), row.line, found[name].scenarios, found[name].checkpoints)
        row = replace(row, asked=int(found[name].protocol["repetitions"]))
        alone = replace(found[name], rows=[row], best_known=_best_of(found[name], row))
        found[name] = _joined(found[name], alone, folder)
    return [_finished(suite) for suite in found.values()]


def submitted_row(folder: Path, verdicts: Path | None) -> tuple[str, str, SiteRow]:
    """Return suite, its digest, and the row of a submission, checked against its list of files."""
    submission = open_submission(folder)
    about = submission.about
    line = read_result(submission)
    digest = files_digest(folder)
    verification = Verification("self-reported")
    if verdicts is not None:
        verification = read_verification(verdict_file(verdicts, about.suite, about.name), digest)
    return (
        about.suite,
        about.suite_digest,
        SiteRow(
            name=about.name,
            line={"p_default": None, "regret": None, "recovery": None, **line,
                  "track": about.track},
            details={"summary": f"by {', '.join(about.authors)} ({about.licence})", "recovery": {},
                     **line.get("course", {})},
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


def _best_of(suite: SiteSuite, row: SiteRow) -> dict[str, dict[str, Any]]:
    """Return what a submission reached where it raises no flag; its settings lie in its logs."""
    raised = row.line["final"]["flags_by_scenario"]
    return {
        name: {"row": row.name, "score": float(np.mean(scores)), "repetition": best, "setting": {},
               "setting_score": float(scores[best])}
        for name, scores in zip(suite.scenarios, row.scores("final"), strict=True)
        if name not in raised
        for best in (int(np.argmax(scores)),)
    }  # fmt: skip


def _read(folder: Path) -> SiteSuite:
    path = folder / "results.json"
    text = read_text(path)
    try:
        data = parse_json(text)
        if data["kind"] != "board":
            raise ValueError(f"its kind is {quote(data['kind'])}")
        figures, costs = data["figures"], cost_rows(folder)
        asked = max(int(line["repetitions"]) for line in data["rows"])
        rows = [
            SiteRow(
                name=line["row"],
                line=line,
                details=figures["rows"].get(line["row"], {}),
                tuner=data["tuners"][line["row"]],
                versions=data["versions"],
                verification=Verification("self-reported"),
                folder=folder,
                cost=costs.get(line["row"], {}),
                asked=asked,
            )
            for line in data["rows"]
        ]
        return SiteSuite(
            figures["suite"], figures["suite_digest"], figures["protocol"], figures["files"],
            figures["best_known"], figures["checkpoints"], rows,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{path} is not the file of a board's results: {quote(str(error))}; "
            f"dcqcn-gym bench report {folder} makes it anew from the logs"
        ) from None


def _joined(old: SiteSuite, new: SiteSuite, folder: Path) -> SiteSuite:
    if old.digest != new.digest:
        raise RunError(
            f"{folder}: its {new.name!r} is another suite (digest {new.digest[:12]}) than that of "
            f"the folders before ({old.digest[:12]}); their rows did not meet the same traffic"
        )
    rows = list(old.rows)
    for row in new.rows:
        same = old.row(row.name)
        if same is None:
            rows.append(row)
        elif same.runs == row.runs:
            if row.submitted:  # what was submitted and verified stands for what was run here
                known = {key: same.line[key] for key in ("recovery",)}
                line = {**row.line, **known}
                details = {**row.details, "recovery": same.details.get("recovery", {})}
                rows[rows.index(same)] = replace(row, line=line, details=details, cost=same.cost)
        else:
            raise RunError(
                f"row {row.name!r} stands in {same.folder} and in {folder} with other figures; "
                "give one of them"
            )
    best = dict(old.best_known)
    for name, one in new.best_known.items():
        if name not in best or one["score"] > best[name]["score"]:
            best[name] = one
    return replace(old, rows=rows, best_known=best)


def _finished(suite: SiteSuite) -> SiteSuite:
    """Return the suite with its ranks, rows in their order, and what depends on all its rows."""
    clean = {row.name: row for row in suite.rows if row.ranked}
    ranks = bands({name: row.scores("final") for name, row in clean.items()})
    in_track: dict[str, int] = {}
    for track in TRACKS:
        some = {n: row.scores("final") for n, row in clean.items() if row.track == track}
        in_track |= bands(some)
    given = {r.name: r.scores("final") for r in suite.rows if r.complete and r.name != BASELINE}
    chance = p_values(given)
    place = {name: i for i, name in enumerate(ranks)}
    rows = sorted(
        (_against_all(suite, row, chance) for row in suite.rows),
        key=lambda row: (
            place.get(row.name, len(place)),
            -row.line["final"]["score"]["value"] if row.complete else math.inf,
            row.name,
        ),
    )
    return replace(suite, rows=rows, ranks=ranks, in_track=in_track)


def _against_all(suite: SiteSuite, row: SiteRow, chance: Mapping[str, float]) -> SiteRow:
    if not row.complete:
        return row
    best = np.array([suite.best_known.get(n, {}).get("score", np.nan) for n in suite.scenarios])
    lost = regret(row.scores("final"), best)
    names = zip(suite.scenarios, lost, strict=True)
    by_name = {name: float(v) if np.isfinite(v) else None for name, v in names}
    known = lost[np.isfinite(lost)]
    mean = float(np.mean(known)) if known.size else None
    line = {**row.line, "regret": mean, "p_default": chance.get(row.name)}
    return replace(row, line=line, details={**row.details, "regret": by_name})
