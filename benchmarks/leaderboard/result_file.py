"""``results.json`` of a submission as the site may read it, before anybody has verified it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from dcqcn_gym.benchmarks.leaderboard.submission import RESULT, SCHEMA, Submission
from dcqcn_gym.core.config import StrictModel, json_object, validate
from dcqcn_gym.core.errors import ConfigError, quote

__all__ = ["check_fits", "read_result"]


_S: TypeAlias = Annotated[float, Field(ge=-20, le=20)]
"""A score; 20 is a factor of 485 million."""
_Figure: TypeAlias = Annotated[float, Field(ge=-1e12, le=1e12)]


class _Score(StrictModel):
    value: _S
    low: _S
    high: _S


class _Stage(StrictModel):
    score: _Score
    utility: _Figure
    improvement: float = Field(ge=0, le=1)
    flags: dict[str, int]
    scores: dict[str, list[_S]]
    flags_by_scenario: dict[str, list[str]]


class _Anytime(StrictModel):
    score: list[_Score]
    scores: dict[str, list[_S]]


class _LearningCurve(StrictModel):
    anytime: _Anytime
    utility: dict[str, list[_Figure]]
    settings: dict[str, dict[str, tuple[_Figure, _Figure, _Figure]]]


class _Result(StrictModel):
    """The file; its fields are those of :func:`~.results.entry_line`."""

    schema_version: int = Field(alias="schema", ge=SCHEMA, le=SCHEMA)
    entry: str
    category: str
    rank_group: None
    missing: int = Field(ge=0, le=0)
    repetitions: int
    online: _Stage
    final: _Stage
    wire_bytes: float = Field(ge=0, le=1e15)
    learning_curve: _LearningCurve


def read_result(submission: Submission) -> dict[str, Any]:
    """Return the result of a submission; ConfigError, in one sentence, if it is none."""
    path, about = submission.folder / RESULT, submission.about
    data = json_object(submission.read(RESULT), str(path))
    found = validate(data, _Result, source=str(path))
    for key, said, wanted in (
        ("entry", found.entry, about.name),
        ("repetitions", found.repetitions, about.repetitions),
    ):
        if said != wanted:
            raise ConfigError(
                f"{path}: {key} = {quote(said)}; submission.toml says {quote(wanted)}"
            )
    return data


def check_fits(
    submission: str, line: Mapping[str, Any], scenarios: Sequence[str], checkpoints: Sequence[float]
) -> None:
    """Raise ConfigError for a result that has other scenarios or runs than its suite."""
    curve = line["learning_curve"]
    for key, table in (
        *((f"{stage}.scores", line[stage]["scores"]) for stage in ("online", "final")),
        ("learning_curve.utility", curve["utility"]),
        ("learning_curve.settings", curve["settings"]),
    ):
        if list(table) != list(scenarios):
            raise ConfigError(f"{submission}: {key} has other scenarios than its suite")
    for stage in ("online", "final"):
        for name, scores in line[stage]["scores"].items():
            if len(scores) != line["repetitions"]:
                raise ConfigError(
                    f"{submission}: {stage}.scores.{name} has {len(scores)} runs; expected "
                    f"{line['repetitions']}"
                )
    if len(curve["anytime"]["score"]) != len(checkpoints):
        raise ConfigError(
            f"{submission}: learning_curve.anytime.score: expected {len(checkpoints)} points"
        )
    if not all(curve["utility"].values()):
        raise ConfigError(f"{submission}: learning_curve.utility has no values")
