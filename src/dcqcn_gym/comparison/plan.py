"""What a comparison of tuners, a sweep or another study runs: a plan, which TOML can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import CONFIGS, ShortDumpModel, StrictModel, load_toml, validate
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.envs.scenario.names import Name
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.traffic_choice import as_chosen
from dcqcn_gym.runs.entries import (
    FIRST_TRAINING_SEED,
    Entry,
    changed_scenario,
    check_runs,
    evaluation_seeds,
    unique,
)
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.results import tuner_digest
from dcqcn_gym.runs.study import Study
from dcqcn_gym.runs.trials import Trial

STUDIES = CONFIGS / "studies"
Count = Annotated[int, Field(ge=1, le=10**9)]
Seeds = Annotated[int, Field(ge=1, le=999)]


class Case(ShortDumpModel):
    """A scenario with changes: a column of a table, or a table of its own."""

    later: ClassVar[tuple[str, ...]] = ("window_ms", "scale")

    scenario: str
    name: str = Field(default="", max_length=100, description="among cases of its scenario")
    changes: dict[str, Any] = Field(default_factory=dict, description="scenario keys, by table")
    window_ms: tuple[float, float] | None = Field(
        default=None, description="this stretch of its trace alone"
    )
    scale: float | None = Field(default=None, gt=0, le=1, description="of its jobs")

    @cached_property
    def loaded(self) -> Scenario:
        """The scenario as it is run."""
        found = load_scenario(self.scenario)
        found = changed_scenario(found, self.changes, f"case {self.name or found.name}")
        return as_chosen(found, self.window_ms, self.scale)

    @property
    def title(self) -> str:
        """What it is called in tables."""
        own = self.loaded.name
        return f"{own}, {self.name}" if self.name else own

    @property
    def folder(self) -> str:
        """Where its runs lie."""
        own = self.loaded.name
        return f"{own}-{_folder(self.name)}" if self.name else own


class PlanEntry(StrictModel):
    """A tuner with its arguments, and what it changes of every case."""

    name: Name
    tuner: str = Field(default="", description="default: the name")
    tuner_args: dict[str, Any] = Field(default_factory=dict)
    changes: dict[str, Any] = Field(default_factory=dict)
    backend: str = "native"
    held_out_backend: str = Field(default="", description="of held-out runs; default: the same")

    @property
    def entry(self) -> Entry:
        """What runs."""
        return Entry(self.tuner or self.name, self.tuner_args, self.changes, self.name)

    @property
    def identity(self) -> dict[str, Any]:
        """What it runs, by content: a log names a policy's file, and not what that held."""
        code = tuner_digest(self.entry.tuner, self.tuner_args)
        return {**self.model_dump(mode="json"), "tuner": self.entry.tuner, "code": code}


class TableOf(StrictModel):
    """A table of the study; ``against`` are entries, or for ``places`` a case, to compare with."""

    kind: Literal["acting", "differences", "places", "held-out", "fleet", "classes", "iterations"]
    against: tuple[str, ...] = ()
    of: str = Field(default="", description="differences: whose")


