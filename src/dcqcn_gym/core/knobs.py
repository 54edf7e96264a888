"""THE knob table: every DCQCN and ECN knob, once, with its units, ranges, direction and names.

The action space, ``--set``, ``--emit``, the docs, the engine and the hardware writers all read
this table. Inside the project a knob's value is in SI units (seconds, bit/s, bytes, plain
numbers); NVIDIA's units exist only at the edge (:meth:`Knob.to_nvidia`, :meth:`Knob.to_si`).

Sources: NVIDIA "DCQCN CC Parameters", mstflint's firmware field layout, the kernel's mlx5
``cong.c`` (file names), public mlxconfig dumps (defaults); PARALEON (ICNP'24) Table I (expert
setting) and its authors' code (ranges and steps of the tuned knobs). docs/knobs.md explains them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dcqcn_gym.core.errors import ConfigError, UnknownNameError

__all__ = [
    "ECN_KNOBS",
    "KNOBS",
    "NIC_KNOBS",
    "REFERENCE_RATE_BPS",
    "TUNED_KNOBS",
    "Knob",
    "Setting",
    "dcqcn_paper_setting",
    "default_setting",
    "expert_setting",
    "knob",
]

REFERENCE_RATE_BPS = 100e9
"""Line rate at which ECN defaults and ranges are stated; they scale with the line rate."""

Group = Literal["rp_increase", "rp_decrease", "rp_alpha", "np", "ecn"]
Scaling = Literal["none", "rate", "line_fraction"]


@dataclass(frozen=True)
class Knob:
    """One row of the table. Numbers are in NVIDIA's units unless a name says otherwise.

    ``legal`` bounds what a person may set, ``tuned`` what an action can reach. ``scaling`` says
    how default, legal and tuned follow the line rate: ``"rate"`` in proportion to rate/100G
    (ECN thresholds), ``"line_fraction"`` as percent of the line rate (first-CNP rate, tuned range
    only). ``direction`` is +1 if raising the knob favours throughput, -1 if lowering it does.
    ``off`` is a value that means "off" and is reachable only by an explicit setting;
    ``off_acts_like`` is where a search that starts there begins (fraction of the tuned range).
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
    scaling: Scaling = "none"
    off: float | None = None
    off_acts_like: float = 1.0

    @property
    def is_ecn(self) -> bool:
        """True for a switch knob, False for a NIC knob."""
        return self.group == "ecn"

    def to_si(self, value: float) -> float:
        """Convert a value in NVIDIA's unit to SI."""
        return value * self.si_per_unit

    def to_nvidia(self, si: float) -> float:
        """Convert an SI value to NVIDIA's unit (a whole number for integer knobs)."""
        value = si / self.si_per_unit
        return float(round(value)) if self.integer and math.isfinite(value) else value

    def _scale(self, line_rate_bps: float) -> float:
        return line_rate_bps / REFERENCE_RATE_BPS if self.scaling == "rate" else 1.0

    def default_at(self, line_rate_bps: float) -> float:
        """Return the vendor default in NVIDIA's unit at this line rate."""
        return self.default * self._scale(line_rate_bps)

    def legal_at(self, line_rate_bps: float) -> tuple[float, float]:
        """Return the closed legal range in NVIDIA's unit at this line rate."""
        if self.si_unit == "bit/s":
            return self.legal[0], min(self.legal[1], line_rate_bps / self.si_per_unit)
        return self.legal

    def tuned_at(self, line_rate_bps: float) -> tuple[float, float]:
        """Return the range that actions reach, in NVIDIA's unit, at this line rate."""
        if self.scaling == "line_fraction":
            line = line_rate_bps / self.si_per_unit
            return self.tuned[0] / 100 * line, self.tuned[1] / 100 * line
        scale = self._scale(line_rate_bps)
        low, high = self.tuned[0] * scale, self.tuned[1] * scale
        return low, min(high, self.legal_at(line_rate_bps)[1])

    def step_at(self, line_rate_bps: float) -> float:
        """Return the search step s_p in NVIDIA's unit at this line rate."""
        if self.scaling == "line_fraction":
            return self.step / 100 * line_rate_bps / self.si_per_unit
        return self.step * self._scale(line_rate_bps)


