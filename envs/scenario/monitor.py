"""How the flow sizes of a scenario are measured: the table ``[monitor]``, one model per kind.

A kind's options are those of its file in ``engine/model/monitors``; any other ``kind`` is a monitor
written in Python (:mod:`dcqcn_gym.envs.monitors`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from dcqcn_gym.core.config import ShortDumpModel, StrictModel, validate
from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.tables import Cdf, CdfField

SKETCH_BUCKET_BYTES = 64
OWN = "python"
"""The tag of every kind that the engine does not know."""


class Monitor(StrictModel):
    """What every kind has.

    ``tau_bytes``: an elephant has sent this much; ``theta``: KL divergence that triggers tuning.
    """

    summary: ClassVar[str] = ""
    kind: str
    tau_bytes: int = Field(default=1_000_000, ge=1, le=2**50)
    theta: float = Field(default=0.01, ge=0)

    @property
    def engine_kind(self) -> str:
        """The kind of the engine that counts for it."""
        return self.kind

    @property
    def distribution(self) -> Cdf | None:
        """The distribution of flow sizes that it knows beforehand, if any."""
        return None

    def words(self) -> dict[str, object]:
        """Return its options as the engine names them, but for the number of the distribution."""
        words: dict[str, object] = {"kind": self.engine_kind}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name.endswith("_us"):
                words[name.removesuffix("us") + "ps"] = us_to_ps(value)
            elif isinstance(value, float):
                words[name] = repr(value)
            elif name == "hash_seed" and not value:
                continue
            elif name not in ("kind", "sizes_cdf", "options"):
                words["tau" if name == "tau_bytes" else name] = value
        return words


class _States(Monitor):
    """Ternary states over a window (PARALEON section III-B).

    ``delta``: intervals of activity that make a potential elephant; ``pe_weight``: how a potential
    elephant counts, by bytes/tau, by age, or by the chance that a flow of the distribution
    ``sizes_cdf`` that got so far reaches tau.
    """

    delta: int = Field(default=3, ge=1, le=1000)
    pe_weight: Literal["ratio", "logistic", "survival"] = "ratio"
    sizes_cdf: CdfField | None = None
    max_flows: int = Field(default=65_536, ge=1, le=2**30, description="bound on the history")

    @model_validator(mode="after")
    def _check_states(self) -> Self:
        if self.pe_weight == "survival" and self.sizes_cdf is None:
            raise ConfigError(
                "pe_weight = 'survival' needs 'sizes_cdf'; expected the distribution of the flow "
                'sizes, such as sizes_cdf = "FB_Hadoop"'
            )
        return self

    @property
    def distribution(self) -> Cdf | None:
        """The distribution that ``pe_weight = "survival"`` looks into."""
        return self.sizes_cdf


class _Sketch(Monitor, ShortDumpModel):
    """An Elastic Sketch: sizes of its parts, and what a counter counts."""

    later: ClassVar[Collection[str]] = ("hash_seed",)

    heavy_bytes: int = Field(default=153_600, ge=1, le=2**26)
    light_bytes: int = Field(default=460_800, ge=1, le=2**26)
    unit: Literal["bytes", "packets"] = "bytes"
    hash_seed: int = Field(
        default=0, ge=0, le=2**31 - 1, description="other hash functions: other flows collide"
    )

    @model_validator(mode="after")
    def _check_sketch(self) -> Self:
        if self.heavy_bytes < SKETCH_BUCKET_BYTES:
            raise ConfigError(
                f"heavy_bytes = {self.heavy_bytes} is too small for one bucket; expected at least "
                f"{SKETCH_BUCKET_BYTES}"
            )
        counter = 1 if self.unit == "packets" else 4
        if self.light_bytes < counter:
            raise ConfigError(
                f"light_bytes = {self.light_bytes} is too small for one counter of {self.unit}; "
                f"expected at least {counter}"
            )
        return self


class NoMonitor(Monitor):
    """No distribution: packets are not looked at."""

    summary = "no distribution"
    kind: Literal["none"] = "none"


class ExactMonitor(_States):
    """Exact counters, ternary states: what a sketch with endless memory would say."""

    summary = "exact counters, ternary states over a window"
    kind: Literal["exact"] = "exact"


class ElasticMonitor(_Sketch, _States):
    """Elastic Sketch, ternary states: the monitor of PARALEON."""

    summary = "Elastic Sketch, ternary states over a window (PARALEON)"
    kind: Literal["elastic"] = "elastic"


class ElasticNaiveMonitor(_Sketch):
    """Elastic Sketch, every interval judged alone."""

    summary = "Elastic Sketch, every interval judged alone"
    kind: Literal["elastic-naive"] = "elastic-naive"


class NetflowMonitor(Monitor):
    """Sampled packets, exported now and then."""

    summary = "sampled packets, exported now and then"
    kind: Literal["netflow"] = "netflow"
    sample_one_in: int = Field(default=100, ge=1, le=1_000_000)
    export_us: float = Field(default=1e6, ge=1, le=1e9)


class ChameleonMonitor(_Sketch):
    """Elastic Sketch, local statistics whose mean is uploaded now and then."""

    summary = "Elastic Sketch, statistics of 10 ms, uploaded every 100 ms"
    kind: Literal["chameleon"] = "chameleon"
    local_us: float = Field(default=10_000.0, ge=1, le=1e9)
    upload_us: float = Field(default=100_000.0, ge=1, le=1e9)

    @model_validator(mode="after")
    def _check_periods(self) -> Self:
        if self.local_us > self.upload_us:  # most uploads would say that there are no flows
            raise ConfigError(
                f"local_us = {self.local_us:g} is longer than upload_us = {self.upload_us:g}; "
                "expected at least one local period in each upload"
            )
        return self


class OwnMonitor(Monitor):
    """A monitor in Python, fed by the flow log: a registered name or ``path.py:Class``."""

    summary = "a monitor in Python"
    # the default is its tag alone: who leaves the kind out gets exact counters
    kind: str = Field(default=OWN, description="the name of a monitor in Python, or path.py:Class")
    options: dict[str, Any] = Field(default={}, description="the monitor's own options")

    @field_validator("kind")
    @classmethod
    def _check_kind(cls, kind: str) -> str:
        # its code is not loaded here: a log is to be read without running what it names
        if ".py" not in kind and kind not in _in_python():
            raise UnknownNameError("kind of monitor", kind, monitor_kinds())
        return kind

    @property
    def engine_kind(self) -> str:
        """The kind of the engine that keeps the log."""
        return "flow-log"


KINDS: Mapping[str, type[Monitor]] = {
    str(model.model_fields["kind"].default): model
    for model in (
        ElasticMonitor,
        ExactMonitor,
        ElasticNaiveMonitor,
        NetflowMonitor,
        ChameleonMonitor,
        NoMonitor,
    )
}
"""The kinds of the engine: one line each."""


def monitor_kinds() -> list[str]:
    """Return the name of every kind: the engine's, then those in Python."""
    return [*KINDS, *(name for name in _in_python() if name not in KINDS)]


