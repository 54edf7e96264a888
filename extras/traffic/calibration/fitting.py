"""Fits the few unknowns of a scenario to measured times, and says what these cannot tell.

Least squares on logarithms of simulated over measured times, by Gauss and Newton with differences,
over operations without marks: with marks a time jumps at the smallest change. The delay of CNPs is
what captures show.
Intervals are Student's, from the squares that are left and their curvature, wide enough to hold
all fitted unknowns at once with 95 %. An unknown whose interval spans most of its range is not
told: it keeps the scenario's value, and an interval that would be much wider with it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.confidence import student_quantile
from dcqcn_gym.envs.scenario.network import CNP_DELAYS_US
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.traffic.calibration.cnp_delay import FEWEST, mean_and_half
from dcqcn_gym.extras.traffic.calibration.measured import ALONE, BANDWIDTH, LATENCY, Measurement
from dcqcn_gym.extras.traffic.calibration.replay import Replay

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Unknown:
    """A number that measurements may tell; it lies from ``low`` to ``high``."""

    name: str
    what: str
    low: float
    high: float
    step: float
    """Of differences: large against the engine's whole bytes and picoseconds."""


UNKNOWNS: tuple[Unknown, ...] = (
    Unknown("launch_us", "time of an operation outside of the network", 0, 500, 1),
    Unknown("message_us", "time from posting a message to its first packet", 0, 50, 0.5),
    Unknown("data_overhead_bytes", "bytes of a data packet beside its payload", 40, 1024, 16),
)
"""With the range of each, and the step of its differences."""
CNP_DELAY = Unknown("cnp_delay_us", "delay of a CNP", 0, 200, 20)
CONFIDENCE = 0.95
TOO_WIDE = 1 / 3
"""An interval of so much of the range tells nothing."""
MUCH_WIDER = 2.0
"""An interval that another unknown makes so much wider holds for a value of that one alone."""
FEW_PACKETS = 4
_STEPS = 12
_ENOUGH = 1e-4
_PRIOR = 1.0
"""Standard deviation of what is known beforehand, in ranges: none that counts, but finite."""


@dataclass(frozen=True)
class Interval:
    """A value and its interval, in the unit of the unknown's name."""

    value: float
    low: float
    high: float
    given: tuple[str, ...] = ()
    """Unknowns that are not told and with which it goes: it holds for their values alone."""


@dataclass
class Fit:
    """What came out."""

    rows: list[Measurement]
    values: dict[str, float]
    """Of all unknowns: fitted, or as the scenario has them."""
    fitted: dict[str, Interval] = field(default_factory=dict)
    not_fitted: dict[str, str] = field(default_factory=dict)
    us: dict[tuple[str, int, int, int, int], float] = field(default_factory=dict)
    """Operation -> simulated time with these values."""
    cnp_marks: int = 0
    """Marks whose CNPs captures show, and that count."""

    def errors(self) -> list[tuple[Measurement, float]]:
        """Return each operation once, with the error of its bandwidth: simulated / measured - 1.

        Repeats are taken together by their geometric mean.
        """
        found = []
        for row, times in _by_operation(self.rows):
            us = float(np.exp(np.mean(np.log(times))))
            found.append((replace(row, us=us), us / self.us[row.what] - 1))
        return found


def _by_operation(rows: Iterable[Measurement]) -> list[tuple[Measurement, list[float]]]:
    found: dict[tuple[str, int, int, int, int], tuple[Measurement, list[float]]] = {}
    for row in rows:
        found.setdefault(row.what, (row, []))[1].append(row.us)
    return list(found.values())


def counts(row: Measurement, payload_bytes: int) -> bool:
    """Return whether a row is fitted; all are compared.

    Messages of a few packets that follow each other are as fast as the card, whose rate of
    messages the model does not have.
    """
    return row.kind != BANDWIDTH or row.bytes >= FEW_PACKETS * payload_bytes


def scenario_values(scenario: Scenario) -> dict[str, float]:
    """Return the unknowns as a scenario has them."""
    delay = scenario.cnp.delay_us
    launch = 0.0 if scenario.calibration is None else scenario.calibration.launch_us
    return {
        "cnp_delay_us": CNP_DELAYS_US[delay] if isinstance(delay, str) else delay,
        "launch_us": launch,
        "message_us": scenario.transport.message_us,
        "data_overhead_bytes": float(scenario.wire.sizes()["data"] - scenario.wire.gap_bytes),
    }


def _of_network(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if name != "launch_us"}