US, MBPS, KB = 1e-6, 1e6, 1e3

_TABLE = (
    Knob("rp_clamp_tgt_rate", "rp_increase", "flag", 1, "1", 0, (0, 1), (0, 1), 1, -1,
         "1: every cut sets the target rate to the current rate; "
         "0: only if an increase happened since the last cut",
         "CLAMP_TGT_RATE", "rp_clamp_tgt_rate"),
    Knob("rp_clamp_tgt_rate_ati", "rp_increase", "flag", 1, "1", 1, (0, 1), (0, 1), 1, -1,
         "1: a timer-driven increase counts for the rule above, not only a byte-counter one",
         "CLAMP_TGT_RATE_AFTER_TIME_INC", "rp_clamp_tgt_rate_ati"),
    Knob("rp_time_reset", "rp_increase", "us", US, "s", 300, (1, 131071), (1, 131071), 50, -1,
         "time between two rate increases without a cut",
         "RPG_TIME_RESET", "rp_time_reset", log=True, tuned_by_default=True),
    # mlxconfig's field has 15 bits, the kernel's (cc_params) 32: DCQCN's published 10 MB needs more
    # than the former.
    Knob("rp_byte_reset", "rp_increase", "64 B", 64, "B", 32767, (0, 2**32 - 1), (1, 32767), 1024,
         -1,
         "bytes sent between two rate increases; 0: the byte stage follows the timer stage",
         "RPG_BYTE_RESET", "rp_byte_reset", log=True, off=0),
    Knob("rp_threshold", "rp_increase", "stages", 1, "1", 1, (0, 31), (1, 31), 1, -1,
         "stages of fast recovery (F) before the target rate is raised",
         "RPG_THRESHOLD", "rp_threshold"),
    Knob("rp_max_rate", "rp_increase", "Mb/s", MBPS, "bit/s", 0, (0, 2**31 - 1), (10, 100), 10, 1,
         "highest rate of a queue pair; 0: port speed",
         "RPG_MAX_RATE", "rp_max_rate", scaling="line_fraction", off=0),
    Knob("rp_ai_rate", "rp_increase", "Mb/s", MBPS, "bit/s", 5, (1, 131071), (1, 500), 50, 1,
         "target-rate step of additive increase",
         "RPG_AI_RATE", "rp_ai_rate", log=True, tuned_by_default=True),
    Knob("rp_hai_rate", "rp_increase", "Mb/s", MBPS, "bit/s", 50, (1, 131071), (10, 5000), 100, 1,
         "target-rate step of hyper increase",
         "RPG_HAI_RATE", "rp_hai_rate", log=True, tuned_by_default=True),
    Knob("rp_gd", "rp_decrease", "log2", 1, "1", 11, (0, 15), (10, 13), 1, 1,
         "a cut multiplies the rate by 1 - alpha/2^gd, alpha in 0..1023",
         "RPG_GD", "rp_gd", tuned_by_default=True),
    Knob("rp_min_dec_fac", "rp_decrease", "%", 0.01, "1", 50, (0, 100), (10, 100), 10, 1,
         "floor of one cut, percent of the rate before it",
         "RPG_MIN_DEC_FAC", "rp_min_dec_fac", tuned_by_default=True),
    Knob("rp_min_rate", "rp_decrease", "Mb/s", MBPS, "bit/s", 1, (1, 2**31 - 1), (1, 5000), 300, 1,
         "lowest rate of a queue pair",
         "RPG_MIN_RATE", "rp_min_rate", log=True, tuned_by_default=True),
    Knob("rp_rate_to_set_on_first_cnp", "rp_decrease", "Mb/s", MBPS, "bit/s", 0,
         (0, 2**31 - 1), (10, 100), 10, 1,
         "current and target rate at the first CNP of a queue pair; 0: no change",
         "RATE_TO_SET_ON_FIRST_CNP", "rp_rate_to_set_on_first_cnp",
         tuned_by_default=True, scaling="line_fraction", off=0),
    Knob("rp_rate_reduce_monitor_period", "rp_decrease", "us", US, "s", 4, (1, 131071), (1, 200),
         10, 1, "shortest time between two cuts; a cut needs a CNP in the period",
         "RATE_REDUCE_MONITOR_PERIOD", "rp_rate_reduce_monitor_period",
         log=True, tuned_by_default=True),
    Knob("rp_dce_tcp_g", "rp_alpha", "1/1024", 1 / 1024, "1", 1019, (0, 1023), (1, 1019), 16, -1,
         "weight G of the old alpha: alpha = G/1024 * alpha (+ 1024 - G after a CNP)",
         "DCE_TCP_G", "rp_dce_tcp_g", tuned_by_default=True),
    Knob("rp_dce_tcp_rtt", "rp_alpha", "us", US, "s", 1, (1, 131071), (1, 131071), 5, -1,
         "period of the alpha update",
         "DCE_TCP_RTT", "rp_dce_tcp_rtt", log=True),
    Knob("rp_initial_alpha_value", "rp_alpha", "1/1024", 1 / 1024, "1", 1023, (1, 1023),
         (1, 1023), 16, -1, "alpha at the first CNP of a queue pair",
         "INITIAL_ALPHA_VALUE", "rp_initial_alpha_value", tuned_by_default=True),
    Knob("np_min_time_between_cnps", "np", "us", US, "s", 4, (0, 131071), (0, 4095), 16, 1,
         "shortest gap between two CNPs of one queue pair",
         "MIN_TIME_BETWEEN_CNPS", "np_min_time_between_cnps", log=True, tuned_by_default=True),
    Knob("kmin", "ecn", "KB", KB, "B", 400, (0, 4e6), (10, 1600), 100, 1,
         "queue length at which marking begins (1 KB = 1000 B)",
         sonic="green_min_threshold", integer=False, log=True, tuned_by_default=True,
         scaling="rate"),
    Knob("kmax", "ecn", "KB", KB, "B", 1600, (0, 4e6), (40, 6400), 400, 1,
         "queue length above which every packet is marked (1 KB = 1000 B)",
         sonic="green_max_threshold", integer=False, log=True, tuned_by_default=True,
         scaling="rate"),
    Knob("pmax", "ecn", "probability", 1, "1", 0.2, (0, 1), (0.01, 1), 0.02, -1,
         "marking probability at kmax",
         sonic="green_drop_probability", integer=False, tuned_by_default=True),
)  # fmt: skip

