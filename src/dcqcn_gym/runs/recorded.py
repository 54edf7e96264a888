"""A run as a job that leaves its event log, and what a log that is already there means for it.

A finished log of the same run is left, an unfinished one continued, anything else made anew;
:func:`check_same` is for commands that refuse instead. The same run is the one with the same
header: scenario, tuner and its arguments, seed, budget, backend, versions.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.groups import DeviceSetting, setting_of
from dcqcn_gym.core.version import version_difference
from dcqcn_gym.runs.log import Line, Run, difference, read_run, short_json, write_json
from dcqcn_gym.runs.loop import Timing, Watch, run
from dcqcn_gym.runs.pool import step_back
from dcqcn_gym.runs.spec import RunSpec


@dataclass(frozen=True)
class RunResult:
    """What a run gives besides its log: the seconds that it took now, and the log's last line."""

    timing: Timing
    end: Line

    @property
    def recommended(self) -> DeviceSetting:
        """What its tuner recommends."""
        return setting_of(self.end["recommended"])


@dataclass(frozen=True)
class RunJob:
    """One run and the path of its log.

    ``timing`` is a file for the seconds that it took; a finished run without it is made again.
    ``watched`` keeps the worker's priority, for the run that a display compares with.
    """

    spec: RunSpec
    path: Path
    title: str = ""
    timing: Path | None = None
    watched: bool = False

    @property
    def name(self) -> str:
        """The title, or folder and name of the log."""
        return self.title or f"{self.path.parent.name}/{self.path.stem}"

    def work(self) -> RunResult:
        """Make or continue the log in a worker."""
        if not self.watched:
            step_back()
        return self.run()

    def run(self, watch: Watch | None = None) -> RunResult:
        """Make or continue the log in this process."""
        old = previous(self.path, self.spec)
        if old is not None and old.end is not None:
            if self.timing is None or self.timing.exists():
                return RunResult(Timing(0.0, 0.0, 0.0, 0), old.end)
            old = None  # a replay would not take the time that the file is to hold
        timing = run(self.spec, self.path, replay=old, watch=watch)
        if self.timing is not None:
            write_json(self.timing, asdict(timing))
        return RunResult(timing, end_of(self.path))


def previous(path: Path, spec: RunSpec) -> Run | None:
    """Return the log of the same run, finished or not, if there is one."""
    try:
        old = read_run(path)
    except RunError:
        return None
    return old if old.header == _header(spec) else None


def check_same(recorded: Run, spec: RunSpec) -> None:
    """Raise RunError naming other code, or the first argument unlike the recorded run's."""
    old, new = recorded.header, _header(spec)
    if old != new:
        versions = old.get("versions")
        if isinstance(versions, dict) and (differs := version_difference(versions)):
            raise RunError(
                f"{recorded.path} was made by other code: {differs}; go on with that one, or give "
                "--force to start again"
            )
        part, before, after = difference(old, new)
        raise RunError(
            f"{recorded.path} was made with {part} = {short_json(before)}, "
            f"now it is {short_json(after)}; give the same arguments, or --force to start again"
        )


def _header(spec: RunSpec) -> Line:
    """Return the first line of the log as it is read back."""
    return dict(json.loads(json.dumps(spec.header())))


def end_of(path: Path) -> Line:
    """Return the last line of a finished run's log; RunError if it is not finished."""
    end = read_run(path).end
    if end is None:
        raise RunError(f"{path} ends before its run did; run it again")
    return end


def held_out_job(
    spec: RunSpec, setting: DeviceSetting, seed: int, intervals: int, path: Path, title: str = ""
) -> RunJob:
    """Return the run that judges a setting on a held-out seed."""
    judging = spec.with_setting(setting, seed, intervals)
    return RunJob(judging, path, title and f"{title} on held-out seed {seed}")
