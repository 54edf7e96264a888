"""The native engine with the resolution of real devices: rounded knobs, their counters alone.

Settings are rounded to what devices take (whole units, whole percents), figures to what they count,
and what no device counts is unknown. A run here and one over a fleet of agents whose devices the
same engine plays choose the same settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dcqcn_gym.core.device_units import setting_on_devices
from dcqcn_gym.core.groups import DeviceSetting, by_group, check_group_names, cluster_setting
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.envs.backends.base import SIMULATED, Opens
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.hw.device_counters import UNKNOWN, Ledger, report_of, shape_of

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario


@dataclass
class _Seen:
    ledger: Ledger
    interval_ps: int


class NativeDevicesBackend(Opens[_Seen]):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend`: the native one behind devices."""

    offers = SIMULATED
    unknown = UNKNOWN

    def __init__(self) -> None:
        self._native = NativeBackend()

    @property
    def done(self) -> bool:
        """True once a finite scenario has delivered everything; False while closed."""
        return self._native.done

    def open(self, scenario: Scenario, seed: int) -> None:
        """Build the network at time 0, all counters at zero."""
        self._native.open(scenario, seed)
        self._open = _Seen(Ledger(shape_of(scenario)), scenario.monitor_interval_ps)

    def apply(self, setting: DeviceSetting) -> None:
        """Put in force what devices make of ``setting``; raise ConfigError for an illegal value."""
        seen = self._opened("apply")
        cluster_setting(setting)
        if isinstance(setting, Setting):
            self._native.apply(setting_on_devices(setting))
            return
        check_group_names(setting, seen.ledger.shape.devices)
        self._native.apply({name: setting_on_devices(s) for name, s in by_group(setting)})

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Run one monitor interval (or ``duration_ps``); report what devices counted."""
        seen = self._opened("advance")
        report = self._native.advance(duration_ps)
        before = seen.ledger.reading()
        seen.ledger.add(report)
        span = (report.index, report.start_ps, report.end_ps)
        return report_of(seen.ledger.shape, before, seen.ledger.reading(), span, report.fsd)

    def close(self) -> None:
        """Release everything; allowed in every state."""
        self._native.close()
        self._open = None
