"""Switches of NVIDIA with NVUE, by the program ``nv`` on the switch itself, in force at once.

``nv set qos congestion-control PROFILE traffic-class N min-threshold|max-threshold|probability``
(NVIDIA's NVUE reference, "QoS"), thresholds in bytes, a probability of 1 to 100 percent. A trial is
``nv config apply --confirm``, which goes back by itself. What holds is ``nv config show -o
commands``; thresholds that the configuration does not state are refused. Nobody recorded it from a
switch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

from pydantic import Field

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.drivers.base import Surroundings
from dcqcn_gym.hw.drivers.switch import CommittedSwitch, SwitchSettings


class NvueSettings(SwitchSettings):
    """One switch, and its profile of the lossless traffic."""

    profile: str = Field(
        default="default-global", pattern=r"^[\w.-]{1,64}$", description="of congestion control"
    )
    tc: int = Field(default=3, ge=0, le=7, description="the traffic class of the lossless traffic")


class NvueDriver(CommittedSwitch):
    """See the module."""

    name = "nvue"
    summary = "switch: NVUE's `nv`, at once; trials have the switch's own timer; no counters"
    Settings = NvueSettings
    fields: ClassVar[Mapping[str, str]] = {
        "min-threshold": "kmin",
        "max-threshold": "kmax",
        "probability": "pmax",
    }
    _settings: NvueSettings

    def __init__(self, settings: NvueSettings, around: Surroundings) -> None:
        super().__init__()
        self._settings, self._runner = settings, around.runner
        self._class = ("qos", "congestion-control", settings.profile, "traffic-class",
                       str(settings.tc))  # fmt: skip

    def _profiles(self) -> dict[str, str]:
        return dict.fromkeys(self._settings.ports, self._settings.profile)

    def read(self) -> dict[str, str]:
        """Return the three fields as the configuration that is applied states them."""
        said = self._runner.run("nv", "config", "show", "-o", "commands")
        own = f"nv set {' '.join(self._class)}"
        exact = re.escape(own)
        if not re.search(rf"^(?:{exact} ecn enable|nv set qos roce\b.*)$", said, re.MULTILINE):
            raise DeviceError(f"this class does not mark for all that is known: `{own} ecn enable`")
        found = {}
        for field in self.fields:
            match = re.search(rf"^{exact} {field} (\d+)$", said, re.MULTILINE)
            if match is None:
                raise DeviceError(f"the configuration does not state {field}: `{own} {field} N`")
            found[f"{self._settings.profile}/{field}"] = match[1]
        return found

    def _commit(self, after: Mapping[str, Mapping[str, str]], seconds: int | None) -> None:
        try:
            for fields in after.values():
                for field, text in fields.items():
                    self._runner.run("nv", "set", *self._class, field, text)
            timer = () if seconds is None else ("--confirm", f"{seconds}s")
            self._runner.run("nv", "config", "apply", *timer, "-y")
        except DeviceError:
            with suppress(DeviceError):
                self._runner.run("nv", "config", "detach")  # else the next apply takes it along
            raise

    def _confirm(self) -> None:
        self._runner.run("nv", "config", "apply", "--confirm-yes")

    def _abort(self) -> None:
        with suppress(DeviceError):  # its time may be over; what follows reads
            self._runner.run("nv", "config", "apply", "--confirm-no")
