"""What the pages show: entries and suites, as they were read and joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.categories import APART
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine, HarmLine
from dcqcn_gym.benchmarks.leaderboard.verification import STATUSES, Verification
from dcqcn_gym.core.interval import FloatArray

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
    folder: Path
    verification: Verification | None = None
    cost: Mapping[str, float] = field(default_factory=dict)
    submitted: bool = False
    asked: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)
    link: str = ""
    """What a submission replaces of the scenarios, and where its code lives."""

    @property
    def complete(self) -> bool:
        """True if every run of the entry is there."""
        return self.line.final is not None

    @property
    def category(self) -> str:
        """One of the categories."""
        return self.line.category

    def risks(self, stage: str) -> FloatArray:
        """Return R of a stage, of shape (scenarios, repetitions)."""
        return np.array(list(self.line.stage(stage).risks.values()), dtype=np.float64)

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
        """True if the entry ran less often than it has to for a rank."""
        return self.line.repetitions < self.asked

    @property
    def status(self) -> str:
        """One of :data:`SHOWN_STATUSES`."""
        return HERE if self.verification is None else self.verification.status

    @property
    def said(self) -> str:
        """Its status, and the names of what was found."""
        found = () if self.verification is None else self.verification.findings
        return "; ".join([self.status, *(one.name for one in found)])

    @property
    def convicted(self) -> bool:
        """True if its verifier found what takes the rank."""
        return self.verification is not None and self.verification.convicted

    @property
    def believed(self) -> bool:
        """True if its figures count: measured here. What authors report is a claim."""
        return not self.submitted

    @property
    def ranked(self) -> bool:
        """True if the entry can have a rank: measured here, and nothing was found against it."""
        out = self.category == "oracle" or self.too_few or not self.believed
        return self.complete and not out and not self.convicted

    @property
    def harm(self) -> HarmLine | None:
        """Its harm while it tunes, in amounts; None while runs are missing."""
        return self.line.online.harm if self.line.online else None

    @property
    def milliseconds(self) -> float | None:
        """The tuner's own CPU time for a decision, in ms; None if it was not measured."""
        return self.cost.get("tuner_ms_per_interval")

    @property
    def division(self) -> str:
        """With whom it is ranked: tuners, or those of its category."""
        return self.category if self.category in APART else "tuners"


@dataclass(frozen=True)
class SiteSuite:
    """A suite with all its entries, best first; ``ranks`` are those within each division."""

    name: str
    digest: str
    protocol: Mapping[str, Any]
    files: Mapping[str, str]
    checkpoints: Sequence[float]
    entries: Sequence[SiteEntry]
    season: Mapping[str, Any] = field(default_factory=dict)
    """Its salt and whose entries they are."""
    ranks: Mapping[str, int] = field(default_factory=dict)

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
