"""Action logs again: the recorded settings on the same traffic have to give the same bytes.

A replay is a run whose tuner says what is in the log. It passes the guard of any tuner, so that a
log with a setting or a recommendation out of range is refused as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import DcqcnGymError, RunError, TunerError, quote
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.groups import setting_of
from dcqcn_gym.runs.log import MOST_LOG_BYTES, Run, encode_line, read_run, short_json
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner
from dcqcn_gym.tuners.guard import GuardedTuner


class _Recorded(Tuner[Proposal]):
    """Says what a log holds; ``tuning`` is asked once in every interval."""

    def __init__(self, recorded: Run) -> None:
        super().__init__()
        self._recorded = recorded
        self._at = 0

    def ask(self) -> Proposal:
        """Return what was in force from the coming interval on."""
        if self._at == len(self._recorded.intervals):
            raise TunerError("the run goes on after the last recorded interval")
        return setting_of(self._recorded.intervals[self._at]["setting"])

    def tell(self, outcome: Outcome) -> None:
        """Learn nothing."""

    @property
    def tuning(self) -> bool:
        """Whether round trips and pauses were sent, which the bytes on the wire show."""
        self._at += 1
        lines = self._recorded.intervals
        return self._at > len(lines) or lines[self._at - 1]["wire"]["metrics_bytes"] > 0

    def recommend(self) -> Proposal:
        """Return what was recommended."""
        return setting_of((self._recorded.end or {})["recommended"])


@dataclass(frozen=True)
class _Replay(RunSpec):
    recorded: Run | None = None

    def make_tuner(self) -> GuardedTuner:
        assert self.recorded is not None
        return GuardedTuner(self.tuner, _Recorded(self.recorded))


@dataclass(frozen=True)
class ReplayJob:
    """One log and the run that it has to be; ``path`` is the file of its replay.

    ``shown`` names the log in what is said of it.
    """

    spec: RunSpec
    given: Path
    path: Path
    shown: str

    @property
    def name(self) -> str:
        """The log's name."""
        return f"replay of {self.shown}"

    def _wanted_header(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first line that the log must have.

        Which code made it is the log's own word: the replay shows whether this code gives the same.
        """
        header = dict(self.spec.header())
        said = given.get("versions")
        own = header["versions"]
        if isinstance(said, dict) and said.keys() <= own.keys():
            header["versions"] = {**said, "observation": own["observation"]}
        return header

    def work(self) -> None:
        """Replay the log; RunError, which names line and key, if it gives other bytes."""
        try:
            recorded = read_run(self.given)
        except RunError as error:
            raise RunError(str(error).replace(str(self.given), self.shown)) from None
        if recorded.end is None:
            raise RunError(f"{self.shown}: the run is not finished")
        wanted = encode_line(self._wanted_header(recorded.header))
        given = read_file(self.given, MOST_LOG_BYTES)
        if not given.startswith(wanted):
            words = _line_difference(given.partition(b"\n")[0], wanted)
            raise RunError(
                f"{self.shown}: line 1 is not what the suite asks of this entry: {words}"
            )
        spec = _Replay(
            self.spec.scenario, self.spec.tuner, self.spec.seed, self.spec.intervals,
            self.spec.backend, self.spec.tuner_args, self.spec.hosting, self.spec.tuner_seed,
            self.spec.part, recorded=recorded,
        )  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            run(spec, self.path)
        except (KeyError, TypeError) as error:
            raise RunError(f"{self.shown}: a line lacks {quote(str(error))}") from None
        except DcqcnGymError as error:
            raise RunError(f"{self.shown}: {error}") from None
        found = difference(given, read_file(self.path, MOST_LOG_BYTES))
        if found is not None:
            raise RunError(f"{self.shown}: its settings do not give what it holds: {found}")


def _body(log: bytes) -> bytes:
    """Return a log without its first line."""
    return log.partition(b"\n")[2]


def difference(given: bytes, made: bytes) -> str | None:
    """Return the first difference of two logs behind their first lines, None if there is none.

    The first line says which code made each of the two, so it may differ.
    """
    given, made = _body(given), _body(made)
    if given == made:
        return None
    for number, (one, other) in enumerate(
        zip_longest(given.splitlines(), made.splitlines(), fillvalue=b"{}"), start=2
    ):
        if one != other:
            return f"line {number}, {_line_difference(one, other)}"
    return "line ends"


def _line_difference(given: bytes, made: bytes) -> str:
    """Return the first key that differs, and both values."""
    key, old, new = _differing("", json.loads(given), json.loads(made))
    return f"{key or 'order of keys'} is {short_json(old)}; expected {short_json(new)}"


def _differing(key: str, old: Any, new: Any) -> tuple[str, Any, Any]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**new, **old}:
            if old.get(name) != new.get(name):
                return _differing(f"{key}.{name}" if key else name, old.get(name), new.get(name))
    return key, old, new
