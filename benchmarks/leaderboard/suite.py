"""Suites: frozen lists of scenarios with the protocol of a run, one folder each in configs/suites.

A suite is ``suite.toml`` and one TOML file per scenario. Each scenario's digest (SHA-256 of its
file) stands in ``suite.toml``, so an edited scenario is refused and an entry can say what it ran
on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dcqcn_gym.core.config import CONFIGS, StrictModel, load_toml, validate
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.files import read_text
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.envs.scenario.scenario import Scenario

SUITES = CONFIGS / "suites"
Third = Literal["steady", "shifting", "closed-loop"]
Count = Annotated[int, Field(ge=1)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class SuiteScenario(StrictModel):
    """A scenario of a suite."""

    name: str = Field(description="name of its file without .toml", pattern="^[a-z0-9-]+$")
    third: Third
    digest: Digest = Field(description="SHA-256 of the file")
    phases: Sequence[int] = Field((), description="intervals at which the traffic changes")


class SuiteFile(StrictModel):
    """``suite.toml``: scenarios and protocol; docs/leaderboard.md explains both."""

    name: str
    description: str
    intervals: Count = Field(description="budget of an online run, in monitor intervals")
    repetitions: Count = Field(description="online runs per scenario")
    slow_repetitions: Count = Field(description="the same for a tuner above slow_ms per decision")
    slow_ms: float = Field(20.0, gt=0, description="milliseconds per decision")
    final_intervals: Count = Field(description="intervals of a held-out run of what is recommended")
    seen_by: str = Field(description="which shipped policies were trained on these scenarios")
    protocol: Literal[2] = Field(description="version of the rules by which it is run and scored")
    scenarios: Sequence[SuiteScenario] = Field(min_length=1)


class Suite:
    """A loaded suite: its file's values and its checked scenarios."""

    def __init__(self, file: SuiteFile, folder: Path) -> None:
        self.file = file
        self.folder = folder

    @property
    def given(self) -> str:
        """What :func:`load_suite` takes for this suite: its name, or its folder's path."""
        if self.folder.parent == SUITES or self._is_packaged():
            return self.file.name
        return str(self.folder.absolute())

    def _is_packaged(self) -> bool:
        """Tell whether the suite of this name in the package is the same."""
        name = self.file.name
        return name in suite_names() and load_suite(name).digest == self.digest

    @cached_property
    def scenarios(self) -> dict[str, Scenario]:
        """The scenarios by name; ConfigError if a file is missing, edited or invalid."""
        return {scenario.name: self._load(scenario) for scenario in self.file.scenarios}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over ``suite.toml``'s values, the scenarios' digests among them."""
        return hashlib.sha256(self.file.model_dump_json().encode()).hexdigest()

    def _load(self, scenario: SuiteScenario) -> Scenario:
        path = self.folder / f"{scenario.name}.toml"
        text = read_text(path)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest != scenario.digest:
            raise ConfigError(
                f"{path} is not the scenario of suite {self.file.name!r}: its SHA-256 begins with "
                f"{digest[:12]}, expected {scenario.digest[:12]}; a suite is frozen, so restore "
                "the file or make a suite of your own name"
            )
        table = {"name": scenario.name, **parse_toml(text, str(path))}
        return validate(table, Scenario, source=str(path), folder=self.folder)


def suite_names() -> list[str]:
    """Return the names of the suites that come with the package."""
    return sorted(path.parent.name for path in SUITES.glob("*/suite.toml"))


def load_suite(name: str) -> Suite:
    """Return a suite by its name, or by the path of its folder.

    Raises UnknownNameError with a near match, or ConfigError.
    """
    known = suite_names()
    folder = SUITES / name if name in known else Path(name)
    if not (folder / "suite.toml").is_file():
        raise UnknownNameError("suite", name, known)
    return Suite(load_toml(folder / "suite.toml", SuiteFile), folder)
