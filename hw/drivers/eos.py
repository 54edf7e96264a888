"""Arista EOS through NAPALM: a queue's marking line, put in force by configuration sessions.

``random-detect ecn minimum-threshold N bytes maximum-threshold N bytes max-mark-probability P
weight 0`` of each port's unicast queue. A trial is a session with a commit timer
(``commit_config(revert_in=)``); NAPALM's plain commit would write the startup configuration. An
agent that is stopped in order aborts what waits. It stands beside the switch, on a host that
reaches its eAPI.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from dcqcn_gym.core.errors import DeviceError, quote
from dcqcn_gym.hw.drivers.napalm_switch import ANSWER_S, NapalmSettings, NapalmSwitch
from dcqcn_gym.hw.drivers.switch import PORTS

_LINE = re.compile(
    r"random-detect ecn minimum-threshold (\d{1,12}) ([km]?bytes) "
    r"maximum-threshold (\d{1,12}) ([km]?bytes) max-mark-probability (\d{1,3})"
)
_BYTES = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000}
_Port = Annotated[str, Field(pattern=r"^[A-Za-z]+[0-9]+(?:/[0-9]+)*$")]


class EosSettings(NapalmSettings):
    """One switch; ``host`` is as in its certificate."""

    port: int = Field(default=443, ge=1, le=65535, description="of eAPI over HTTPS")
    ca: Path = Field(description="who signed its certificate, PEM; the root folder's if relative")
    password_file: Path = Field(description="a file of mode 0600 with the password alone")
    queue: int = Field(ge=0, le=7, description="the unicast queue of the lossless traffic")
    ports: tuple[_Port, ...] = PORTS


class EosDriver(NapalmSwitch):
    """See the module."""

    name = "eos"
    summary = "switch: Arista EOS by NAPALM, at once; trials have the switch's own timer"
    Settings = EosSettings
    fields: ClassVar[Mapping[str, str]] = {
        "minimum-threshold": "kmin",
        "maximum-threshold": "kmax",
        "max-mark-probability": "pmax",
    }
    logger = "pyeapi"
    _settings: EosSettings

    def read(self) -> dict[str, str]:
        """Return thresholds in bytes and the probability in percent of every port's queue."""
        running = self._ask(lambda device: device.get_config(retrieve="running")["running"])
        return {
            f"{port}/{field}": text
            for port in self._settings.ports
            for field, text in _of_queue(running, port, self._settings.queue).items()
        }

    def _lines(self, profile: str, fields: Mapping[str, str]) -> list[str]:
        low, high, percent = (fields[field] for field in self.fields)
        return [
            f"interface {profile}", f"uc-tx-queue {self._settings.queue}",
            f"random-detect ecn minimum-threshold {low} bytes maximum-threshold {high} bytes "
            f"max-mark-probability {percent} weight 0",
            "exit", "exit",
        ]  # fmt: skip

    def _connected(self, driver: Callable[[str], Any]) -> Any:
        own = self._settings
        file = self._root / own.password_file
        if file.stat().st_mode & 0o077:
            raise DeviceError(f"{file} can be read by others; expected mode 0600")
        return driver("eos")(
            own.host, own.username, file.read_text(encoding="utf-8").strip(), ANSWER_S,
            {"transport": "https", "port": own.port,
             "context": ssl.create_default_context(cafile=str(self._root / own.ca))},
        )  # fmt: skip


def _of_queue(running: str, port: str, queue: int) -> dict[str, str]:
    """Return field -> text of a port's queue; DeviceError where it does not mark."""
    at = inside = False
    for line in running.splitlines():
        word = line.strip()
        if not line.startswith(" "):
            at, inside = word == f"interface {port}", False
        elif at and re.fullmatch(r"(?:uc-)?tx-queue \d+", word):
            inside = word.endswith(f" {queue}")
        elif at and inside and (match := _LINE.match(word)):
            low, low_unit, high, high_unit, percent = match.groups()
            texts = int(low) * _BYTES[low_unit], int(high) * _BYTES[high_unit], percent
            return dict(zip(EosDriver.fields, map(str, texts), strict=True))
    raise DeviceError(
        f"queue {queue} of {quote(port)} does not mark: it has no `random-detect ecn` with a "
        "max-mark-probability; give it one first"
    )
