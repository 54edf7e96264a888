"""Arista EOS through NAPALM: a queue's marking line, put in force by configuration sessions.

``random-detect ecn minimum-threshold N bytes maximum-threshold N bytes max-mark-probability P
weight 0`` of each port's unicast queue. A trial is a session with a commit timer
(``commit_config(revert_in=)``): the switch goes back by itself when the time is over, also where
this agent and its host are gone; NAPALM's plain commit would write the startup configuration. A
commit timer cannot be lengthened, so the steps of a tuning run have one of an hour, and each step
aborts the commit before it; the agent's own timer ends them sooner. An agent that is stopped in
order aborts what waits. It stands beside the switch, on a host that reaches its eAPI.
"""

from __future__ import annotations

import math
import re
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dcqcn_gym.core.device_units import from_device
from dcqcn_gym.core.errors import DeviceError, MissingExtraError, in_one_line, quote
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS
from dcqcn_gym.hw.device_state import follows
from dcqcn_gym.hw.drivers.base import Surroundings, Targets, Values
from dcqcn_gym.hw.drivers.switch import PORTS, SwitchDriver, SwitchSettings, wanted_of_profiles

_KNOBS = {"minimum-threshold": "kmin", "maximum-threshold": "kmax", "max-mark-probability": "pmax"}
_LINE = re.compile(
    r"random-detect ecn minimum-threshold (\d{1,12}) ([km]?bytes) "
    r"maximum-threshold (\d{1,12}) ([km]?bytes) max-mark-probability (\d{1,3})"
)
_BYTES = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000}
_Port = Annotated[str, Field(pattern=r"^[A-Za-z]+[0-9]+(?:/[0-9]+)*$")]
ANSWER_S = 30
RUN_S = 3600
"""The commit timer of a tuning run's steps."""


class EosSettings(SwitchSettings):
    """One switch, and the user that may configure it."""

    host: str = Field(description="the switch's management address, as in its certificate")
    port: int = Field(default=443, ge=1, le=65535, description="of eAPI over HTTPS")
    ca: Path = Field(description="who signed its certificate, PEM; the root folder's if relative")
    username: str = Field(min_length=1)
    password_file: Path = Field(description="a file of mode 0600 with the password alone")
    queue: int = Field(ge=0, le=7, description="the unicast queue of the lossless traffic")
    ports: tuple[_Port, ...] = PORTS


