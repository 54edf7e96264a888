"""The limits of the file of ``--safe``, and how they bound a proposal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import CONFIGS, StrictModel, read_toml, validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import by_group, cluster_setting
from dcqcn_gym.core.knobs import Knob, Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.tuners.base import Proposal, TunerSettings


class KnobLimit(StrictModel):
    """What one knob may be, in the unit of the knob table."""

    low: float | None = Field(default=None, description="never below")
    high: float | None = Field(default=None, description="never above")
    step: float | None = Field(default=None, gt=0, description="most that one change may move it")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ConfigError(f"low = {self.low:g} is above high = {self.high:g}; swap them")
        return self


class CanaryTable(StrictModel):
    """Who tries a candidate first, for how long, and how much worse they may fare.

    What is borne is about the 99th percentile, on mini-fb-hadoop, of each flag's lower bound in
    trials of a setting that changes nothing; docs/hardware.md says how many of these are rejected.
    """

    share: float = Field(default=0.25, gt=0, le=0.5, description="of NICs and of switches")
    groups: tuple[tuple[str, ...], ...] = Field(
        default=(), description='stages by name, as [["nic:0"], ["nic:0", "switch:16"]]; no share'
    )
    intervals: int = Field(default=10, ge=2, le=1000, description="intervals with data per stage")
    baseline: int = Field(
        default=20, ge=2, le=1000, description="latest intervals under one setting to compare with"
    )
    block: int = Field(default=5, ge=1, description="intervals in a block of the bootstrap")
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="a flag goes up with this")
    pause: float = Field(default=0.005, ge=0, description="more paused share that is borne")
    drops: float = Field(default=1e-4, ge=0, description="more dropped packets that are borne")
    rtt: float = Field(default=0.3, ge=0, description="longer round trips borne, in base ones")
    goodput: float = Field(default=0.5, ge=0, description="less sent that is borne, as a share")


class AbortTable(StrictModel):
    """When what is on trial is taken back at once; unset rules do not hold."""

    max_paused: float | None = Field(default=0.5, ge=0, le=1, description="paused share, mean")
    max_drops: int | None = Field(default=None, ge=0, description="packets dropped")
    max_errors: int | None = Field(default=None, ge=0, description="errors of NICs, resent packets")
    min_goodput: float | None = Field(default=None, ge=0, le=1, description="of the first rate")
    min_utility: float | None = Field(default=None, ge=0, le=1, description="utility")
    patience: int = Field(default=2, ge=1, description="intervals in a row")
    cooldown: int = Field(default=10, ge=0, description="intervals without a change afterwards")


class Safety(TunerSettings):
    """What ``--safe FILE`` holds."""

    knobs: tuple[str, ...] = Field(
        default=(), description="the only ones that are turned; none named: all"
    )
    limits: dict[str, KnobLimit] = Field(default={}, description="bounds per knob")
    max_step: float | None = Field(
        default=None, gt=0, le=1, description="share of every tuned range that a change may move"
    )
    freeze_ms: tuple[tuple[float, float], ...] = Field(
        default=(), description="windows [from, to) of the run's time, in ms, without changes"
    )
    watch: int = Field(default=1, ge=1, description="intervals everywhere before it is confirmed")
    canary: CanaryTable | None = Field(default=None, description="who tries a candidate first")
    abort: AbortTable = Field(default=AbortTable(), description="when a trial ends at once")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for begin, end in self.freeze_ms:
            if not 0 <= begin < end:
                raise ConfigError(
                    f"freeze_ms = [{begin:g}, {end:g}]: expected its begin at or above 0 and "
                    "before its end"
                )
        return self


def safe_arguments(file: Path, tuner: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the tuner ``safe`` that put ``tuner`` behind a file of limits.

    ``site`` is configs/safe/site.toml where there is no file of that name. Raises ConfigError,
    which begins with the file, for what the file must not hold.
    """
    ours = CONFIGS / "safe" / f"{file}.toml"
    given = read_toml(ours if ours.exists() and not file.exists() else file)
    validate(given, Safety, source=str(file))
    return {**given, "tuner": tuner, "arguments": dict(arguments)}


def bounded(options: Safety, proposal: Proposal, now: Proposal, space: KnobSpace) -> Proposal:
    """Return the proposal within all limits, no further from what is in force than one step.

    A group that has no setting of its own yet is stepped from the cluster's.
    """
    if isinstance(proposal, Setting):
        return _bounded(options, proposal, cluster_setting(now), space)
    before = dict(by_group(now))
    return {
        name: _bounded(options, setting, before.get(name, cluster_setting(now)), space)
        for name, setting in by_group(proposal)
    }


def _bounded(options: Safety, wanted: Setting, now: Setting, space: KnobSpace) -> Setting:
    if options.max_step is not None:
        here, there = space.encode(now), space.encode(wanted)
        most = 2.0 * options.max_step  # the box of actions is [-1, 1]
        if np.abs(there - here).max() > most:
            wanted = space.setting(here + np.clip(there - here, -most, most), wanted)
    if options.knobs:
        turned = {wanted.table[name].name for name in options.knobs}
        wanted = now.replace({name: wanted[name] for name in turned if name in wanted})
    values = {}
    for name, limit in options.limits.items():
        row = wanted.table[name]
        values[row.name] = _limited(row, limit, wanted[row.name], now[row.name])
    if not values:
        return wanted
    found = wanted.replace(values)
    if "kmin" in found and found["kmin"] > found["kmax"]:
        follows, leads = ("kmin", "kmax") if "kmax" in values else ("kmax", "kmin")
        found = found.replace({follows: found[leads]})  # the one with limits of its own leads
    return found


def _limited(row: Knob, limit: KnobLimit, value: float, current: float) -> float:
    if limit.step is not None and current != row.off:  # from "off" there is no small step
        value = min(max(value, current - limit.step), current + limit.step)
    value = max(value, limit.low) if limit.low is not None else value
    value = min(value, limit.high) if limit.high is not None else value
    if row.integer:  # a whole number on the side of what is in force: never a longer step
        return float(math.floor(value) if value > current else math.ceil(value))
    return value
