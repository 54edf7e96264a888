"""Junos through NAPALM: the fill levels of one drop profile, as shares of a buffer.

``class-of-service drop-profiles NAME interpolate`` has two fill levels in whole percents of the
queue's buffer and the probabilities at them; a scheduler with ``explicit-congestion-notification``
marks instead of dropping. No line says how large the buffer is: ``queue_bytes`` of the agent's
file does, and a threshold is rounded to its hundredths. A trial is a confirmed commit
(``commit_config(revert_in=)``) of whole minutes. The agent stands beside the switch, on a host that
reaches its NETCONF port; the switch's key must be among the known hosts of the agent's user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dcqcn_gym.core.device_units import from_device
from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import DCQCN
from dcqcn_gym.hw.drivers.base import Targets, number
from dcqcn_gym.hw.drivers.napalm_switch import ANSWER_S, NapalmSettings, NapalmSwitch

_Name = Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")]


class JunosSettings(NapalmSettings):
    """One switch; all its ports' queues have one scheduler."""

    port: int = Field(default=830, ge=1, le=65535, description="of NETCONF over SSH")
    key_file: Path = Field(description="the user's private SSH key; the root folder's if relative")
    scheduler: _Name = Field(description="of the lossless queue")
    profile: _Name = Field(description="the drop profile that the scheduler names")
    queue_bytes: int = Field(
        gt=0, description="the size of the queue's buffer, of which fill levels are percents"
    )


class JunosDriver(NapalmSwitch):
    """See the module."""

    name = "junos"
    summary = "switch: Junos by NAPALM, at once; trials have the switch's own timer; no counters"
    Settings = JunosSettings
    fields: ClassVar[Mapping[str, str]] = {
        "fill-level-low": "kmin",
        "fill-level-high": "kmax",
        "drop-probability": "pmax",
    }
    step_s = 60
    logger = "ncclient"
    _settings: JunosSettings

    def _profiles(self) -> dict[str, str]:
        return dict.fromkeys(self._settings.ports, self._settings.profile)

    def _unit(self, knob: str) -> str:
        return "%"

    def read(self) -> dict[str, str]:
        """Return both fill levels and the probability at the higher one, in percent."""
        own = self._settings
        said = self._ask(lambda d: d.get_config(retrieve="running", format="set")["running"])
        lines = said.splitlines()
        scheduler = f"set class-of-service schedulers {own.scheduler} "
        if f"{scheduler}explicit-congestion-notification" not in lines:
            raise DeviceError(f"scheduler {own.scheduler} does not mark: give it "
                              "explicit-congestion-notification first")  # fmt: skip
        named = [x for x in lines if x.startswith(scheduler)]
        if not any(x.endswith(f" drop-profile {own.profile}") for x in named):
            raise DeviceError(f"scheduler {own.scheduler} does not use drop profile {own.profile}")
        begin = re.escape(f"set class-of-service drop-profiles {own.profile} interpolate")
        levels = re.findall(rf"^{begin} fill-level (\d+)$", said, re.MULTILINE)
        chances = re.findall(rf"^{begin} drop-probability (\d+)$", said, re.MULTILINE)
        if len(levels) != 2 or len(chances) != 2 or chances[0] != "0":
            raise DeviceError(
                f"drop profile {own.profile} has fill levels {levels} with probabilities {chances};"
                " expected two, the first with probability 0"
            )
        texts = (*levels, chances[1])
        return {f"{own.profile}/{f}": text for f, text in zip(self.fields, texts, strict=True)}

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the fields that must change; the fill levels have to differ."""
        found = super().stage(targets)
        after = {**self.read(), **found}
        low, high = (after[f"{self._settings.profile}/{f}"] for f in list(self.fields)[:2])
        if low == high:
            raise DeviceError(f"kmin and kmax are both {low} % of queue_bytes; expected a gap")
        return found

    def _to_field(self, knob: str, raw: int) -> str:
        if knob == "pmax":
            return str(raw)
        size = self._settings.queue_bytes
        percent = round(raw * 100 / size)
        if not 0 < percent <= 100:
            raise DeviceError(f"{knob} = {raw} B is {raw / size:.2%} of queue_bytes = {size}; "
                              "Junos takes 1 to 100 %")  # fmt: skip
        return str(percent)

    def _of_field(self, knob: str, text: str) -> float:
        percent = number(text, knob)
        size = 100 if knob == "pmax" else self._settings.queue_bytes
        return from_device(DCQCN[knob], round(percent * size / 100))

    def _lines(self, profile: str, fields: Mapping[str, str]) -> list[str]:
        low, high, percent = (fields[field] for field in self.fields)
        begin = f"class-of-service drop-profiles {profile} interpolate"
        return [
            f"delete {begin}",
            f"set {begin} fill-level [ {low} {high} ]",
            f"set {begin} drop-probability [ 0 {percent} ]",
        ]

    def _connected(self, driver: Callable[[str], Any]) -> Any:
        own = self._settings
        device = driver("junos")(
            own.host, own.username, "", ANSWER_S,
            {"port": own.port, "key_file": str(self._root / own.key_file)},
        )  # fmt: skip
        vars(device.device)["_hostkey_verify"] = True  # NAPALM has no option for it
        return device
