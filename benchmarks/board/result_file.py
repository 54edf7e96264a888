"""``results.json`` of a submission as the site may read it, before anybody has verified it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from dcqcn_gym.benchmarks.board.submission import RESULT, SCHEMA, Submission
from dcqcn_gym.core.config import StrictModel, json_object, validate
from dcqcn_gym.core.errors import ConfigError, quote

__all__ = ["check_fits", "read_result"]


class _Score(StrictModel):
    value: float
    low: float
    high: float


class _Stage(StrictModel):
    score: _Score
    utility: float
    improvement: float
    flags: dict[str, int]
    scores: dict[str, list[float]]
    flags_by_scenario: dict[str, list[str]]


class _Anytime(StrictModel):
    score: list[_Score]
    scores: dict[str, list[float]]


class _Course(StrictModel):
    anytime: _Anytime
    utility: dict[str, list[float]]
    settings: dict[str, dict[str, tuple[float, float, float]]]


class _Result(StrictModel):
    """The file; its fields are those of :func:`~dcqcn_gym.benchmarks.board.results.row_line`."""

    schema_version: int = Field(alias="schema", ge=SCHEMA, le=SCHEMA)
    row: str
    track: str
    band: None
    missing: int = Field(ge=0, le=0)
    repetitions: int
    online: _Stage
    final: _Stage
    wire_bytes: float
    course: _Course


def read_result(submission: Submission) -> dict[str, Any]:
    """Return the result of a submission; ConfigError, in one sentence, if it is none."""
    path, about = submission.folder / RESULT, submission.about
    data = json_object(submission.read(RESULT), str(path))
    found = validate(data, _Result, source=str(path))
    for key, said, wanted in (
        ("row", found.row, about.name),
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
    course = line["course"]
    for key, table in (
        *((f"{stage}.scores", line[stage]["scores"]) for stage in ("online", "final")),
        ("course.utility", course["utility"]),
        ("course.settings", course["settings"]),
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
    if len(course["anytime"]["score"]) != len(checkpoints):
        raise ConfigError(f"{submission}: course.anytime.score: expected {len(checkpoints)} points")
    if not all(course["utility"].values()):
        raise ConfigError(f"{submission}: course.utility has no values")
