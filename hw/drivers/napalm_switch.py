"""Switches through NAPALM: its connection, and the commits with a timer that it has of each."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import Field

from dcqcn_gym.core.errors import DeviceError, MissingExtraError, in_one_line
from dcqcn_gym.hw.drivers.base import Surroundings
from dcqcn_gym.hw.drivers.switch import CommittedSwitch, SwitchSettings

ANSWER_S = 30


class NapalmSettings(SwitchSettings):
    """One switch, and the user that may configure it."""

    host: str = Field(description="the switch's management address")
    username: str = Field(min_length=1)


class NapalmSwitch(CommittedSwitch):
    """A subclass says how to connect, what the configuration says, and how it is changed."""

    logger: ClassVar[str]
    """Of the library below NAPALM: what it logs it also raises."""
    _settings: NapalmSettings

    def __init__(self, settings: NapalmSettings, around: Surroundings) -> None:
        super().__init__()
        self._settings, self._root = settings, around.root
        self._device: Any = None

    @abstractmethod
    def _connected(self, driver: Callable[[str], Any]) -> Any:
        """Return NAPALM's object for this switch, not open yet; ``driver`` finds its class."""

    @abstractmethod
    def _lines(self, profile: str, fields: Mapping[str, str]) -> list[str]:
        """Return the lines of configuration that give a profile these fields."""

    def _commit(self, after: Mapping[str, Mapping[str, str]], seconds: int | None) -> None:
        lines = [line for profile, own in after.items() for line in self._lines(profile, own)]
        self._ask(lambda device: _committed(device, "\n".join(lines), seconds))

    def _confirm(self) -> None:
        self._ask(lambda device: device.confirm_commit())

    def _abort(self) -> None:
        self._ask(_aborted)

    def _ask(self, call: Callable[[Any], Any]) -> Any:
        """Make a call; a connection that failed is opened again by the next one."""
        try:
            if self._device is None:
                self._device = self._opened()
            return call(self._device)
        except (DeviceError, MissingExtraError):
            raise
        except Exception as error:  # NAPALM raises its own, its libraries' and plain ones
            if self._pending is None:  # else its session is the commit's name
                self._drop()
            said = in_one_line(error) or "no answer"
            raise DeviceError(f"{self.name} at {self._settings.host}: {said}") from None

    def _drop(self) -> None:
        """Forget a connection; NAPALM's destructor would talk to a switch that is gone."""
        if self._device is not None:
            vars(self._device)["is_alive"] = lambda: {"is_alive": False}
        self._device = None

    def _opened(self) -> Any:
        try:
            from napalm import get_network_driver
        except ImportError:
            raise MissingExtraError(f"the driver {self.name}", "napalm") from None
        logging.getLogger(self.logger).setLevel(logging.CRITICAL)
        device = self._connected(get_network_driver)
        device.open()
        return device


def _committed(device: Any, config: str, seconds: int | None) -> None:
    device.load_merge_candidate(config=config)
    try:
        device.commit_config(revert_in=seconds)
    except Exception:
        device.discard_config()
        raise


def _aborted(device: Any) -> None:
    # without one that waits, rollback() would replace the configuration by an older one
    if device.has_pending_commit():
        device.rollback()
