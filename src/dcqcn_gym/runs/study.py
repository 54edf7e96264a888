"""A study: many jobs in one folder, ``study.json`` that says what they are, and one rule.

*The same continues, more is added, other is refused with what differs.*

``same`` is what all jobs of a folder have in common, such as the number of intervals. ``parts`` are
what they differ in, by axis and name: cases, entries, seeds; a job has one name of every axis. A
folder takes further names. It refuses a name that now means something else, and another value in
``same``; ``--force`` then replaces what is there. Comparisons, sweeps, evaluations, the figures of
papers and the leaderboard's runs are studies, ``results.json`` is what each of them leaves. ::

    study = Study("sweep", {"intervals": 20}, {"point": points, "seed": {"1": None}}, jobs)
    with open_study(study, out, force=force, quiet=quiet) as progress:
        carry_out(study.jobs.values(), workers=workers, progress=progress)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from dcqcn_gym.core.config import StrictModel, load_json
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.version import code_versions, version_difference
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.claim import STUDY_FILE, claim
from dcqcn_gym.runs.interrupt import interruptible, same_command
from dcqcn_gym.runs.log import difference, short_json, write_json
from dcqcn_gym.runs.progress import open_progress


class LeavesFiles(Protocol):
    """A job, as far as a study needs it."""

    @property
    def files(self) -> Sequence[Path]:
        """Every file that it leaves in the study's folder."""


J = TypeVar("J", bound=LeavesFiles)


class StudyFile(StrictModel):
    """``study.json``. ``parts`` are all that the folder ever took, not those of the last call."""

    kind: str
    """The command that the folder belongs to."""
    versions: dict[str, str]
    """The code that made it."""
    command: str
    """What makes the same again."""
    same: dict[str, Any]
    parts: dict[str, dict[str, Any]]
    plan: dict[str, Any]
    """What was asked for in the last call, for a command that continues without arguments."""


@dataclass(frozen=True)
class Study(Generic[J]):
    """Jobs by their names on each axis of ``parts``, in the order in which they are carried out.

    Values in ``same``, ``parts`` and ``plan`` are what JSON can hold.
    """

    kind: str
    same: Mapping[str, Any]
    parts: Mapping[str, Mapping[str, Any]]
    jobs: Mapping[tuple[str, ...], J]
    plan: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""

    def begin(self, out: Path, *, force: bool = False) -> None:
        """Write ``study.json``, make the folder if need be; RunError names what differs there.

        Files at the place of a job that the folder does not know yet are not its own: they go.
        ``force`` replaces what the folder holds.
        """
        held = None if force else self.check(out)
        known: Mapping[str, Mapping[str, Any]] = {} if held is None else held.parts
        for names, job in self.jobs.items():
            # a part may have meant something else when these files were made
            if not all(n in known.get(axis, ()) for axis, n in zip(self.parts, names, strict=True)):
                for path in job.files:
                    path.unlink(missing_ok=True)
        now = StudyFile(
            kind=self.kind,
            versions=code_versions(),
            command=self.command,
            same=_as_json(self.same),
            parts={
                axis: {**known.get(axis, {}), **_as_json(self.parts[axis])} for axis in self.parts
            },
            plan=_as_json(self.plan),
        )
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
        if now != held:
            write_json(out / STUDY_FILE, now.model_dump())

    def check(self, out: Path) -> StudyFile | None:
        """Return what ``out`` holds of such a study; RunError naming what differs."""
        held = held_study(out, self.kind)
        if held is None:
            return None
        if differs := version_difference(held.versions):
            raise RunError(
                f"{out} was made by other code: {differs}; go on with that one, or give another "
                "--out, or --force to replace what is there"
            )
        pairs = [("", held.same, _as_json(self.same))]
        for axis, named in self.parts.items():
            before = held.parts.get(axis, {})
            after = {name: what for name, what in _as_json(named).items() if name in before}
            pairs += [(f"{axis} {name}", before[name], what) for name, what in after.items()]
        for where, old, new in pairs:
            if old != new:
                words, before, after = difference(old, new)
                raise RunError(
                    f"{out} was made with {', '.join(filter(None, (where, words)))} = "
                    f"{short_json(before)}, now it is {short_json(after)}; give the same, another "
                    "--out, or --force to replace what is there"
                )
        return held


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(values)))


def held_study(out: Path, kind: str) -> StudyFile | None:
    """Return what a folder of this kind holds; None if it holds no such study.

    Raises RunError for a file that is damaged.
    """
    path = out / STUDY_FILE
    if not path.exists():
        return None
    try:
        found = load_json(path, StudyFile)
    except ConfigError as error:
        raise RunError(f"{error}; give another --out, or --force to replace it") from None
    return found if found.kind == kind else None


@contextmanager
def open_study(
    study: Study[J], out: Path, *, force: bool = False, quiet: bool = False
) -> Iterator[Progress]:
    """Hold ``out`` for a study while the context lasts; yield what shows how far its jobs are.

    Ctrl-C ends the command in one sentence, which says how it is continued. Raises RunError if the
    folder is in use, belongs to another command or holds another study.
    """
    advice = f"{out} holds what is finished: {same_command(force)} continues it"
    with (
        claim(out, study.kind, force=force),
        interruptible(advice),
        open_progress(quiet=quiet) as progress,
    ):
        study.begin(out, force=force)
        yield progress
