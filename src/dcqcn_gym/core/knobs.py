"""The knob table: every knob of a scheme and of the switches, with units, ranges and names.

The rows stand once, beside the model that gives them their meaning: those of a scheme's NIC in
``engine/model/schemes``, those of a switch in ``engine/model/fabric/ecn_knobs.hpp``. The build
exports them to ``configs/schema/knobs.json``, and the action space, ``--set``, ``emit``, the docs
and the hardware writers read them here, without the engine. A knob's value is in the unit of its
row, NVIDIA's; the engine turns it into SI units on its way in. docs/reference/knobs.md explains the
rows and their sources; the expert setting is PARALEON (ICNP'24) Table I.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote

REFERENCE_RATE_BPS = 100e9
"""Line rate at which ECN defaults and ranges are stated; they scale with the line rate."""

Scaling = Literal["none", "rate", "line_fraction"]
Group = Literal["rp_increase", "rp_decrease", "rp_alpha", "np", "ecn", "pfc"]

GROUP_TITLES: Mapping[Group, str] = {
    "rp_increase": "NIC: rate increase",
    "rp_decrease": "NIC: rate decrease",
    "rp_alpha": "NIC: alpha",
    "np": "NIC: notification point",
    "ecn": "Switch: ECN marking",
    "pfc": "Switch: PFC",
}
"""A heading for every group, in the order of the table."""


@dataclass(frozen=True)
class Knob:
    """One row of the table. Numbers are in ``unit`` unless a name says otherwise.

    ``legal`` bounds what a person may set, ``tuned`` what an action can reach. ``scaling`` says
    how default, legal and tuned follow the line rate: ``"rate"`` in proportion to rate/100G
    (ECN thresholds), ``"line_fraction"`` as percent of the line rate (first-CNP rate, tuned range
    only). ``direction`` is +1 if raising the knob favours throughput, -1 if lowering it does.
    ``off`` is a value that means "off" and is reachable only by an explicit setting;
    ``off_acts_like`` is where a search that starts there begins (fraction of the tuned range).
    ``observed`` rows have a slot in the observation; ``source`` says where default and ranges come
    from.
    """

    name: str
    group: Group
    unit: str
    si_per_unit: float
    si_unit: str
    default: float
    legal: tuple[float, float]
    tuned: tuple[float, float]
    step: float
    direction: Literal[1, -1]
    help: str
    mlxconfig: str | None = None
    debugfs: str | None = None
    sonic: str | None = None
    integer: bool = True
    log: bool = False
    tuned_by_default: bool = False
    observed: bool = False
    scaling: Scaling = "none"
    off: float | None = None
    off_acts_like: float = 1.0
    source: str = ""

    @property
    def is_ecn(self) -> bool:
        """True for a switch knob, False for a NIC knob."""
        return self.group in ("ecn", "pfc")

    def to_si(self, value: float) -> float:
        """Return a value in SI units, as the engine does."""
        return value * self.si_per_unit

    def _scale(self, line_rate_bps: float) -> float:
        return line_rate_bps / REFERENCE_RATE_BPS if self.scaling == "rate" else 1.0

    def default_at(self, line_rate_bps: float) -> float:
        """Return the vendor default at this line rate."""
        return self.default * self._scale(line_rate_bps)

    def legal_at(self, line_rate_bps: float) -> tuple[float, float]:
        """Return the closed legal range at this line rate."""
        if self.si_unit == "bit/s":
            return self.legal[0], min(self.legal[1], line_rate_bps / self.si_per_unit)
        return self.legal

    def tuned_at(self, line_rate_bps: float) -> tuple[float, float]:
        """Return the range that actions reach at this line rate."""
        if self.scaling == "line_fraction":
            line = line_rate_bps / self.si_per_unit
            return self.tuned[0] / 100 * line, self.tuned[1] / 100 * line
        scale = self._scale(line_rate_bps)
        low, high = self.tuned[0] * scale, self.tuned[1] * scale
        return low, min(high, self.legal_at(line_rate_bps)[1])

    def step_at(self, line_rate_bps: float) -> float:
        """Return the search step s_p at this line rate."""
        if self.scaling == "line_fraction":
            return self.step / 100 * line_rate_bps / self.si_per_unit
        return self.step * self._scale(line_rate_bps)


@dataclass(frozen=True, eq=False)
class KnobTable:
    """The rows of one scheme: those of its NIC, then those of a switch. Never changed once made.

    Two tables are equal if scheme and rows are. A :class:`Setting` knows its table, and settings
    of two tables never mix (:meth:`require`).
    """

    scheme: str
    rows: tuple[Knob, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KnobTable):
            return NotImplemented
        return self is other or (self.scheme, self.rows) == (other.scheme, other.rows)

    def __repr__(self) -> str:  # short: help() shows it as a default
        return f"knob_table({self.scheme!r})"

    def __hash__(self) -> int:
        return hash(self.scheme)  # quick, and there is seldom more than one table of a scheme

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes by name, or by value if a caller has made the table."""
        if self.scheme in schemes() and self is knob_table(self.scheme):
            return knob_table, (self.scheme,)
        return KnobTable, (self.scheme, self.rows)

    @cached_property
    def knobs(self) -> Mapping[str, Knob]:
        """Every row by its name, in order."""
        return {row.name: row for row in self.rows}

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The place of every knob in ``rows``, and in the values of a setting."""
        return {row.name: i for i, row in enumerate(self.rows)}

    @cached_property
    def real(self) -> tuple[bool, ...]:
        """Of every row whether its values need not be whole."""
        return tuple(not row.integer for row in self.rows)

    @cached_property
    def nic(self) -> tuple[str, ...]:
        """Names of the knobs of a NIC."""
        return tuple(row.name for row in self.rows if not row.is_ecn)

    @cached_property
    def ecn(self) -> tuple[str, ...]:
        """Names of the knobs of a switch."""
        return tuple(row.name for row in self.rows if row.is_ecn)

    @cached_property
    def tuned(self) -> tuple[str, ...]:
        """Names of the knobs that tuners move by default."""
        return tuple(row.name for row in self.rows if row.tuned_by_default)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """Names of the knobs that the observation shows, in the order of its slots."""
        return tuple(row.name for row in self.rows if row.observed)

    def __getitem__(self, name: str) -> Knob:
        """Return a row by name; raise :class:`UnknownNameError` with near matches."""
        try:
            return self.knobs[name]
        except KeyError:
            self._refuse_foreign(name)
            raise UnknownNameError("knob", name, self.knobs, self._other_names()) from None

    def digest(self, names: Iterable[str] | None = None) -> str:
        """Return 12 hexadecimal digits that name what values of these knobs (all) mean.

        Units, ranges, scales and what the observation shows count; default, help, sources and
        names on devices do not.
        """
        import hashlib

        chosen = set(self.knobs if names is None else names)
        text = "\n".join(
            repr((r.name, r.is_ecn, r.observed, r.si_per_unit, r.si_unit, r.legal, r.tuned,
                  r.integer, r.log, r.scaling, r.off, r.off_acts_like))
            for r in self.rows if r.name in chosen
        )  # fmt: skip
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def require(self, setting: Mapping[str, float], where: str) -> None:
        """Raise ConfigError, naming both tables, if ``setting`` belongs to another one."""
        other = getattr(setting, "table", self)
        if other is not self and other != self:
            raise ConfigError(
                f"{where}: a setting of scheme {other.scheme!r} (knob table {other.digest()}) "
                f"cannot stand for one of scheme {self.scheme!r} (knob table {self.digest()}); "
                "build it from the knobs of that scheme"
            )

    def _refuse_foreign(self, name: str) -> None:
        """Raise ConfigError if another scheme has a knob of this name."""
        for scheme in schemes():
            if name in knob_table(scheme).nic:
                raise ConfigError(
                    f"{name} is a knob of scheme {scheme!r}; expected one of scheme "
                    f"{self.scheme!r}: {', '.join(self.knobs)}"
                ) from None

    def _other_names(self) -> dict[str, str]:
        """Return {name on a device: knob}."""
        pairs = ((other, row.name) for row in self.rows for other in (row.mlxconfig, row.sonic))
        return {other: name for other, name in pairs if other}


def _rows(rows: Iterable[dict[str, Any]]) -> tuple[Knob, ...]:
    return tuple(
        Knob(**{**row, "legal": tuple(row["legal"]), "tuned": tuple(row["tuned"])}) for row in rows
    )


_FILE = Path(__file__).parents[1] / "configs" / "schema" / "knobs.json"
_TABLES = json.loads(_FILE.read_text(encoding="utf-8"))
_SWITCH = _rows(_TABLES["switch"])
OPTIONAL_ROWS = _rows(_TABLES["optional"])
"""Rows of a switch that no table has unless a scenario names them."""


def schemes() -> tuple[str, ...]:
    """Return the names of the schemes that have a table; the first one is the default."""
    return tuple(_TABLES["schemes"])


def knob_table(scheme: str = "dcqcn") -> KnobTable:
    """Return the knob table of a scheme; raise :class:`UnknownNameError` with near matches."""
    return _table(scheme)


@cache
def _table(scheme: str) -> KnobTable:
    if scheme not in schemes():
        raise UnknownNameError("scheme", scheme, schemes())
    return KnobTable(scheme, (*_rows(_TABLES["schemes"][scheme]), *_SWITCH))


DCQCN = knob_table()
KNOBS: Mapping[str, Knob] = DCQCN.knobs
NIC_KNOBS: tuple[str, ...] = DCQCN.nic
ECN_KNOBS: tuple[str, ...] = DCQCN.ecn
TUNED_KNOBS: tuple[str, ...] = DCQCN.tuned


def knob(name: str) -> Knob:
    """Return a row of DCQCN's table by name; raise :class:`UnknownNameError`."""
    return DCQCN[name]