class Plan(StrictModel):
    """What a study runs. ``traffic``: seeds 1..``seeds``, or those that no tuning run has."""

    description: str
    intervals: Count
    seeds: Seeds
    traffic: Literal["numbered", "held-out"] = "numbered"
    seed: int = Field(default=1, ge=0, description="the first, or what chooses held-out ones")
    held_out_seeds: Annotated[int, Field(ge=0, le=999)] = 0
    held_out_intervals: Count = 20
    cases: tuple[Case, ...] = Field(min_length=1)
    entries: tuple[PlanEntry, ...] = Field(min_length=1)
    tables: tuple[TableOf, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        unique("cases", [(c.scenario, c.folder, c.loaded.model_dump_json()) for c in self.cases])
        unique("entries", [(e.entry.tuner, _folder(e.name), e.entry) for e in self.entries])
        last = self.every_seed[-1]
        if self.traffic == "held-out" and last >= FIRST_TRAINING_SEED:
            raise ConfigError(
                f"seed = {self.seed}: its traffic seeds end at {last}, and from "
                f"{FIRST_TRAINING_SEED} on they are those of trainings; give a smaller one"
            )
        known = [entry.name for entry in self.entries] + [case.title for case in self.cases]
        for name in (name for table in self.tables for name in (*table.against, table.of) if name):
            if name not in known:
                raise UnknownNameError("entry or case", name, known)
        runs = len(self.cases) * len(self.entries) * self.seeds * (1 + self.held_out_seeds)
        check_runs(runs, f"{len(self.entries)} entries with {self.seeds} seeds")
        return self

    def changed(self, **values: object) -> Plan:
        """Return the plan with other values, None: as it is; checked."""
        given = {key: value for key, value in values.items() if value is not None}
        return validate({**self.model_dump(), **given}, Plan, source="study")

    @property
    def every_seed(self) -> list[int]:
        """The seeds of the runs."""
        if self.traffic == "numbered":
            return list(range(self.seed, self.seed + self.seeds))
        return evaluation_seeds(self.seed, self.seeds)

    @property
    def judged_seeds(self) -> int:
        """How many seeds an entry is judged on."""
        return self.seeds * (self.held_out_seeds or 1)

    def trials(self, out: Path, *, deadline_s: float | None = None, sharing: int = 0) -> Trials:
        """Return the runs of each case and entry by their titles, a trial per seed.

        ``deadline_s`` bounds a decision of a plug-in, and decides no byte; ``sharing``: as in
        :class:`~dcqcn_gym.runs.trials.Trial`.
        """
        hosting = Hosting() if deadline_s is None else Hosting(deadline_s)
        found = {}
        for case in self.cases:
            scenario, place = case.loaded, out / case.folder
            for entry in self.entries:
                folder = place / _folder(entry.name)
                spec = entry.entry.spec(scenario, 0, self.intervals, entry.backend)
                spec = replace(spec, hosting=hosting)
                found[case.title, entry.name] = [
                    Trial(replace(spec, seed=seed), folder, self.held_out_seeds,
                          self.held_out_intervals, entry.held_out_backend, sharing)
                    for seed in self.every_seed
                ]  # fmt: skip
        return found

    def study(self, kind: str, trials: Trials, command: str = "", **same: object) -> Study[Trial]:
        """Return the study of the plan's trials, seed by seed, so that a cut one is balanced.

        ``same``: what its folder holds to besides the number of intervals.
        """
        lengths = {"intervals": self.intervals, "held_out_intervals": self.held_out_intervals}
        return Study(
            kind=kind,
            same={**same, **lengths},
            parts={
                "case": {case.title: case.loaded.model_dump(mode="json") for case in self.cases},
                "entry": {entry.name: entry.identity for entry in self.entries},
                "seed": {str(seed): None for seed in self.every_seed},
            },
            jobs={
                (*names, str(seed)): several[i]
                for i, seed in enumerate(self.every_seed)
                for names, several in trials.items()
            },
            plan=self.model_dump(mode="json"),
            command=command,
        )


Trials = Mapping[tuple[str, str], Sequence[Trial]]
"""The runs of each case and entry, a trial per seed."""


def check(trials: Trials) -> None:
    """Raise what the first run of a case and entry would raise at its start; writes nothing."""
    for several in trials.values():
        several[0].spec.check()


def _folder(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", name)


def study_names() -> list[str]:
    """Return the names of the studies that come with the package."""
    return sorted(path.stem for path in STUDIES.glob("*.toml"))


def load_plan(name: str) -> Plan:
    """Return a study's plan by its name or from a TOML file; UnknownNameError or ConfigError."""
    known = study_names()
    if name not in known and not name.endswith(".toml"):
        raise UnknownNameError("study", name, known)
    return load_toml(STUDIES / f"{name}.toml" if name in known else Path(name), Plan)
