"""Rates and delays of links as a person writes them, and as whole picoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError

PS_PER_US = 1_000_000


@dataclass(frozen=True)
class Link:
    """One full-duplex link between two nodes."""

    a: int
    b: int
    ps_per_byte: int
    delay_ps: int

    @property
    def rate_bps(self) -> float:
        """Rate of each direction in bit/s."""
        return 8e12 / self.ps_per_byte


def us_to_ps(us: float) -> int:
    """Convert microseconds to whole picoseconds (rounded)."""
    return round(us * PS_PER_US)


def ps_per_byte(gbps: float) -> int:
    """Return the time of one byte on a link, exactly; raise :class:`ConfigError` if not whole."""
    exact = Fraction(8000) / Fraction(str(gbps))
    if exact.denominator != 1:
        raise ConfigError(
            f"{gbps:g} Gb/s is {float(exact):.6g} ps per byte; expected a rate with a whole number "
            "of picoseconds per byte (one that divides 8000), such as 10, 25, 40, 50, 100, 200, "
            "400 or 800 Gb/s, or 'ps_per_byte' in its place"
        )
    return exact.numerator


def _whole(gbps: float) -> float:
    ps_per_byte(gbps)
    return gbps


Gbps = Annotated[
    Annotated[float, Field(ge=1, le=800), AfterValidator(_whole)] | None,
    Field(description="a rate in Gb/s"),
]
PsPerByte = Annotated[
    int | None,
    Field(ge=10, le=8000, description="a rate as whole picoseconds per byte, instead of Gb/s"),
]
DelayUs = Annotated[float, Field(ge=0.001, le=1e6, description="a propagation delay in us")]


class Rated(StrictModel):
    """Links whose rate is one of two keys: ``NAME_gbps``, or ``NAME_ps_per_byte`` for odd rates.

    The one that is not used is None, so that a dump can be read again.
    """

    @model_validator(mode="before")
    @classmethod
    def _one_rate(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for exact in (name for name in cls.model_fields if name.endswith("ps_per_byte")):
            gbps = exact.replace("ps_per_byte", "gbps")
            if data.get(exact) is None:
                data = {k: v for k, v in data.items() if k != gbps or v is not None}
            elif data.get(gbps) is not None:
                raise ConfigError(f"give either {gbps!r} or {exact!r}, not both")
            else:
                data = {**data, gbps: None}
        return data

    def step_of(self, prefix: str = "") -> int:
        """Return the picoseconds per byte of the links whose keys begin with ``prefix``."""
        exact: int | None = getattr(self, f"{prefix}ps_per_byte")
        return ps_per_byte(getattr(self, f"{prefix}gbps")) if exact is None else exact
