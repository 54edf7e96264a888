"""The action space: a box of [-1, 1] per knob, mapped to values that are always valid.

Knobs whose row says so are on a log scale, integer knobs are whole numbers of their unit, ECN
thresholds whole bytes. When both ECN thresholds are tuned, Kmax is Kmin plus a share of the gap
that is left up to the largest Kmax, so Kmin <= Kmax holds for every action.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import DCQCN, REFERENCE_RATE_BPS, Knob, KnobTable, Setting


class _Axis:
    """One knob's tuned range at a line rate, and its scale.

    Every step of a training goes through all axes twice: what does not change is worked out once.
    """

    def __init__(self, row: Knob, low: float, high: float) -> None:
        self.row, self.low, self.high = row, low, high
        # A log scale needs a positive lower end: a range from 0 is shifted by one unit.
        self._shift = 1.0 if low <= 0.0 else 0.0
        self._log, self._whole = row.log, row.integer
        self._growth = (high + self._shift) / (low + self._shift) if row.log else 1.0
        self._efoldings = math.log(self._growth) if row.log else 1.0
        self._last = math.floor(high)
        self._first = min(math.ceil(low), self._last)
        self._bytes, self._unit = row.si_unit == "B", row.si_per_unit
        self._off = row.off
        self._acts_like = low + row.off_acts_like * (high - low)

    def value(self, share: float, low: float | None = None) -> float:
        """Return the value at ``share`` in 0..1 of the range (or of ``low``..high)."""
        growth, high = self._growth, self.high
        if low is None:
            low = self.low
        elif self._log:
            growth = (high + self._shift) / (low + self._shift)
        if self._log:
            raw = (low + self._shift) * growth**share - self._shift
        else:
            raw = low + share * (high - low)
        return self._snap(low if raw < low else high if raw > high else raw)

    def share(self, value: float, low: float | None = None) -> float:
        """Return the inverse of :meth:`value`, clipped to 0..1."""
        top, high = self._efoldings, self.high
        if low is None:
            low = self.low
        elif self._log and low != self.low:
            top = math.log((high + self._shift) / (low + self._shift))
        if high <= low:
            return 1.0
        value = low if value < low else high if value > high else value
        if self._log:
            return math.log((value + self._shift) / (low + self._shift)) / top
        return (value - low) / (high - low)

    def _snap(self, value: float) -> float:
        """Round to what the device can hold, inside the range."""
        if self._whole:
            value, first, last = float(round(value)), self._first, self._last
            return first if value < first else last if value > last else value
        if self._bytes:  # a size is a whole number of bytes
            return float(round(value * self._unit)) / self._unit
        return value * self._unit / self._unit

    def clip(self, value: float) -> float:
        """Bring any finite value into the range; "off" becomes what it acts like."""
        if value == self._off:
            value = self._acts_like
        low, high = self.low, self.high
        return self._snap(low if value < low else high if value > high else value)


def bounded_threshold(values: Mapping[str, float], base: Mapping[str, float]) -> dict[str, float]:
    """Return values in which an ECN threshold that comes alone does not pass that of ``base``.

    The other one is not turned, so this one has to keep Kmin <= Kmax.
    """
    found = dict(values)
    if "kmin" in found and "kmax" not in found:
        found["kmin"] = min(found["kmin"], base["kmax"])
    if "kmax" in found and "kmin" not in found:
        found["kmax"] = max(found["kmax"], base["kmin"])
    return found


class KnobSpace:
    """The tuned knobs in a fixed order, and the maps between unit actions and values.

    ``knobs`` are names of the knob table, each at most once (default: those that tuners move);
    ``line_rate_bps`` is the rate of the host links, which scales ECN thresholds and the first-CNP
    rate. ``ranges`` replace tuned ranges of the table (at this line rate). Unknown
    or repeated names, a rate that is not positive and ranges that leave no setting raise
    :class:`ConfigError`.
    """

    def __init__(
        self,
        knobs: Sequence[str] | None = None,
        line_rate_bps: float = REFERENCE_RATE_BPS,
        table: KnobTable = DCQCN,
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        knobs = table.tuned if knobs is None else knobs
        if not knobs or len(set(knobs)) != len(knobs):
            raise ConfigError(f"knobs = {list(knobs)}: expected at least one name, none repeated")
        if not (math.isfinite(line_rate_bps) and line_rate_bps > 0):
            raise ConfigError(f"line_rate_bps = {line_rate_bps}: expected a positive rate")
        self.table = table
        self.knobs: tuple[str, ...] = tuple(knobs)
        self.line_rate_bps = float(line_rate_bps)
        self.ranges = {n: bounds for n, bounds in (ranges or {}).items() if n in self.knobs}
        self._axes = {name: self._axis(name) for name in self.knobs}
        self._paired = "kmin" in self._axes and "kmax" in self._axes
        if self._paired and self._axes["kmin"].high > self._axes["kmax"].high:
            raise ConfigError(
                f"knobs: kmin up to {self._axes['kmin'].high:g} KB and kmax only up to "
                f"{self._axes['kmax'].high:g}; expected kmin's range to end no later than kmax's"
            )

    @property
    def n(self) -> int:
        """Number of tuned knobs, the length of an action."""
        return len(self.knobs)

    def __repr__(self) -> str:
        return f"KnobSpace({list(self.knobs)}, line_rate_bps={self.line_rate_bps:g})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KnobSpace):
            return NotImplemented
        ours = (self.knobs, self.line_rate_bps, self.table, self.ranges)
        return ours == (other.knobs, other.line_rate_bps, other.table, other.ranges)

    def __hash__(self) -> int:
        return hash((self.knobs, self.line_rate_bps, self.table))

    def part(self, knobs: Sequence[str]) -> KnobSpace:
        """Return the space of other knobs at this line rate: within the ranges that hold here."""
        return KnobSpace(knobs, self.line_rate_bps, self.table, self.ranges)

    def row(self, name: str) -> Knob:
        """Return a knob's row of the table, with the tuned range that holds in this space."""
        row, rate = self.table[name], self.line_rate_bps
        if name not in self.ranges:
            return row
        return replace(
            row,
            tuned=self.ranges[name],
            step=row.step_at(rate),
            default=row.default_at(rate),
            scaling="none",  # all three are those of this line rate
        )

    def _axis(self, name: str) -> _Axis:
        row = self.row(name)
        return _Axis(row, *row.tuned_at(self.line_rate_bps))

    def decode(self, unit: npt.ArrayLike) -> dict[str, float]:
        """Return the value of each knob for an action of shape (n,), clipped to [-1, 1].

        Raises :class:`ConfigError` for another shape, NaN or infinity.
        """
        shares = (np.minimum(np.maximum(self._checked(unit), -1.0), 1.0) + 1.0) / 2.0
        found = zip(self._axes.items(), shares.tolist(), strict=True)
        values = {name: axis.value(share) for (name, axis), share in found}
        if self._paired:
            axis = self._axes["kmax"]
            share = float(shares[self.knobs.index("kmax")])
            values["kmax"] = axis.value(share, max(values["kmin"], axis.low))
        return values

    def encode(self, setting: Mapping[str, float]) -> FloatArray:
        """Return the action in [-1, 1], shape (n,), that is nearest to ``setting``.

        Values outside the tuned range go to its edge; an "off" value is encoded as the value it
        acts like. For a setting inside the space :meth:`decode` gives the same values back. A
        Setting of another knob table raises :class:`ConfigError`.
        """
        self.table.require(setting, "a space of knobs")
        values = [setting[name] for name in self.knobs]
        if not all(map(math.isfinite, values)):
            self.clip(dict(zip(self.knobs, values, strict=True)))  # says which one is not
        axes = self._axes.values()
        values = [axis.clip(value) for axis, value in zip(axes, values, strict=True)]
        shares = [axis.share(value) for axis, value in zip(axes, values, strict=True)]
        if self._paired:
            at, axis = self.knobs.index("kmax"), self._axes["kmax"]
            kmin = values[self.knobs.index("kmin")]
            shares[at] = axis.share(max(kmin, values[at]), max(kmin, axis.low))
        places = 2.0 * np.asarray(shares, dtype=np.float64) - 1.0
        return np.minimum(np.maximum(places, -1.0), 1.0)

    def setting(self, unit: npt.ArrayLike, base: Setting) -> Setting:
        """Return ``base`` with the tuned knobs taken from an action.

        If only one ECN threshold is tuned, the other one of ``base`` bounds it. A base of another
        knob table raises :class:`ConfigError`.
        """
        self.table.require(base, "a space of knobs")
        return base.replace(bounded_threshold(self.decode(unit), base))

    def moved(self, values: Mapping[str, float], base: Setting) -> Setting:
        """Return ``base`` with these values, brought into their ranges as by :meth:`clip`.

        An ECN threshold without the other one is bounded as in :meth:`setting`. Raises
        :class:`ConfigError` as both do.
        """
        self.table.require(base, "a space of knobs")
        return base.replace(bounded_threshold(self.clip(values), base))

    def clip(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return values brought into the tuned range, whole units, Kmin <= Kmax.

        Any knob of the table is accepted, also one outside this space. An "off" value becomes the
        value it acts like. Raises :class:`ConfigError` for NaN and infinity.
        """
        clipped: dict[str, float] = {}
        for name, value in values.items():
            axis = self._axes.get(name) or self._axis(name)
            if not math.isfinite(value):
                raise ConfigError(f"{name} = {value}: expected a finite number")
            clipped[name] = axis.clip(value)
        if "kmin" in clipped and "kmax" in clipped:
            clipped["kmax"] = max(clipped["kmin"], clipped["kmax"])
        return clipped

    def _checked(self, unit: npt.ArrayLike) -> FloatArray:
        try:
            array = np.asarray(unit, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(
                f"an action is {quote(unit)}; expected {self.n} numbers in -1..1"
            ) from None
        if array.shape != (self.n,):
            raise ConfigError(
                f"an action has shape {array.shape}; expected ({self.n},), one number per knob: "
                f"{', '.join(self.knobs)}"
            )
        finite = np.isfinite(array)
        if not finite.all():
            i = int(np.argmin(finite))
            raise ConfigError(
                f"action[{i}] ({self.knobs[i]}) = {array[i]}: expected a finite number in -1..1"
            )
        return array
