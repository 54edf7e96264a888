"""What is swept: knobs with their values on a scenario, as the entries of a study.

Every point is a run of its own per seed, a :class:`~dcqcn_gym.runs.trials.Trial`. The swept setting
is in force from time 0 on, so the warm-up belongs to it as well. All points meet the same traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from dcqcn_gym.comparison.plan import Case, Plan
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.knob_names import knob_name
from dcqcn_gym.core.knobs import Knob, Setting
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.metrics import metrics_of
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.log_line import setting_json
from dcqcn_gym.runs.study import Study
from dcqcn_gym.runs.trials import Trial

POINTS = 8
TUNER = "do-nothing"

Point = tuple[float, ...]
"""One value per swept knob, in NVIDIA's units."""


@dataclass(frozen=True)
class GridAxis:
    """A knob and its values in NVIDIA's units, rising."""

    knob: Knob
    values: tuple[float, ...]


def values_over(knob: Knob, low: float, high: float, count: int) -> tuple[float, ...]:
    """Return ``count`` values from ``low`` to ``high``, spaced as the knob is searched.

    Even ratios for a logarithmic knob, even differences otherwise; whole numbers where the knob
    has them, each once, so there may be fewer.
    """
    space = np.geomspace if knob.log and low > 0 else np.linspace
    found = space(low, high, count)
    return tuple(dict.fromkeys(float(v) for v in (np.round(found) if knob.integer else found)))


def parse_axis(text: str, scenario: Scenario, points: int = POINTS) -> GridAxis:
    """Return the axis of ``KNOB``, ``KNOB=1,2,3`` or ``KNOB=LOW..HIGH``, in NVIDIA's units.

    ``points`` values between two ends; ``KNOB`` alone goes over the range that tuners reach.
    Raises ConfigError (form, the knob's own range) or UnknownNameError with near names; how knobs
    stand to each other is for :meth:`Grid.plan`, which knows all of them.
    """
    name, given, values = (part.strip() for part in text.partition("="))
    knob = scenario.table[knob_name(name, scenario.table.knobs)]
    rate = scenario.line_rate_bps
    if not given:
        return GridAxis(knob, values_over(knob, *knob.tuned_at(rate), points))
    low, between, high = values.partition("..")
    found = sorted(
        values_over(knob, _number(text, low), _number(text, high), points)
        if between
        else (_number(text, value) for value in values.split(","))
    )
    for one, following in pairwise(found):
        if _digits(one) == _digits(following):
            raise ConfigError(
                f"--knob {quote(text)}: {following:g} is there twice; give it once (values differ "
                "in their first ten digits)"
            )
    least, most = knob.legal_at(rate)
    for value in found:
        if not least <= value <= most:
            raise ConfigError(
                f"--knob: {knob.name} = {value:g} {knob.unit} is out of range; expected "
                f"{least:g} to {most:g} {knob.unit}"
            )
    return GridAxis(knob, tuple(found))


def _digits(value: float) -> str:
    """Return a value as the folder of its runs has it."""
    return f"{value:.10g}"


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise ConfigError(
            f"--knob {quote(text)}: {quote(value)} is no number; expected KNOB, KNOB=1,2,3 or "
            "KNOB=LOW..HIGH in NVIDIA's units"
        )
    return number


@dataclass(frozen=True)
class Grid:
    """The points of a sweep: every combination of the axes' values on ``base``."""

    case: Case
    base: Setting
    axes: Sequence[GridAxis]

    @property
    def points(self) -> list[Point]:
        """Every combination of values, the last knob quickest."""
        return list(product(*(axis.values for axis in self.axes)))

    def setting(self, point: Point) -> Setting:
        """Return the setting of a point."""
        names = [axis.knob.name for axis in self.axes]
        return self.base.replace(dict(zip(names, point, strict=True)))

    def name(self, point: Point) -> str:
        """Return a point's name, which is that of its folder."""
        pairs = zip(self.axes, point, strict=True)
        return "+".join(f"{axis.knob.name}-{_digits(value)}" for axis, value in pairs)

    def plan(self, seeds: int, intervals: int, backend: str = "native") -> Plan:
        """Return the plan of all points; ConfigError for one that is no legal setting."""
        rate = self.case.loaded.line_rate_bps
        entries = []
        for point in self.points:
            try:
                self.setting(point).check(rate, "--knob")
            except ConfigError as error:
                raise ConfigError(f"{error} at every point of the sweep") from None
            changes = {"initial": setting_json(self.setting(point))}  # in force from time 0 on
            entries.append(
                {"name": self.name(point), "tuner": TUNER, "changes": changes, "backend": backend}
            )
        data = {
            "description": "A setting at every point, in force from time 0 on.",
            "seeds": seeds,
            "intervals": intervals,
            "cases": [self.case],
            "entries": entries,
            "tables": [{"kind": "held-out"}],
        }
        return validate(data, Plan, source="sweep")

    def study(self, plan: Plan, out: Path) -> Study[Trial]:
        """Return the study of a plan of this grid, which stays with its scenario."""
        return plan.study("sweep", plan.trials(out), scenario=self.case.title)

    def metrics(self, study: Study[Trial]) -> dict[tuple[Point, int], dict[str, float]]:
        """Return the metrics of the study's finished runs, by point and seed."""
        points = {self.name(point): point for point in self.points}
        return {
            (points[name], int(seed)): metrics_of(Series.of(read_run(trial.log)))
            for (_, name, seed), trial in study.jobs.items()
        }
