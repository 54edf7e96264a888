"""Read the run of another program: its interval reports, setting, seed and cost.

The program ``dcqcn-ns3`` writes ``reports.jsonl``, one report a line as
:func:`~dcqcn_gym.envs.backends.report_dict.write_reports` has it, and ``run.json``: scenario, seed,
the setting, and what it cost. :func:`~dcqcn_gym.simulation.run.simulate` makes of them
the same files as of a network of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel, validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport, LiveFlows
from dcqcn_gym.core.knobs import KnobTable, Setting
from dcqcn_gym.envs.backends.report_dict import read_reports
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.simulation.clock import Spent


@dataclass(frozen=True)
class RecordedRun:
    """A run that is over: its reports, traffic seed, setting and cost."""

    reports: list[IntervalReport]
    seed: int
    setting: Setting
    spent: Spent
    left: LiveFlows | None = None
    """The flows that had not finished; None where the program did not report them."""


class _Unfinished(StrictModel):
    """The flows that had not finished, by source and ordinal."""

    src: list[int]
    ordinal: list[int]
    dst: list[int]
    bytes: list[int]
    start_ps: list[int]
    ideal_fct_ps: list[Annotated[int, Field(gt=0)]]
    workload: list[int]

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if len({len(column) for column in dict(self).values()}) != 1:
            raise ValueError("expected columns of one length")
        return self

    def flows(self) -> LiveFlows:
        """Return them as arrays."""
        return LiveFlows(**{k: np.array(v, np.int64) for k, v in dict(self).items()})


class _RunFile(StrictModel):
    """The content of ``run.json``."""

    scenario: str
    scheme: str = "dcqcn"
    seed: int = Field(ge=0)
    setting: dict[str, float]
    cpu_s: float = Field(ge=0)
    wall_s: float = Field(ge=0)
    peak_memory_bytes: int = Field(ge=0)
    unfinished: _Unfinished | None = None


def read_recorded(folder: Path, scenario: Scenario) -> RecordedRun:
    """Read the folder; raise ConfigError if it holds no such run, or one of another scenario."""
    file = folder / "run.json"
    found = _read(file)
    if found.scenario != scenario.name:
        raise ConfigError(
            f"{file}: these reports are of the scenario {found.scenario!r}; "
            f"--scenario is {scenario.name!r}"
        )
    reports = read_reports(folder / "reports.jsonl")
    hosts = {len(report.host_tx_bytes) for report in reports}
    if hosts != {scenario.n_hosts}:
        hosts_found = ", ".join(map(str, sorted(hosts))) or "no"
        raise ConfigError(
            f"{folder / 'reports.jsonl'}: reports of {hosts_found} hosts; "
            f"scenario {scenario.name!r} has {scenario.n_hosts}"
        )
    spent = Spent(found.cpu_s, found.wall_s, found.peak_memory_bytes)
    setting = _setting(file, found.setting, scenario.table)
    left = None if found.unfinished is None else found.unfinished.flows()
    return RecordedRun(reports, found.seed, setting, spent, left)


def _read(file: Path) -> _RunFile:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} cannot be read ({error}); --reports takes the folder that the program "
            "dcqcn-ns3 wrote"
        ) from None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not JSON ({error})") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: expected an object; got {type(values).__name__}")
    return validate(values, _RunFile, source=str(file))


def _setting(file: Path, values: Mapping[str, float], table: KnobTable) -> Setting:
    missing = [name for name in table.knobs if name not in values]
    if missing:
        raise ConfigError(f"{file}: the setting lacks {', '.join(missing)}")
    for name in values:
        table[name]  # raises for an unknown one
    numbers = (values[row.name] / row.si_per_unit for row in table.rows)  # the file is in SI
    return Setting(tuple(numbers), table)
