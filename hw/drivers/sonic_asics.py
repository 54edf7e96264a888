"""A SONiC switch of several ASICs: each has a Redis server, and ports, of its own.

SONiC's multi-ASIC platforms run one set of databases per ASIC (``/var/run/redis0/redis.sock``, ...:
``database_global.json`` of sonic-swss-common). A place begins with the ASIC's name. ASICs are
written one after the other; if one fails, the change of all of them is taken back.
"""

from __future__ import annotations

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.errors import ConfigError, DeviceError, quote
from dcqcn_gym.hw.drivers.base import Driver, DriverSettings, Edit, Surroundings, Targets, Values
from dcqcn_gym.hw.drivers.sonic import SonicDriver, SonicSettings


class SonicAsicsSettings(DriverSettings):
    """The ASICs by name, each as a switch of the driver ``sonic``."""

    asics: dict[str, SonicSettings] = Field(min_length=1, description="name -> an ASIC's settings")

    @model_validator(mode="after")
    def _check(self) -> Self:
        ports = [port for own in self.asics.values() for port in own.ports]
        twice = sorted({port for port in ports if ports.count(port) > 1})
        if twice or any("/" in name for name in self.asics):
            raise ConfigError(
                f"asics: port {twice[0]!r} is of two"
                if twice
                else "asics: expected names without /"
            )
        return self


class SonicAsicsDriver(Driver):
    """See the module."""

    name = "sonic-asics"
    summary = "switch: SONiC with several ASICs, each as `sonic`"
    kind = "switch"
    Settings = SonicAsicsSettings

    def __init__(self, settings: SonicAsicsSettings, around: Surroundings) -> None:
        self._asics = {name: SonicDriver(own, around) for name, own in settings.asics.items()}

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the ports, ASIC by ASIC."""
        return tuple(port for asic in self._asics.values() for port in asic.ports)

    def knobs(self) -> tuple[str, ...]:
        """Return kmin, kmax and pmax, once every port's profile is found fit to mark."""
        found = [asic.knobs() for asic in self._asics.values()]  # all are asked
        return found[0]

    def read(self) -> dict[str, str]:
        """Return what every ASIC holds."""
        found: dict[str, str] = {}
        for name, asic in self._asics.items():
            found |= {f"{name}/{place}": text for place, text in asic.read().items()}
        return found

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the fields that must change; raise if ports that share a profile differ."""
        for port in targets:
            if port and port not in self.ports:
                raise DeviceError(f"port {quote(port)} is not one of {', '.join(self.ports)}")
        found: dict[str, str] = {}
        for name, asic in self._asics.items():
            own = {port: knobs for port, knobs in targets.items() if not port or port in asic.ports}
            if own:
                found |= {f"{name}/{place}": text for place, text in asic.stage(own).items()}
        return found

    def diff(self, before: Values, after: Values) -> list[Edit]:
        """Return one line per field; ``shared_by`` are queues of the same ASIC."""
        old, new = self._by_asic(before), self._by_asic(after)
        return [
            Edit(f"{name}/{x.place}", x.knob, x.unit, x.before, x.after, x.shared_by, x.needs_reset)
            for name, values in new.items()
            for x in self._asics[name].diff(old.get(name, {}), values)
        ]

    def apply(self, values: Values) -> None:
        """Write ASIC by ASIC, and wait until each holds it."""
        for name, own in self._by_asic(values).items():
            self._asics[name].apply(own)

    def read_back(self, values: Values) -> dict[str, str]:
        """Return what an ASIC, or its CONFIG_DB, holds otherwise."""
        found: dict[str, str] = {}
        for name, own in self._by_asic(values).items():
            wrong = self._asics[name].read_back(own)
            found |= {f"{name}/{place}": text for place, text in wrong.items()}
        return found

    def setting(self) -> dict[str, dict[str, float]]:
        """Return port -> knobs."""
        return {port: own for a in self._asics.values() for port, own in a.setting().items()}

    def line_rate_bps(self) -> float | None:
        """Return the speed of the fastest port."""
        rates = [asic.line_rate_bps() for asic in self._asics.values()]
        return max((rate for rate in rates if rate is not None), default=None)

    def prepare(self, interval_ms: float) -> None:
        """Raise if a group of counters is polled less often than every ``interval_ms``."""
        for asic in self._asics.values():
            asic.prepare(interval_ms)

    def keep(self) -> None:
        """Save once, if the settings of the first ASIC say so: SONiC saves all of them."""
        next(iter(self._asics.values())).keep()

    def counters(self) -> dict[str, int]:
        """Return ``PORT/figure`` of every port."""
        return {name: n for asic in self._asics.values() for name, n in asic.counters().items()}

    def _by_asic(self, values: Values) -> dict[str, dict[str, str]]:
        """Return ASIC -> its places; DeviceError for one that is of none."""
        found: dict[str, dict[str, str]] = {}
        for place, text in values.items():
            name, _, own = place.partition("/")
            if name not in self._asics:
                raise DeviceError(f"{place} is of no ASIC of this switch")
            found.setdefault(name, {})[own] = text
        return found
