"""Runs a monitor written in Python: feeds it the engine's flow log and checks what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from dcqcn_gym import _core
from dcqcn_gym.core.config import describe
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, MonitorError, in_one_line
from dcqcn_gym.core.interval import FSD_BINS, FlowSizeDistribution
from dcqcn_gym.envs.monitors import MONITORS
from dcqcn_gym.envs.monitors.base import FloatArray, FlowLog, FlowMonitor, MonitorContext

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.monitor import OwnMonitor

_COUNTS = ("elephants", "potential", "mice", "weighted_elephants", "weighted_mice")

SIZES_AND_FLOWS = (
    "monitor_bytes",
    "data_plane_bytes",
    "control_plane_bytes",
    "tracked_flows",
    "untracked_flows",
)
"""Figures of a distribution that say what its monitor costs."""


def make_monitor(kind: str, options: Mapping[str, Any], context: MonitorContext) -> FlowMonitor:
    """Return a monitor by registered name or ``path.py:Class``.

    Raises :class:`ConfigError` for an unknown name or option, :class:`MonitorError` if the class
    cannot be made.
    """
    found = MONITORS.load(kind)
    try:
        settings = found.Settings.model_validate(dict(options))
    except ValidationError as error:
        raise ConfigError(describe(error, found.Settings, f"monitor {kind!r}, options")) from None
    try:
        return found(context, settings)
    except DcqcnGymError:
        raise
    except (Exception, SystemExit) as error:
        raise MonitorError(f"monitor {kind!r} cannot be made: {in_one_line(error)}") from error


class Trigger:
    """The engine's own trigger: how far a distribution is from the last one; is it too far?"""

    def __init__(self, theta: float) -> None:
        self._theta = theta
        self._last: tuple[float, float, bool] | None = None
        self._trigger = _core.KlTrigger(theta)

    def complete(self, fsd: FlowSizeDistribution) -> FlowSizeDistribution:
        """Return the next interval's distribution with its divergence (nats) and trigger."""
        seen = fsd.weighted_elephants, fsd.weighted_mice, fsd.known
        kl, triggered = self._trigger.update(*seen)
        if fsd.known and fsd.weighted_elephants + fsd.weighted_mice > 0:
            self._last = seen  # all that the trigger remembers
        return replace(fsd, kl=kl, triggered=triggered)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go on with the same distribution."""
        return _trigger_after, (self._theta, self._last)


def _trigger_after(theta: float, last: tuple[float, float, bool] | None) -> Trigger:
    trigger = Trigger(theta)
    if last is not None:
        elephants, mice, known = last
        trigger.complete(
            FlowSizeDistribution(weighted_elephants=elephants, weighted_mice=mice, known=known)
        )
    return trigger


class FlowLogReader:
    """One monitor of one run, and the trigger behind it."""

    def __init__(self, monitor: OwnMonitor, switches: int, interval_ps: int, seed: int) -> None:
        self.kind = monitor.kind
        context = MonitorContext(seed, switches, monitor.tau_bytes, interval_ps)
        self._monitor = make_monitor(monitor.kind, monitor.options, context)
        self._trigger = Trigger(monitor.theta)

    def read(self, columns: Mapping[str, Any], start_ps: int, end_ps: int) -> FlowSizeDistribution:
        """Return the distribution of an interval from the engine's flow log.

        Raises :class:`MonitorError` if the monitor raises or says what cannot be.
        """
        fsd = self._called("observe", self.log_of(columns, start_ps, end_ps))
        if not isinstance(fsd, FlowSizeDistribution):
            raise MonitorError(
                f"monitor {self.kind!r}: observe returned {type(fsd).__name__}; expected a "
                "FlowSizeDistribution"
            )
        if problem := _problem(fsd):
            raise MonitorError(f"monitor {self.kind!r}: {problem}")
        return self._trigger.complete(fsd)

    def elephant_shares(
        self, columns: Mapping[str, Any], start_ps: int, end_ps: int
    ) -> FloatArray | None:
        """Return what the monitor holds each row of the log for that it has just read."""
        log = self.log_of(columns, start_ps, end_ps)
        shares: FloatArray | None = self._called("elephant_shares", log)
        if shares is not None and np.shape(shares) != (len(log.key),):
            raise MonitorError(
                f"monitor {self.kind!r}: elephant_shares has the shape {np.shape(shares)}; "
                f"expected one number for each of the {len(log.key)} rows"
            )
        return shares

    @staticmethod
    def log_of(columns: Mapping[str, Any], start_ps: int, end_ps: int) -> FlowLog:
        """Return a log whose arrays nobody can change."""
        for column in columns.values():
            column.flags.writeable = False
        return FlowLog(start_ps, end_ps, **columns)

    def _called(self, method: str, log: FlowLog) -> Any:
        try:
            return getattr(self._monitor, method)(log)
        except DcqcnGymError:
            raise
        except (Exception, SystemExit) as error:
            raise MonitorError(
                f"monitor {self.kind!r} failed in {method} of the interval that ends at "
                f"{log.end_ps / 1e9:g} ms: {in_one_line(error)}"
            ) from error


def _problem(fsd: FlowSizeDistribution) -> str:
    """Return why this is no distribution, or an empty string."""
    for name in (*_COUNTS, *SIZES_AND_FLOWS):
        value = getattr(fsd, name)
        if not np.isfinite(value) or value < 0:
            return f"{name} = {value}; expected 0 or more"
    for name in SIZES_AND_FLOWS:
        if getattr(fsd, name) != int(getattr(fsd, name)):
            return f"{name} = {getattr(fsd, name)}; expected a whole number"
    bins = np.asarray(fsd.bins)
    if bins.shape != (FSD_BINS,) or not np.isfinite(bins).all() or (bins < 0).any():
        return f"bins = {bins.tolist()}; expected {FSD_BINS} numbers of 0 or more"
    flows = fsd.elephants + fsd.potential + fsd.mice
    for what, total in (
        ("weighted_elephants + weighted_mice", fsd.weighted_elephants + fsd.weighted_mice),
        ("the sum of bins", float(bins.sum())),
    ):
        if abs(total - flows) > 1e-6 * max(flows, 1.0):
            return f"{what} = {total:g}; expected elephants + potential + mice = {flows:g}"
    return ""
