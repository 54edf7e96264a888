"""``leaderboard.json``: what a folder of runs holds, checked before any of it is used.

It may come from another machine: its names become folders, and its numbers decide how much work
there is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.benchmarks.leaderboard.suite import Digest
from dcqcn_gym.core.config import ShortDumpModel
from dcqcn_gym.core.registry import is_file
from dcqcn_gym.envs.scenario.names import Name
from dcqcn_gym.runs.entries import Entry, unique
from dcqcn_gym.tuners import TUNERS, parse_settings

MOST_REPETITIONS = 999
"""Of a scenario: the logs' names number them with three digits at most."""

_Text = Annotated[str, Field(min_length=1, max_length=4096)]


class EntryTable(ShortDumpModel):
    """A tuner with its arguments and what it changes of every scenario."""

    later: ClassVar[Collection[str]] = ("code",)

    tuner: _Text
    tuner_args: dict[str, Any]
    changes: dict[str, Any] = Field(default_factory=dict)
    name: Name = Field(description="its name, which is its folder's")
    slow: bool = Field(default=False, description="whether it has fewer repetitions")
    code: Digest | None = Field(default=None, description="of a plug-in, when its runs began")

    @model_validator(mode="after")
    def _check_tuner(self) -> Self:
        if is_file(self.tuner):  # it may be of another machine
            return self
        TUNERS.check_name(self.tuner)
        if self.tuner in TUNERS.builtin and self.tuner_args:
            parse_settings(self.tuner, TUNERS.load(self.tuner), self.tuner_args)
        return self

    @property
    def entry(self) -> Entry:
        """What runs."""
        return Entry(self.tuner, self.tuner_args, self.changes, self.name)


class LeaderboardFile(ShortDumpModel):
    """The file; ``version`` made it."""

    later: ClassVar[Collection[str]] = ("salt",)

    suite: _Text = Field(description="a suite's name or its folder")
    suite_digest: Digest
    version: _Text
    repetitions: int = Field(ge=1, le=MOST_REPETITIONS)
    salt: str = Field(default="", max_length=256, description="of a season, once it is told")
    entries: tuple[EntryTable, ...] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _check(self) -> Self:
        unique("tuners", [(one.tuner, one.name, one) for one in self.entries])
        return self