def _in_python() -> list[str]:
    from dcqcn_gym.envs.monitors import MONITORS  # few scenarios have one of these

    return MONITORS.names()


def _model(kind: object) -> type[Monitor]:
    return KINDS.get(str(kind), OwnMonitor)


def _kind(value: Any) -> str:
    """Return the tag of a table or of a monitor."""
    kind = value.get("kind", "exact") if isinstance(value, Mapping) else value.kind
    return str(kind) if str(kind) in KINDS else OWN


def _own_keys(value: Any) -> Any:
    """Refuse options that only other kinds have, with the names of those."""
    if isinstance(value, Monitor):
        return value
    if not isinstance(value, Mapping):
        raise ConfigError(f"{quote(value)}; expected a table with a kind and its options")
    kind = value.get("kind", "exact")
    own = _model(kind).model_fields
    for key, given in value.items():
        owners = [name for name, model in KINDS.items() if key in model.model_fields]
        if owners and key not in own:
            raise ConfigError(
                f"{key} = {quote(given)} is an option of kind {', '.join(owners)}, not of "
                f"{quote(kind)}; "
                "leave it out or choose another kind"
            )
    return value


MonitorField = Annotated[
    Annotated[ElasticMonitor, Tag("elastic")]
    | Annotated[ExactMonitor, Tag("exact")]
    | Annotated[ElasticNaiveMonitor, Tag("elastic-naive")]
    | Annotated[NetflowMonitor, Tag("netflow")]
    | Annotated[ChameleonMonitor, Tag("chameleon")]
    | Annotated[NoMonitor, Tag("none")]
    | Annotated[OwnMonitor, Tag(OWN)],
    Discriminator(_kind),
    BeforeValidator(_own_keys),
]


class _Table(StrictModel):
    monitor: MonitorField


def monitor_of(data: Mapping[str, Any], *, source: str = "scenario") -> Monitor:
    """Return a monitor from its table; raise :class:`ConfigError` that begins with ``source``."""
    monitor: Monitor = validate({"monitor": data}, _Table, source=source).monitor
    return monitor


def with_kind(monitor: Monitor, kind: str, *, source: str = "scenario") -> Monitor:
    """Return a monitor of another kind with the options that both kinds have."""
    return monitor_of({**shared_options(monitor, kind), "kind": kind}, source=source)


def shared_options(monitor: Monitor, kind: str) -> dict[str, Any]:
    """Return the options of a monitor that another kind has as well."""
    shared = set(_model(kind).model_fields) - {"kind", "options"}
    dump = monitor.model_dump(mode="json")
    return {name: value for name, value in dump.items() if name in shared}
