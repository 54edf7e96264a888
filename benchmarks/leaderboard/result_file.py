"""An entry's figures, as ``results.json`` of a leaderboard and of a submission hold them."""

from __future__ import annotations

from typing import Any, Literal

from dcqcn_gym.benchmarks.leaderboard.submission import RESULT, Submission
from dcqcn_gym.core.config import StrictModel, json_object, validate


class Score(StrictModel):
    """Mean S over the scenarios, and its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


class HarmLine(StrictModel):
    """Harm as an amount: :class:`~.harm.Harm`, ``beyond`` by scenario and figure."""

    tier: Literal["none", "mild", "severe"]
    share: float
    worst: float
    worst_run: float
    open_cells: int
    without_limit: int
    beyond: dict[str, dict[str, float]]


class Stage(StrictModel):
    """Online runs, or final ones; ``scores`` by scenario, one a repetition.

    ``rank`` is that within the tier of its ``harm``; the figures ``beside`` the score decide
    nothing.
    """

    score: Score
    utility: float
    improvement: float
    flags: dict[str, int]
    scores: dict[str, list[float]]
    flags_by_scenario: dict[str, list[str]]
    harm: HarmLine
    rank: int | None
    beside: dict[str, float | None]


class _Anytime(StrictModel):
    score: list[Score]
    scores: dict[str, list[float]]


class LearningCurve(StrictModel):
    """How the online runs went, by scenario; of settings least, median and largest value."""

    anytime: _Anytime
    utility: dict[str, list[float]]
    settings: dict[str, dict[str, tuple[float, float, float]]]


class EntryLine(StrictModel):
    """One entry; stages, bytes and curve are there when all its runs and the default's are.

    ``regret`` and ``recovery`` depend on the other entries.
    """

    entry: str
    category: str
    missing: int
    repetitions: int
    online: Stage | None = None
    final: Stage | None = None
    wire_bytes: float | None = None
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


def read_result(submission: Submission) -> EntryLine:
    """Return the result of a submission whose verdict says that it is one."""
    path = submission.folder / RESULT
    data = json_object(submission.read(RESULT), str(path))
    return validate({k: v for k, v in data.items() if k != "schema"}, EntryLine, source=str(path))
