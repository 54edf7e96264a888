"""An entry's figures, as ``results.json`` of a leaderboard and of a submission hold them."""

from __future__ import annotations

from typing import Any

from dcqcn_gym.benchmarks.leaderboard.bootstrap import Score
from dcqcn_gym.benchmarks.leaderboard.submission import RESULT, Submission
from dcqcn_gym.core.config import StrictModel, json_object, validate


class HarmLine(StrictModel):
    """Harm in amounts: the ``share`` of scenarios on which it is seen, and what it is there.

    ``beyond`` has, by scenario, the changes of the guardrails that are exceeded there, the dearest
    first, and ``price`` what the scenario pays for them, both logarithms.
    """

    share: float
    price: dict[str, float]
    beyond: dict[str, dict[str, float]]

    @property
    def worst(self) -> tuple[str, str, float] | None:
        """The dearest scenario, its dearest guardrail and the change; None without harm."""
        if not self.beyond:
            return None
        scenario = max(self.beyond, key=lambda name: self.price[name])
        guardrail, change = next(iter(self.beyond[scenario].items()))
        return scenario, guardrail, change


class Stage(StrictModel):
    """Online runs, or final ones; ``risks`` (R) and ``scores`` (S) by scenario, one a repetition.

    ``classes`` has the mean gain of each class of sizes by scenario. The figures ``beside`` R
    decide nothing; of the two stages only online has a ``rank``.
    """

    risk: Score
    score: Score
    utility: float
    risks: dict[str, list[float]]
    scores: dict[str, list[float]]
    classes: dict[str, list[float | None]]
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
    """One entry; stages, bytes and curve are there when all its runs and the default's are."""

    entry: str
    category: str
    missing: int
    repetitions: int
    online: Stage | None = None
    final: Stage | None = None
    wire_bytes: float | None = None
    learning_curve: LearningCurve | None = None

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