KNOBS: Mapping[str, Knob] = {row.name: row for row in _TABLE}
NIC_KNOBS: tuple[str, ...] = tuple(k.name for k in _TABLE if not k.is_ecn)
ECN_KNOBS: tuple[str, ...] = tuple(k.name for k in _TABLE if k.is_ecn)
TUNED_KNOBS: tuple[str, ...] = tuple(k.name for k in _TABLE if k.tuned_by_default)


def knob(name: str) -> Knob:
    """Return a row by name; raise :class:`UnknownNameError` with near matches."""
    try:
        return KNOBS[name]
    except KeyError:
        raise UnknownNameError("knob", name, KNOBS) from None


@dataclass(frozen=True)
class Setting(Mapping[str, float]):
    """One value per knob, in SI units: an immutable mapping from all 20 names to floats.

    Build it with :meth:`from_nvidia` or :func:`default_setting`; :meth:`replace` changes some
    knobs. :meth:`check` raises :class:`ConfigError` for values outside the legal range.
    """

    values_si: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.values_si) != len(KNOBS):
            raise ConfigError(
                f"a setting has {len(KNOBS)} values, one per knob; got {len(self.values_si)}"
            )

    def __getitem__(self, name: str) -> float:
        try:
            return self.values_si[_INDEX[name]]
        except KeyError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(KNOBS)

    def __len__(self) -> int:
        return len(KNOBS)

    def replace(self, changes: Mapping[str, float]) -> Setting:
        """Return a copy with these knobs (SI units) changed; unknown names raise."""
        for name in changes:
            knob(name)
        return Setting(tuple(float(changes.get(n, self[n])) for n in KNOBS))

    def replace_nvidia(self, changes: Mapping[str, float]) -> Setting:
        """Return a copy with these knobs, given in NVIDIA's units, changed."""
        return self.replace({n: knob(n).to_si(float(v)) for n, v in changes.items()})

    def to_nvidia(self) -> dict[str, float]:
        """Return every knob in NVIDIA's units, in table order."""
        return {name: KNOBS[name].to_nvidia(self[name]) for name in KNOBS}

    @classmethod
    def from_nvidia(cls, values: Mapping[str, float]) -> Setting:
        """Build a setting from all 20 knobs in NVIDIA's units."""
        missing = [n for n in KNOBS if n not in values]
        if missing:
            raise ConfigError(f"a setting needs every knob; missing: {', '.join(missing)}")
        return cls(tuple(KNOBS[n].to_si(float(values[n])) for n in KNOBS)).replace_nvidia(values)

    def canonical(self) -> Setting:
        """Return the setting as a log in NVIDIA's units gives it back, to the bit."""
        return Setting.from_nvidia(self.to_nvidia())

    def check(self, line_rate_bps: float, where: str = "setting") -> Setting:
        """Return self if every knob is legal at this line rate, else raise ConfigError."""
        for name, value in self.to_nvidia().items():
            row = KNOBS[name]
            low, high = row.legal_at(line_rate_bps)
            if not low <= value <= high:  # also catches NaN
                raise ConfigError(
                    f"{where}: {name} = {value:g} {row.unit} is out of range; "
                    f"expected {low:g} to {high:g} {row.unit}"
                )
        if self["kmin"] > self["kmax"]:
            raise ConfigError(
                f"{where}: kmin = {self['kmin'] / KB:g} KB is larger than "
                f"kmax = {self['kmax'] / KB:g} KB; kmin must be at most kmax"
            )
        return self


