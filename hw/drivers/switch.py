"""What drivers of switches share: ports in the order of the scenario's, profiles, commits."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from pydantic import Field

from dcqcn_gym.core.device_units import device_unit, from_device
from dcqcn_gym.core.errors import DeviceError, quote
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS
from dcqcn_gym.hw.device_state import follows
from dcqcn_gym.hw.drivers.base import (
    Driver,
    DriverSettings,
    Edit,
    Skip,
    Targets,
    Values,
    number,
    raw_values,
)

PORTS = Field(min_length=1, description="names of ports in the order of the scenario's")


class SwitchSettings(DriverSettings):
    """The ports of one switch."""

    ports: tuple[str, ...] = PORTS
    skip: Skip = ()


class SwitchDriver(Driver):
    """One switch; a subclass keeps its settings."""

    kind = "switch"
    _settings: SwitchSettings

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the ports, in the order of the scenario's."""
        return self._settings.ports

    @abstractmethod
    def _of_place(self, place: str) -> tuple[str, str]:
        """Return the profile of a place, and its knob; empty if it is none's."""

    @abstractmethod
    def _users_of(self) -> Mapping[str, Sequence[str]]:
        """Return profile -> what uses it."""

    def _unit(self, knob: str) -> str:
        """Return the unit of a field's number."""
        return device_unit(DCQCN[knob])

    def diff(self, before: Values, after: Values) -> list[Edit]:
        """Return one line per field; ``shared_by`` are all that use its profile."""
        users, lines = self._users_of(), []
        for place in (p for p in sorted(after) if after[p] != before.get(p)):
            profile, knob = self._of_place(place)
            shared = tuple(users.get(profile, ()))
            unit = self._unit(knob) if knob else ""
            lines.append(
                Edit(place, knob, unit, before.get(place, ""), after[place],
                     shared if len(shared) > 1 else ())
            )  # fmt: skip
        return lines


def wanted_of_profiles(
    profiles: Mapping[str, str], targets: Targets, skip: tuple[str, ...], driver: str
) -> dict[str, dict[str, int]]:
    """Return profile -> knob -> the device's number, of port -> knobs; ``profiles`` is by port.

    Raises DeviceError for a port that is not there, or if ports that share a profile differ.
    """
    wanted: dict[str, tuple[str, dict[str, int]]] = {}
    own = {name: DCQCN[name] for name in ECN_KNOBS}
    for port in targets:
        if port and port not in profiles:
            raise DeviceError(f"port {quote(port)} is not one of {', '.join(profiles)}")
    for port, profile in profiles.items():
        given = targets.get(port, targets.get(""))
        if given is None:
            continue
        raw = raw_values(given, own, DCQCN, skip, driver)
        first, before = wanted.setdefault(profile, (port, raw))
        if before != raw:
            raise DeviceError(
                f"ports {first} and {port} share the profile {profile} and cannot differ "
                f"({before} and {raw}); bind their queues to profiles of their own first"
            )
    return {profile: raw for profile, (_, raw) in wanted.items()}


