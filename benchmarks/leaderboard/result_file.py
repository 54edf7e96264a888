"""An entry's figures, as ``results.json`` of a leaderboard and of a submission hold them.

A submission's may be read by the site before anybody has verified it, so every figure is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from dcqcn_gym.benchmarks.leaderboard.harm import FIGURES
from dcqcn_gym.benchmarks.leaderboard.submission import RESULT, SCHEMA, Submission
from dcqcn_gym.core.config import StrictModel, json_object, validate
from dcqcn_gym.core.errors import ConfigError, quote

_S: TypeAlias = Annotated[float, Field(ge=-20, le=20)]
"""A score; 20 is a factor of 485 million."""
_MOST_KNOBS = 10_000
_LONGEST = 120
_Figure: TypeAlias = Annotated[float, Field(ge=-1e12, le=1e12)]


class Score(StrictModel):
    """Mean S over the scenarios, and its interval."""

    value: _S
    low: _S
    high: _S

    def __str__(self) -> str:
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


class HarmLine(StrictModel):
    """Harm as an amount: :class:`~.harm.Harm`, ``beyond`` by scenario and figure."""

    tier: Literal["none", "mild", "severe"]
    share: float = Field(ge=0, le=1)
    worst: float = Field(ge=0, le=20)
    worst_run: float = Field(ge=0, le=20)
    open_cells: int = Field(ge=0, le=1_000_000)
    without_limit: int = Field(ge=0, le=1_000_000)
    beyond: dict[str, dict[str, float]]


class Stage(StrictModel):
    """Online runs, or final ones; ``scores`` by scenario, one a repetition.

    ``rank`` is that within the tier of its ``harm``; the figures ``beside`` the score decide
    nothing.
    """

    score: Score
    utility: _Figure
    improvement: float = Field(ge=0, le=1)
    flags: dict[str, int]
    scores: dict[str, list[_S]]
    flags_by_scenario: dict[str, list[str]]
    harm: HarmLine
    rank: int | None
    beside: dict[str, float | None]


class _Anytime(StrictModel):
    score: list[Score]
    scores: dict[str, list[_S]]


class LearningCurve(StrictModel):
    """How the online runs went, by scenario; of settings least, median and largest value."""

    anytime: _Anytime
    utility: dict[str, list[_Figure]]
    settings: dict[str, dict[str, tuple[_Figure, _Figure, _Figure]]]


class EntryLine(StrictModel):
    """One entry; stages, bytes and curve are there when all its runs and the default's are.

    ``regret`` and ``recovery`` depend on the other entries.
    """

    entry: str
    category: str
    missing: int = Field(ge=0)
    repetitions: int
    online: Stage | None = None
    final: Stage | None = None
    wire_bytes: float | None = Field(default=None, ge=0, le=1e15)
    learning_curve: LearningCurve | None = None
    regret: float | None = None
    recovery: float | None = None

    def stage(self, name: str) -> Stage:
        """Return a stage of a complete entry."""
        found: Stage | None = getattr(self, name)
        assert found is not None
        return found

    def data(self) -> dict[str, Any]:
        """Return as JSON holds it what is known."""
        return self.model_dump(mode="json", exclude_unset=True)


class _Submitted(EntryLine):
    """The file of a submission."""

    schema_version: int = Field(alias="schema", ge=SCHEMA, le=SCHEMA)
    missing: int = Field(ge=0, le=0)
    online: Stage
    final: Stage
    wire_bytes: float = Field(ge=0, le=1e15)
    learning_curve: LearningCurve
    regret: None = None
    recovery: None = None


def read_result(submission: Submission) -> EntryLine:
    """Return the result of a submission; ConfigError, in one sentence, if it is none."""
    path, about = submission.folder / RESULT, submission.about
    data = json_object(submission.read(RESULT), str(path))
    found = validate(data, _Submitted, source=str(path))
    for key, said, wanted in (
        ("entry", found.entry, about.name),
        ("repetitions", found.repetitions, about.repetitions),
    ):
        if said != wanted:
            raise ConfigError(
                f"{path}: {key} = {quote(said)}; submission.toml says {quote(wanted)}"
            )
    return found


def check_fits(
    submission: str,
    line: EntryLine,
    scenarios: Sequence[str],
    checkpoints: Sequence[float],
    intervals: int,
) -> None:
    """Raise ConfigError for a result that has other scenarios, runs or flags than its suite."""
    curve = line.learning_curve
    assert curve is not None
    for key, names in (
        *((f"{stage}.scores", list(line.stage(stage).scores)) for stage in ("online", "final")),
        ("learning_curve.utility", list(curve.utility)),
        ("learning_curve.settings", list(curve.settings)),
    ):
        if names != list(scenarios):
            raise ConfigError(f"{submission}: {key} has other scenarios than its suite")
    for stage in ("online", "final"):
        for name, scores in line.stage(stage).scores.items():
            if len(scores) != line.repetitions:
                raise ConfigError(
                    f"{submission}: {stage}.scores.{name} has {len(scores)} runs; expected "
                    f"{line.repetitions}"
                )
    if len(curve.anytime.score) != len(checkpoints):
        raise ConfigError(
            f"{submission}: learning_curve.anytime.score: expected {len(checkpoints)} points"
        )
    if not all(0 < len(values) <= intervals for values in curve.utility.values()):
        raise ConfigError(f"{submission}: learning_curve.utility: expected 1 to {intervals} values")
    for settings in curve.settings.values():
        if len(settings) > _MOST_KNOBS or max(map(len, settings), default=0) > _LONGEST:
            raise ConfigError(f"{submission}: learning_curve.settings has no names of knobs")
    for stage in ("online", "final"):
        _check_flags(f"{submission}: {stage}", line.stage(stage))


def _check_flags(where: str, stage: Stage) -> None:
    """Raise ConfigError unless both counts of the flags agree and all are figures with a limit."""
    found: dict[str, int] = {}
    for flags in stage.flags_by_scenario.values():
        for flag in set(flags):
            found[flag] = found.get(flag, 0) + 1
    if found != stage.flags or not found.keys() <= {figure.name for figure in FIGURES}:
        raise ConfigError(f"{where}.flags do not agree with its flags_by_scenario")
    if not stage.flags_by_scenario.keys() <= stage.scores.keys():
        raise ConfigError(f"{where}.flags_by_scenario has other scenarios than its suite")