@dataclass(frozen=True)
class Setting(Mapping[str, float]):
    """One value per knob of a table, in the knob's unit: an immutable mapping from names to floats.

    A device's whole numbers are whole here: what an integer knob is given is rounded (a half to
    the even neighbour). Build it with :meth:`of` or :func:`default_setting`; :meth:`replace`
    changes some knobs; :meth:`check` raises :class:`ConfigError` for a value out of its range.
    """

    numbers: tuple[float, ...]
    table: KnobTable = field(default=DCQCN, repr=False)

    def __post_init__(self) -> None:
        values, rows, real = self.numbers, self.table.rows, self.table.real
        if not isinstance(values, tuple) or len(values) != len(rows):
            got = len(values) if isinstance(values, tuple) else type(values).__name__
            raise ConfigError(f"a setting has {len(rows)} values, one per knob; got {got}")
        pairs = zip(real, values, strict=True)
        if not all(type(v) is float and (any_ or v.is_integer()) for any_, v in pairs):
            numbers = tuple(map(_on_device, rows, values))
            object.__setattr__(self, "numbers", numbers)

    def __getitem__(self, name: str) -> float:
        return self.numbers[self.table.index[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.knobs)

    def __len__(self) -> int:
        return len(self.numbers)

    def replace(self, changes: Mapping[str, float] | None = None, /, **knobs: float) -> Setting:
        """Return a copy with some knobs changed: ``replace(kmin=400)``, or by a mapping.

        Unknown names raise :class:`UnknownNameError`.
        """
        changes = {} if changes is None else changes
        self.table.require(changes, "replace")
        values = list(self.numbers)
        index = self.table.index
        for name, value in {**changes, **knobs}.items():
            place = index.get(name)
            values[index[self.table[name].name] if place is None else place] = value
        return Setting(tuple(values), self.table)

    @classmethod
    def of(cls, values: Mapping[str, float], table: KnobTable = DCQCN) -> Setting:
        """Build a setting from all knobs of the table; raise :class:`ConfigError` if one lacks."""
        for name in values:
            table[name]  # raises for an unknown one
        missing = [name for name in table.knobs if name not in values]
        if missing:
            raise ConfigError(f"a setting needs every knob; missing: {', '.join(missing)}")
        return cls(tuple(values[name] for name in table.knobs), table)

    def _repr_html_(self) -> str:
        """Return a table of the knobs, for notebooks."""
        rows = zip(self.table.rows, self.numbers, strict=True)
        cells = (f"<tr><td>{k.name}<td>{value:g}<td>{k.unit}" for k, value in rows)
        return f"<table><tr><th>knob<th>value<th>unit{''.join(cells)}</table>"

    def check(self, line_rate_bps: float, where: str = "setting") -> Setting:
        """Return self if every knob is legal at this line rate, else raise ConfigError."""
        for row, value in zip(self.table.rows, self.numbers, strict=True):
            low, high = row.legal_at(line_rate_bps)
            if not low <= value <= high:  # also catches NaN
                percent = 1 < value <= 100 and row.name == "pmax"
                raise ConfigError(
                    f"{where}: {row.name} = {value:g} {row.unit} is out of range; "
                    f"expected {low:g} to {high:g} {row.unit}"
                    + (f" ({value:g} % is {value / 100:g})" if percent else "")
                )
        if self["kmin"] > self["kmax"]:
            raise ConfigError(
                f"{where}: kmin = {self['kmin']:g} KB is larger than kmax = {self['kmax']:g} KB; "
                "kmin must be at most kmax"
            )
        return self


def _on_device(row: Knob, value: object) -> float:
    number = _number(row.name, value)
    return float(round(number)) if row.integer and math.isfinite(number) else number


def _number(name: str, value: object) -> float:
    if not isinstance(value, Real):
        raise ConfigError(f"{name} = {quote(value)}: expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ConfigError(f"{name} is {quote(value)}: expected a number of 64 bits") from None


def default_setting(line_rate_bps: float = REFERENCE_RATE_BPS, table: KnobTable = DCQCN) -> Setting:
    """Return the vendor's defaults: NVIDIA's for DCQCN, ECN 400 KB / 1600 KB / 0.2 at 100 Gb/s."""
    return Setting(tuple(row.default_at(line_rate_bps) for row in table.rows), table)


def expert_setting(line_rate_bps: float = REFERENCE_RATE_BPS, table: KnobTable = DCQCN) -> Setting:
    """Return the experts' setting of PARALEON (ICNP'24) Table I, as far as the table has it."""
    values = {
        "rp_ai_rate": 50, "rp_hai_rate": 150, "rp_rate_reduce_monitor_period": 80,
        "np_min_time_between_cnps": 96, "kmin": 1600, "kmax": 6400, "pmax": 0.2,
    }  # fmt: skip
    return setting_with(values, line_rate_bps, table)


def setting_with(values: Mapping[str, float], line_rate_bps: float, table: KnobTable) -> Setting:
    """Return the defaults with those of ``values`` that the table has."""
    known = {name: value for name, value in values.items() if name in table.knobs}
    return default_setting(line_rate_bps, table).replace(known)


def dcqcn_paper_setting(
    line_rate_bps: float = REFERENCE_RATE_BPS, table: KnobTable = DCQCN
) -> Setting:
    """Return DCQCN as published (SIGCOMM'15; values as in DCQCN+, ICNP'18, Table I).

    K = 55 us for both timers, B = 10 MB, R_AI = 40 Mb/s, R_HAI = 100 Mb/s, CNP gap N = 50 us,
    F = 5, g = 1/256, Kmin 5 KB, Kmax 200 KB, Pmax 1 %, at every speed. Meant for ``rp = "paper"``.
    """
    values = {
        "rp_time_reset": 55, "rp_byte_reset": 10_000_000 / 64, "rp_threshold": 5,
        "rp_ai_rate": 40, "rp_hai_rate": 100, "rp_dce_tcp_g": 1020, "rp_dce_tcp_rtt": 55,
        "np_min_time_between_cnps": 50, "kmin": 5, "kmax": 200, "pmax": 0.01,
    }  # fmt: skip
    return setting_with(values, line_rate_bps, table)