class EosDriver(SwitchDriver):
    """See the module."""

    name = "eos"
    summary = "switch: Arista EOS by NAPALM, at once; trials have the switch's own timer"
    Settings = EosSettings
    _settings: EosSettings

    def __init__(self, settings: EosSettings, around: Surroundings) -> None:
        self._settings, self._root = settings, around.root
        self._device: Any = None
        self._seconds: int | None = None
        """Of the commit timer that the next write starts; None: a plain commit."""
        self._pending: float | None = None
        """When the commit that waits began, by the monotonic clock."""
        self._tried: dict[str, str] = {}
        """What that commit holds: another one begins at what was before it."""

    def knobs(self) -> tuple[str, ...]:
        """Return kmin, kmax and pmax, once every port's queue is found to mark."""
        self.read()
        return ECN_KNOBS

    def read(self) -> dict[str, str]:
        """Return thresholds in bytes and the probability in percent of every port's queue."""
        running = self._ask(lambda device: device.get_config(retrieve="running")["running"])
        found = {}
        for port in self._settings.ports:
            for field, text in _of_queue(running, port, self._settings.queue).items():
                found[f"{port}/{field}"] = text
        return found

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the fields that must change; raise for thresholds out of order."""
        own = {port: port for port in self._settings.ports}
        wanted = wanted_of_profiles(own, targets, self._settings.skip, self.name)
        held = self.read()
        found: dict[str, str] = {}
        for port, raw in wanted.items():
            after = {f: str(raw.get(k, held[f"{port}/{f}"])) for f, k in _KNOBS.items()}
            low, high = after["minimum-threshold"], after["maximum-threshold"]
            if int(low) > int(high):
                raise DeviceError(f"{port}: minimum-threshold {low} B would be above {high} B")
            found |= {f"{port}/{f}": t for f, t in after.items() if held[f"{port}/{f}"] != t}
        return found

    def _of_place(self, place: str) -> tuple[str, str]:
        port, _, field = place.rpartition("/")
        return port, _KNOBS[field]

    def _users_of(self) -> dict[str, list[str]]:
        return {port: [port] for port in self._settings.ports}

    def begin_trial(self, name: str, seconds: float) -> None:
        """Give the next write a commit timer; that of a run's step begins anew at half its time."""
        self._seconds = RUN_S if follows(name) else max(math.ceil(seconds), 1)
        if self._pending is not None and time.monotonic() - self._pending > self._seconds / 2:
            self.apply(self._tried)

    def end_trial(self) -> None:
        """Confirm the commit that waits."""
        if self._pending is not None:
            self._ask(lambda device: device.confirm_commit())
        self._forget()

    def _forget(self) -> None:
        self._seconds, self._pending, self._tried = None, None, {}

    def apply(self, values: Values) -> None:
        """Write the whole line of each queue in one session and read it back."""
        if self._pending is not None:
            self._ask(_aborted)
            self._pending = None
        held = self.read()
        if unknown := [place for place in values if place not in held]:
            raise DeviceError(f"{unknown[0]} is no field of a queue of these ports")
        after = {**held, **self._tried, **values}
        lines = [
            line
            for port in self._settings.ports
            if any(after[f"{port}/{field}"] != held[f"{port}/{field}"] for field in _KNOBS)
            for line in self._lines(port, *(after[f"{port}/{field}"] for field in _KNOBS))
        ]
        if self._seconds is not None:
            self._tried |= values
        if lines:
            self._ask(lambda device: self._committed(device, "\n".join(lines)))
        for place, text in self.read_back(values).items():
            raise DeviceError(f"{place} holds {text} after {values[place]} was committed")

    def _lines(self, port: str, low: str, high: str, percent: str) -> list[str]:
        return [
            f"interface {port}", f"uc-tx-queue {self._settings.queue}",
            f"random-detect ecn minimum-threshold {low} bytes maximum-threshold {high} bytes "
            f"max-mark-probability {percent} weight 0",
            "exit", "exit",
        ]  # fmt: skip

    def _committed(self, device: Any, config: str) -> None:
        device.load_merge_candidate(config=config)
        try:
            device.commit_config(revert_in=self._seconds)
        except Exception:
            device.discard_config()
            raise
        self._pending = None if self._seconds is None else time.monotonic()

    def revert(self, values: Values) -> None:
        """Abort the commit that waits, then put back what still differs in one session."""
        if self._pending is not None:
            with suppress(DeviceError):  # its time may be over
                self._ask(_aborted)
        self._forget()
        self.apply({place: values[place] for place in self.read_back(values)})

    def setting(self) -> dict[str, dict[str, float]]:
        """Return port -> knobs."""
        found: dict[str, dict[str, float]] = {}
        for place, text in self.read().items():
            port, knob = self._of_place(place)
            found.setdefault(port, {})[knob] = from_device(DCQCN[knob], int(text))
        return found

    def counters(self) -> dict[str, int]:
        """Raise: this driver changes switches only."""
        raise DeviceError("driver eos has no counters of marks and PFC; it changes switches only")

    def _ask(self, call: Callable[[Any], Any]) -> Any:
        """Make a call; a connection that failed is opened again by the next one."""
        try:
            if self._device is None:
                self._device = self._connected()
            return call(self._device)
        except (DeviceError, MissingExtraError):
            raise
        except Exception as error:  # NAPALM raises its own, pyeapi's and plain ones
            if self._pending is None:  # else its session is the commit's name
                self._device = None
            where = f"{self._settings.host}:{self._settings.port}"
            raise DeviceError(f"eAPI at {where}: {in_one_line(error) or 'no answer'}") from None

    def _connected(self) -> Any:
        try:
            from napalm import get_network_driver
        except ImportError:
            raise MissingExtraError("the driver of EOS", "napalm") from None
        own = self._settings
        file = self._root / own.password_file
        if file.stat().st_mode & 0o077:
            raise DeviceError(f"{file} can be read by others; expected mode 0600")
        device = get_network_driver("eos")(
            own.host, own.username, file.read_text(encoding="utf-8").strip(), ANSWER_S,
            {"transport": "https", "port": own.port,
             "context": ssl.create_default_context(cafile=str(self._root / own.ca))},
        )  # fmt: skip
        device.open()
        return device


def _aborted(device: Any) -> None:
    # without one that waits, rollback() would replace the whole configuration by the startup's
    if device.has_pending_commit():
        device.rollback()


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
            return {
                "minimum-threshold": str(int(low) * _BYTES[low_unit]),
                "maximum-threshold": str(int(high) * _BYTES[high_unit]),
                "max-mark-probability": percent,
            }
    raise DeviceError(
        f"queue {queue} of {quote(port)} does not mark: it has no `random-detect ecn` with a "
        "max-mark-probability; give it one first"
    )