class _Problem:
    """The sum of squares of some rows, as a function of some unknowns."""

    def __init__(self, replay: Replay, rows: Sequence[Measurement], fixed: Mapping[str, float]):
        self.replay, self.rows, self.fixed = replay, rows, fixed
        self.measured = np.log([row.us for row in rows])

    def marked(self, row: Measurement) -> bool:
        """Return whether packets are marked in an operation on the scenario as it is."""
        return self.replay.marked(row, _of_network(self.fixed))

    def us(self, row: Measurement, values: Mapping[str, float]) -> float:
        """Return the time of an operation: that in the network, and a collective's launch."""
        network = _of_network(values)
        own = 0.0 if row.kind in (BANDWIDTH, LATENCY, ALONE) else values["launch_us"]
        return own + self.replay.us(row, network)

    def residuals(self, names: Sequence[str], at: Floats) -> Floats:
        """Return the logarithms of simulated over measured."""
        values = {**self.fixed, **dict(zip(names, map(float, at), strict=True))}
        return np.log([self.us(row, values) for row in self.rows]) - self.measured

    def slopes(self, unknowns: Sequence[Unknown], at: Floats, here: Floats) -> Floats:
        """Return the derivatives of the residuals, a column an unknown, per range of it."""
        names, columns = [u.name for u in unknowns], []
        for i, unknown in enumerate(unknowns):
            step = unknown.step if at[i] + unknown.step <= unknown.high else -unknown.step
            there = at.copy()
            there[i] += step
            slope = (self.residuals(names, there) - here) / step
            columns.append(slope * (unknown.high - unknown.low))
        return np.array(columns).T


def _minimum(problem: _Problem, unknowns: Sequence[Unknown]) -> tuple[Floats, Floats, Floats]:
    """Return where the squares are least, the residuals there and their slopes."""
    names = [u.name for u in unknowns]
    low, high = (np.array([getattr(u, end) for u in unknowns]) for end in ("low", "high"))
    at = np.clip(np.array([problem.fixed[name] for name in names]), low, high)
    here = problem.residuals(names, at)
    slopes = problem.slopes(unknowns, at, here)
    for _ in range(_STEPS):
        part = np.linalg.lstsq(slopes, -here, rcond=1e-6)[0]
        for scale in (1.0, 0.5, 0.25, 0.1):
            there = _whole(names, np.clip(at + scale * part * (high - low), low, high))
            found = problem.residuals(names, there)
            if found @ found < here @ here:
                break
        else:
            break
        moved = np.abs(there - at) / (high - low)
        at, here = there, found
        slopes = problem.slopes(unknowns, at, here)
        if moved.max() < _ENOUGH:
            break
    return at, here, slopes


def _whole(names: Sequence[str], at: Floats) -> Floats:
    """Round what the engine takes as whole numbers."""
    return np.array(
        [round(x) if n.endswith("_bytes") else x for n, x in zip(names, at, strict=True)]
    )


def _half_widths(residuals: Floats, slopes: Floats) -> Floats:
    """Return half of each interval, in ranges of the unknowns."""
    n, p = slopes.shape
    variance = float(residuals @ residuals) / (n - p)
    information = slopes.T @ slopes / max(variance, 1e-12) + np.eye(p) / _PRIOR**2
    spread = np.sqrt(np.diag(np.linalg.inv(information)))
    each = 1 - (1 - CONFIDENCE) / p  # all p at once (Bonferroni)
    half: Floats = student_quantile(0.5 + each / 2, n - p) * spread
    return half


@dataclass(frozen=True)
class _Trial:
    """A fit of some unknowns: halves of intervals are in ranges, ``why`` is what is not told."""

    unknowns: tuple[Unknown, ...]
    at: Floats
    half: Floats
    squares: float
    why: Mapping[str, str]

    def half_of(self, name: str) -> float:
        """Return half of the interval of an unknown, in its range."""
        return float(self.half[[u.name for u in self.unknowns].index(name)])


def _tried(problem: _Problem, unknowns: tuple[Unknown, ...]) -> _Trial:
    at, residuals, slopes = _minimum(problem, unknowns)
    half = _half_widths(residuals, slopes)
    further = np.linalg.lstsq(slopes, -residuals, rcond=1e-6)[0]
    told = {u.name: _untold(u, *xs) for u, *xs in zip(unknowns, at, half, further, strict=True)}
    why = {name: words for name, words in told.items() if words}
    return _Trial(unknowns, at, half, float(residuals @ residuals), why)