class MarkingSwitch(SwitchDriver):
    """A switch whose profiles of marking have one field per knob, and which is not asked more.

    A subclass reads and writes; a place is ``PROFILE/FIELD``, its text a whole number.
    """

    fields: ClassVar[Mapping[str, str]]
    """Field -> knob: kmin, kmax, pmax."""
    rounds: ClassVar[str] = ""
    """What to do where a switch holds another value than was written."""

    def knobs(self) -> tuple[str, ...]:
        """Return kmin, kmax and pmax, once every port's profile is found to mark."""
        self.read()
        return ECN_KNOBS

    def _profiles(self) -> dict[str, str]:
        """Return port -> the profile of its queue; every port has its own unless told."""
        return {port: port for port in self._settings.ports}

    @abstractmethod
    def _write(self, values: Values, held: Values) -> None:
        """Write places in one step, all or none; ``held`` is what they hold now."""

    def _to_field(self, knob: str, raw: int) -> str:
        """Return the text of a field for bytes or percent."""
        return str(raw)

    def _of_field(self, knob: str, text: str) -> float:
        """Return the knob's value for the text of a field."""
        return from_device(DCQCN[knob], number(text, knob))

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the fields that must change; raise for thresholds out of order."""
        wanted = wanted_of_profiles(self._profiles(), targets, self._settings.skip, self.name)
        held, found = self.read(), dict[str, str]()
        for profile, raw in sorted(wanted.items()):
            before = {f: held.get(f"{profile}/{f}", "") for f in self.fields}
            after = {f: self._to_field(k, raw[k]) if k in raw else before[f]
                     for f, k in self.fields.items()}  # fmt: skip
            (first, low), (second, high) = list(after.items())[:2]
            if number(low, first) > number(high, second):
                raise DeviceError(f"{profile}: {first} {low} would be above {second} {high}")
            found |= {f"{profile}/{f}": t for f, t in after.items() if t != before[f]}
        return found

    def _of_place(self, place: str) -> tuple[str, str]:
        profile, _, field = place.rpartition("/")
        return profile, self.fields[field]

    def _users_of(self) -> dict[str, list[str]]:
        users: dict[str, list[str]] = {}
        for port, profile in self._profiles().items():
            users.setdefault(profile, []).append(port)
        return users

    def apply(self, values: Values) -> None:
        """Write everything in one step and read it back."""
        held = self.read()
        if unknown := [place for place in values if place not in held]:
            raise DeviceError(f"{unknown[0]} is not a field of a profile that the ports use")
        if values:
            self._write(values, held)
        for place, text in self.read_back(values).items():
            raise DeviceError(f"{place} holds {text} after {values[place]} was set{self.rounds}")

    def setting(self) -> dict[str, dict[str, float]]:
        """Return port -> knobs."""
        found: dict[str, dict[str, float]] = {}
        for place, text in self.read().items():
            profile, knob = self._of_place(place)
            found.setdefault(profile, {})[knob] = self._of_field(knob, text)
        return {port: found[profile] for port, profile in self._profiles().items()}


class CommittedSwitch(MarkingSwitch):
    """A switch with commits that go back by themselves, also where agent and host are gone.

    Their timer cannot be lengthened, so the steps of a tuning run have one of :attr:`run_s`: each
    aborts the commit before it, and the agent's own timer ends them sooner.
    """

    run_s: ClassVar[int] = 3600
    step_s: ClassVar[int] = 1
    """Timers are multiples of it."""

    def __init__(self) -> None:
        self._seconds: int | None = None
        """Of the timer that the next write starts; None: a plain commit."""
        self._pending: float | None = None
        """When the commit that waits began, by the monotonic clock."""
        self._tried: dict[str, str] = {}
        """What that commit holds: another one begins at what was before it."""

    @abstractmethod
    def _commit(self, after: Mapping[str, Mapping[str, str]], seconds: int | None) -> None:
        """Commit profile -> fields, for ``seconds`` unless it is confirmed, or for good."""

    @abstractmethod
    def _confirm(self) -> None:
        """Confirm the commit that waits."""

    @abstractmethod
    def _abort(self) -> None:
        """Take back the commit that waits, if one still does."""

    def begin_trial(self, name: str, seconds: float) -> None:
        """Give the next write a timer; that of a run's step begins anew at half its time."""
        steps = max(math.ceil(seconds / self.step_s), 1)
        self._seconds = self.run_s if follows(name) else steps * self.step_s
        if self._pending is not None and time.monotonic() - self._pending > self._seconds / 2:
            self.apply(self._tried)

    def end_trial(self) -> None:
        """Confirm the commit that waits."""
        if self._pending is not None:
            self._confirm()
        self._forget()

    def _forget(self) -> None:
        self._seconds, self._pending, self._tried = None, None, {}

    def apply(self, values: Values) -> None:
        """Write everything in one commit and read it back."""
        if self._pending is not None:
            self._abort()
            self._pending = None
        super().apply(values)

    def _write(self, values: Values, held: Values) -> None:
        after = {**held, **self._tried, **values}
        changed = {self._of_place(place)[0] for place in after if after[place] != held[place]}
        if self._seconds is not None:
            self._tried |= values
        if not changed:
            return
        whole = {p: {f: after[f"{p}/{f}"] for f in self.fields} for p in sorted(changed)}
        self._commit(whole, self._seconds)
        self._pending = None if self._seconds is None else time.monotonic()

    def revert(self, values: Values) -> None:
        """Abort the commit that waits, then put back what still differs in one commit."""
        if self._pending is not None:
            with suppress(DeviceError):  # its time may be over
                self._abort()
        self._forget()
        self.apply({place: values[place] for place in self.read_back(values)})
