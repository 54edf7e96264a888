"""What is swept: knobs with their values on a scenario, as the entries of a study.

Every point is a run of its own per seed, a :class:`~dcqcn_gym.runs.trials.Trial`. The swept setting
is in force from time 0 on, so the warm-up belongs to it as well. All points meet the same traffic.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from dcqcn_gym.comparison.study.plan import Case, Study
from dcqcn_gym.core.config import StrictModel, load_json, validate
from dcqcn_gym.core.errors import ConfigError, RunError, quote
from dcqcn_gym.core.knob_names import knob_name
from dcqcn_gym.core.knobs import Knob, Setting
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.metrics import metrics_of
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.campaign import Progress, raise_failures
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import read_run, write_json
from dcqcn_gym.runs.log_line import setting_json
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.results import scenario_digest
from dcqcn_gym.runs.trials import Trial, carry_out

PLAN_FILE = "sweep.json"
POINTS = 8
TUNER = "do-nothing"

Key = TypeVar("Key", bound=Hashable)
Point = tuple[float, ...]
"""One value per swept knob, in NVIDIA's units."""


@dataclass(frozen=True)
class Axis:
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


def parse_axis(text: str, scenario: Scenario, points: int = POINTS) -> Axis:
    """Return the axis of ``KNOB``, ``KNOB=1,2,3`` or ``KNOB=LOW..HIGH``, in NVIDIA's units.

    ``points`` values between two ends; ``KNOB`` alone goes over the range that tuners reach.
    Raises ConfigError (form, the knob's own range) or UnknownNameError with near names; how knobs
    stand to each other is for :meth:`Grid.study`, which knows all of them.
    """
    name, given, values = (part.strip() for part in text.partition("="))
    knob = scenario.table[knob_name(name, scenario.table.knobs)]
    rate = scenario.line_rate_bps
    if not given:
        return Axis(knob, values_over(knob, *knob.tuned_at(rate), points))
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
    return Axis(knob, tuple(found))


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
    axes: Sequence[Axis]

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

    def study(self, seeds: int, intervals: int, backend: str = "native") -> Study:
        """Return the study of all points; ConfigError for one that is no legal setting."""
        rate = self.case.loaded.line_rate_bps
        entries = []
        for point in self.points:
            try:
                self.setting(point).check(rate, "--knob")
            except ConfigError as error:
                raise ConfigError(f"{error} at every point of the sweep") from None
            changes = _in_force(self.setting(point))
            entries.append(
                {"name": self.name(point), "tuner": TUNER, "changes": changes, "backend": backend}
            )
        data = {
            "description": "A setting at every point, in force from time 0 on.",
            "seeds": seeds,
            "intervals": intervals,
            "cases": [self.case],
            "entries": entries,
            "tables": [{"kind": "fresh"}],
        }
        return validate(data, Study, source="sweep")

    def trials(self, study: Study, out: Path) -> dict[tuple[Point, int], Trial]:
        """Return every run of the points' study by point and seed, seed by seed."""
        found = study.trials(out)
        return {
            (point, seed): found[self.case.title, self.name(point)][i]
            for i, seed in enumerate(study.every_seed)
            for point in self.points
        }

    def identity(self, study: Study) -> SweepFile:
        """Return what two sweeps in one folder have to share."""
        scenario = self.case.loaded
        return SweepFile(
            scenario=scenario.name,
            sha256=scenario_digest(scenario),
            base=setting_json(self.base),
            intervals=study.intervals,
            backend=study.entries[0].backend,
        )


class SweepFile(StrictModel):
    """``sweep.json``: what every run of a sweep shares."""

    scenario: str
    sha256: str
    base: dict[str, Any]
    intervals: int
    backend: str


def _in_force(setting: Setting) -> dict[str, Any]:
    """Return what makes a setting a scenario's first one."""
    return {"initial": setting_json(setting)}


def produce(
    grid: Grid,
    study: Study,
    out: Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> dict[tuple[Point, int], dict[str, float]]:
    """Make every run that is missing; return the metrics of each, by point and seed.

    Raises RunError if ``out`` holds a sweep of another scenario, base or length (unless ``force``),
    or naming what failed; what is finished stays.
    """
    trials = grid.trials(study, out)
    next(iter(trials.values())).spec.check()
    new = grid.identity(study)
    if not force:
        _check_same(new, out)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / PLAN_FILE, new.model_dump())
    return carried_out(trials, workers, progress)


def carried_out(
    trials: Mapping[Key, Trial], workers: int | None = None, progress: Progress | None = None
) -> dict[Key, dict[str, float]]:
    """Carry out runs by any key; return the metrics of each. RunError names what failed."""
    raise_failures(carry_out(list(trials.values()), workers, progress))
    return {key: metrics_of(Series.of(read_run(one.log))) for key, one in trials.items()}


def _check_same(new: SweepFile, out: Path) -> None:
    path = out / PLAN_FILE
    if not path.exists():
        return
    try:
        old, now = load_json(path, SweepFile).model_dump(), new.model_dump()
    except ConfigError as error:
        raise RunError(f"{error}; give another --out, or --force to replace it") from None
    differing = [key for key in now if old[key] != now[key]]
    if differing:
        what = "scenario" if differing[0] == "sha256" else differing[0]
        raise RunError(
            f"--out {out} holds a sweep with another {what}; give another --out, or --force to "
            "replace it"
        )


def measured(
    scenario: Scenario, setting: Setting, seed: int, intervals: int
) -> tuple[dict[str, float], int]:
    """Run one point without keeping its log; return its metrics and the packet-hops."""
    with TemporaryDirectory() as folder:
        spec = Entry(TUNER, changes=_in_force(setting)).spec(scenario, seed, intervals, "native")
        job = RunJob(spec, Path(folder) / "run.jsonl")
        job.run()
        run = Series.of(read_run(job.path))
    return metrics_of(run), int(run.column("packet_hops").sum())