def fit(
    scenario: Scenario,
    rows: Sequence[Measurement],
    replay: Replay | None = None,
    cnp_delays: Sequence[float] = (),
) -> Fit:
    """Fit as many unknowns as the rows tell; of several such sets the one with the least squares.

    The scenario has to be able to run all rows. ``cnp_delays`` are those of captures, in us.
    """
    start = scenario_values(scenario)
    payload = scenario.wire.payload_bytes
    everything = _Problem(replay or Replay(scenario), rows, start)
    quiet = [r for r in rows if counts(r, payload) and not everything.marked(r)]
    problem = _Problem(everything.replay, quiet, start)
    done = Fit(list(rows), dict(start))
    open_ = tuple(u for u in UNKNOWNS if not _absent(u, problem, done))
    trials: dict[frozenset[str], _Trial] = {}
    for size in range(min(len(open_), max(len(problem.rows) - 1, 0)), 0, -1):
        for some in combinations(open_, size):
            trials[frozenset(u.name for u in some)] = _tried(problem, some)
        told = [t for t in trials.values() if not t.why]
        if told:
            best = min(told, key=lambda t: t.squares)
            done.fitted = {u.name: _interval(u, x, h) for u, x, h in zip(
                best.unknowns, best.at.tolist(), best.half.tolist(), strict=True)}  # fmt: skip
            break
    _say_untold(done, open_, trials)
    done.values |= {name: found.value for name, found in done.fitted.items()}
    _fit_delay(cnp_delays, done)
    done.us = {row.what: problem.us(row, done.values) for row, _ in _by_operation(rows)}
    return done


def _fit_delay(delays: Sequence[float], done: Fit) -> None:
    """Take the delay of CNPs from captures; nothing else tells it."""
    name, unknown = CNP_DELAY.name, CNP_DELAY
    if len(delays) < FEWEST:
        many = f"{len(delays)} marks were answered, of {FEWEST} or more: " if delays else ""
        done.not_fitted[name] = (
            f"{many}bandwidths and latencies never tell it; a capture at the receiver's port does"
        )
        return
    value, half = mean_and_half(delays, CONFIDENCE)
    if not unknown.low <= value <= unknown.high:
        done.not_fitted[name] = f"{value:.4g} us is beyond {unknown.high:g}: something else"
        return
    done.cnp_marks = len(delays)
    done.fitted[name] = _interval(unknown, value, half / (unknown.high - unknown.low))
    done.values[name] = value


def _say_untold(
    done: Fit, open_: Sequence[Unknown], trials: Mapping[frozenset[str], _Trial]
) -> None:
    """Say of every unknown why it is not fitted, and which intervals hold for its value alone."""
    chosen = frozenset(done.fitted)
    for name in (u.name for u in open_ if u.name not in chosen):
        joint = trials.get(chosen | {name})
        if joint is None:
            done.not_fitted[name] = f"{len(done.rows)} times are too few to tell it"
            continue
        done.not_fitted[name] = joint.why.get(
            name, f"with it these sizes cannot tell {' and '.join(joint.why)}"
        )
        for other in chosen:
            alone = trials[chosen].half_of(other)
            if joint.half_of(other) > MUCH_WIDER * alone:
                found = done.fitted[other]
                done.fitted[other] = replace(found, given=(*found.given, name))


def simulated(
    scenario: Scenario,
    rows: Sequence[Measurement],
    replay: Replay,
    values: Mapping[str, float] | None = None,
) -> Fit:
    """Return what the scenario gives, as it is or with these values of the unknowns."""
    known = dict(values or scenario_values(scenario))
    problem = _Problem(replay, rows, known)
    us = {row.what: problem.us(row, known) for row, _ in _by_operation(rows)}
    return Fit(list(rows), known, us=us)


def _absent(unknown: Unknown, problem: _Problem, done: Fit) -> bool:
    """Return whether no row depends on an unknown, and say so."""
    if unknown.name == "launch_us" and all(
        row.kind in (BANDWIDTH, LATENCY, ALONE) for row in problem.rows
    ):
        done.not_fitted[unknown.name] = "no collective was measured"
        return True
    return False


def _interval(unknown: Unknown, value: float, half: float) -> Interval:
    wide = half * (unknown.high - unknown.low)
    return Interval(value, max(value - wide, unknown.low), min(value + wide, unknown.high))


def _untold(unknown: Unknown, value: float, half: float, further: float) -> str:
    """Return why an unknown is not told; empty if it is. ``further``: where the squares fall."""
    found = _interval(unknown, value, half)
    share = (found.high - found.low) / (unknown.high - unknown.low)
    if share > TOO_WIDE:
        return (
            f"these sizes cannot tell it from the others: {found.low:.3g} to {found.high:.3g} is "
            f"possible, of {unknown.low:g} to {unknown.high:g}"
        )
    beyond = value + further * (unknown.high - unknown.low)
    if not unknown.low <= beyond <= unknown.high and abs(further) > half:
        return f"the best value is beyond its limit, {value:g}: it is something else"
    return ""