_INDEX = {name: i for i, name in enumerate(KNOBS)}


def default_setting(line_rate_bps: float = REFERENCE_RATE_BPS) -> Setting:
    """Return NVIDIA's NIC defaults with ECN 400 KB / 1600 KB / 0.2 scaled from 100 Gb/s."""
    return Setting(tuple(k.to_si(k.default_at(line_rate_bps)) for k in _TABLE))


def expert_setting(line_rate_bps: float = REFERENCE_RATE_BPS) -> Setting:
    """Return the experts' setting of PARALEON (ICNP'24) Table I, as printed at every speed."""
    return default_setting(line_rate_bps).replace_nvidia(
        {
            "rp_ai_rate": 50,
            "rp_hai_rate": 150,
            "rp_rate_reduce_monitor_period": 80,
            "np_min_time_between_cnps": 96,
            "kmin": 1600,
            "kmax": 6400,
            "pmax": 0.2,
        }
    )


def dcqcn_paper_setting(line_rate_bps: float = REFERENCE_RATE_BPS) -> Setting:
    """Return DCQCN as published (SIGCOMM'15; values as in DCQCN+, ICNP'18, Table I).

    K = 55 us for both timers, B = 10 MB, R_AI = 40 Mb/s, R_HAI = 100 Mb/s, CNP gap N = 50 us,
    F = 5, g = 1/256, Kmin 5 KB, Kmax 200 KB, Pmax 1 %, at every speed. Meant for ``rp = "paper"``.
    """
    return default_setting(line_rate_bps).replace_nvidia(
        {
            "rp_time_reset": 55,
            "rp_byte_reset": 10_000_000 / 64,
            "rp_threshold": 5,
            "rp_ai_rate": 40,
            "rp_hai_rate": 100,
            "rp_dce_tcp_g": 1020,
            "rp_dce_tcp_rtt": 55,
            "np_min_time_between_cnps": 50,
            "kmin": 5,
            "kmax": 200,
            "pmax": 0.01,
        }
    )
