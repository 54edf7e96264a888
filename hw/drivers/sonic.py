"""SONiC switches over their Redis databases: WRED profiles, in force at once.

CONFIG_DB holds a profile as a hash ``WRED_PROFILE|NAME`` whose values are all text; a queue names
its profile in ``QUEUE|PORT|INDEX``, field ``wred_profile`` (``NAME``, on old images
``[WRED_PROFILE|NAME]``). A proposal of 2026 has marking thresholds of their own, first named
``ecn_green_...`` and then ``green_ect_...``; where a profile has either, it is what marks. A
profile with threshold fields of other names is refused: which of them mark is not known. A
probability is a whole percent. A profile may be shared by ports: then all of them change, and
:meth:`SonicDriver.diff` says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from pydantic import Field

from dcqcn_gym.core.device_units import SONIC_FIELDS, SONIC_OWN_CURVES, from_device
from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS
from dcqcn_gym.hw.drivers import sonic_counters
from dcqcn_gym.hw.drivers.base import Surroundings, Targets, Values, number
from dcqcn_gym.hw.drivers.sonic_db import ASIC_DB, COUNTERS_DB, Databases
from dcqcn_gym.hw.drivers.switch import SwitchDriver, SwitchSettings, wanted_of_profiles

# orchagent turns fields of CONFIG_DB into attributes of the ASIC a moment later, and skips what the
# platform does not know, with a line in the switch's log alone. ASIC_DB holds what the ASIC took.
# Its objects have numbers, not names: a port's queue (COUNTERS_QUEUE_NAME_MAP) names its WRED
# object.
_OBJECT = "ASIC_STATE:SAI_OBJECT_TYPE_{}:{}"


def asic_differs(db: Databases, queues: Iterable[str], fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that the ASIC holds otherwise, for one of these queues, with what it holds.

    ``queues`` (``Ethernet0:3``) are bound to one profile, ``fields`` what that is to hold; one
    that is to be absent (empty text) is passed over.
    """
    (numbers,) = db.read(COUNTERS_DB, ["COUNTERS_QUEUE_NAME_MAP"])
    names = list(queues)
    for name in names:
        if name not in numbers:
            raise DeviceError(f"COUNTERS_DB has no queue {name}, so ASIC_DB tells nothing of it")
    bound = db.read(ASIC_DB, [_OBJECT.format("QUEUE", numbers[name]) for name in names])
    profiles = [queue.get("SAI_QUEUE_ATTR_WRED_PROFILE_ID", "") for queue in bound]
    held = db.read(ASIC_DB, [_OBJECT.format("WRED", number) for number in profiles])
    found = {}
    for attributes in held:
        for field, text in fields.items():
            taken = attributes.get(f"SAI_WRED_ATTR_{field.upper()}", "")
            if text and taken != text:
                found[field] = taken
    return found


ASIC_LOOK_S = 0.05
COLOURS = ("green", "yellow", "red")
_KNOWN = {
    field.format(colour)
    for own in SONIC_FIELDS.values()
    for field in own.values()
    for colour in COLOURS
}


class SonicSettings(SwitchSettings):
    """One switch and the queue of its lossless traffic."""

    socket: str | None = Field(
        default="/var/run/redis/redis.sock", description="the Unix socket of Redis"
    )
    host: str = Field(default="127.0.0.1", description="the address, if socket is not used")
    port: int = Field(default=6379, ge=1, le=65535, description="the TCP port of Redis")
    queue: int = Field(default=3, ge=0, le=15, description="the queue of the lossless traffic")
    save: bool = Field(
        default=False, description="true: `config save -y` after each change that was confirmed"
    )
    asic_wait_s: float = Field(
        default=1.5, ge=0, le=60, description="how long the ASIC may take to follow; 0: not looked"
    )


class SonicDriver(SwitchDriver):
    """See the module. It never binds a queue to another profile."""

    name = "sonic"
    summary = "switch: SONiC's CONFIG_DB, at once"
    Settings = SonicSettings
    _settings: SonicSettings

    def __init__(self, settings: SonicSettings, around: Surroundings) -> None:
        self._settings = settings
        self._db = Databases(settings.socket, settings.host, settings.port)
        self._runner = around.runner

    def knobs(self) -> tuple[str, ...]:
        """Return kmin, kmax and pmax, once every port's profile is found fit to mark."""
        for profile in set(self._profiles().values()):
            self._fields(profile, self._db.profile(profile))
        return ECN_KNOBS

    def _profiles(self) -> dict[str, str]:
        """Return port -> the profile of its queue."""
        bound = self._users()
        found = {}
        for port in self._settings.ports:
            profile = bound.get((port, self._settings.queue))
            if profile is None:
                raise DeviceError(
                    f"queue {self._settings.queue} of port {port} has no WRED profile; bind one "
                    f"(QUEUE|{port}|{self._settings.queue}, field wred_profile) first"
                )
            found[port] = profile
        return found

    def _users(self) -> dict[tuple[str, int], str]:
        """Return (port, queue) -> profile of every queue that has one."""
        found: dict[tuple[str, int], str] = {}
        for key, fields in self._db.queues().items():
            given = fields.get("wred_profile", "")
            profile = given.strip("[]").removeprefix("WRED_PROFILE|")
            if profile:
                found |= dict.fromkeys(members(key), profile)
        return found

    def _fields(self, profile: str, held: Mapping[str, str]) -> dict[str, str]:
        """Return field -> knob of the colours that a profile marks; raise if it marks none."""
        where = f"WRED_PROFILE|{profile}"
        if not held:
            raise DeviceError(f"{where} is not in CONFIG_DB")
        strange = sorted(
            f for f in held if f.endswith(("_threshold", "_probability")) and f not in _KNOWN
        )
        if strange:
            raise DeviceError(
                f"{where} has fields that this driver does not know ({', '.join(strange)}), and "
                "they may be what marks; update the package, or bind another profile"
            )
        own_curve = {
            colour: curve
            for colour in COLOURS
            for curve in SONIC_OWN_CURVES
            if SONIC_FIELDS[curve]["kmin"].format(colour) in held
        }
        enabled = [c for c in COLOURS if held.get(f"wred_{c}_enable") == "true" or c in own_curve]
        marks = held.get("ecn", "ecn_none")
        marking = [c for c in enabled if marks == "ecn_all" or c in marks.split("_")]
        if not marking:
            raise DeviceError(
                f"{where} does not mark: ecn = {marks!r}, WRED on for "
                f"{', '.join(enabled) or 'none'}; set ecn to ecn_all and enable a colour"
            )
        found = {}
        for colour in marking:  # the others' thresholds are where they drop
            for knob, field in SONIC_FIELDS[own_curve.get(colour, "wred")].items():
                found[field.format(colour)] = knob
        return found

    def read(self) -> dict[str, str]:
        """Return the thresholds and probabilities of every profile that the ports use.

        A field that the profile lacks is empty text, and is deleted again where that is put back.
        """
        found = {}
        for profile in sorted(set(self._profiles().values())):
            held = self._db.profile(profile)
            for field in self._fields(profile, held):
                found[f"WRED_PROFILE|{profile}/{field}"] = held.get(field, "")
        return found

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the fields that must change; raise if ports that share a profile differ."""
        wanted = wanted_of_profiles(self._profiles(), targets, self._settings.skip, self.name)
        return dict(self._changes(wanted))

    def _changes(self, wanted: Mapping[str, Mapping[str, int]]) -> Iterable[tuple[str, str]]:
        for profile, raw in sorted(wanted.items()):
            held = self._db.profile(profile)
            after = {**held}
            for field, knob in self._fields(profile, held).items():
                if knob in raw and held.get(field) != str(raw[knob]):
                    after[field] = str(raw[knob])
                    yield f"WRED_PROFILE|{profile}/{field}", after[field]
            self._check(profile, after)

    def _check(self, profile: str, after: Mapping[str, str]) -> None:
        """Raise if a lowest threshold is above its highest one, which the switch would refuse."""
        for field, knob in self._fields(profile, after).items():
            if knob == "kmin":
                low, high = after[field], after.get(field.replace("_min_", "_max_"), "0")
                if number(low, field) > number(high, field):
                    raise DeviceError(
                        f"WRED_PROFILE|{profile}: {field} = {low} B would be above the maximum, "
                        f"{high} B"
                    )

    def _of_place(self, place: str) -> tuple[str, str]:
        profile, field = _split(place)
        return profile, self._fields(profile, self._db.profile(profile)).get(field, "")

    def _users_of(self) -> dict[str, list[str]]:
        users: dict[str, list[str]] = {}
        for (port, queue), profile in sorted(self._users().items()):
            users.setdefault(profile, []).append(f"{port}|{queue}")
        return users

    def apply(self, values: Values) -> None:
        """Write all fields of all profiles at once, and wait until the ASIC holds them."""
        held = self.read()
        for place in values:
            if place not in held:
                raise DeviceError(f"{place} is not a field of a profile that the ports use")
        if values:
            self._db.write_profiles(_by_profile(values))
        until = time.monotonic() + self._settings.asic_wait_s
        wrong = self.read_back(values)
        while wrong and self._config_holds(values) and time.monotonic() < until:
            time.sleep(ASIC_LOOK_S)
            wrong = self.read_back(values)
        for place, text in wrong.items():
            raise DeviceError(f"{place} holds {text!r} after {values[place]!r} was written")

    def _config_holds(self, values: Values) -> bool:
        return not super().read_back(values)

    def read_back(self, values: Values) -> dict[str, str]:
        """Return what CONFIG_DB holds otherwise, or else what the ASIC does."""
        wrong = super().read_back(values)
        if wrong or not self._settings.asic_wait_s:
            return wrong
        ports: dict[str, list[str]] = {}
        for port, profile in self._profiles().items():
            ports.setdefault(profile, []).append(f"{port}:{self._settings.queue}")
        for profile, wanted in _by_profile(values).items():
            for field, text in asic_differs(self._db, ports[profile], wanted).items():
                wrong[f"WRED_PROFILE|{profile}/{field}"] = f"{text or 'nothing'} in the ASIC"
        return wrong

    def revert(self, values: Values) -> None:
        """Put back everything in one Redis transaction.

        Where a port or the ASIC does not tell what it holds, every profile that is there is
        written.
        """
        try:
            wrong = self.read_back(values)
        except DeviceError:
            changes = _by_profile(values).items()
            there = {name: own for name, own in changes if self._db.profile(name)}
            if there:
                self._db.write_profiles(there)
            raise
        self.apply({place: values[place] for place in wrong})

    def keep(self) -> None:
        """Save all of CONFIG_DB, what others changed in it included, if the settings say so."""
        if self._settings.save:
            self._runner.run("config", "save", "-y")

    def setting(self) -> dict[str, dict[str, float]]:
        """Return port -> knobs, of the first colour that is on."""
        found: dict[str, dict[str, float]] = {}
        for port, profile in self._profiles().items():
            held = self._db.profile(profile)
            knobs: dict[str, float] = {}
            for field, knob in self._fields(profile, held).items():
                if knob not in knobs:  # a colour further on may lack the field
                    value = number(held.get(field, ""), f"WRED_PROFILE|{profile}/{field}")
                    knobs[knob] = from_device(DCQCN[knob], value)
            found[port] = knobs
        return found

    def line_rate_bps(self) -> float | None:
        """Return the speed of the fastest port, as CONFIG_DB has it."""
        speeds = [self._db.config(f"PORT|{port}").get("speed", "") for port in self._settings.ports]
        return max((float(text) * 1e6 for text in speeds if text.isdecimal()), default=None)

    def prepare(self, interval_ms: float) -> None:
        """Raise if a group of counters is polled less often than every ``interval_ms``."""
        sonic_counters.check_polls(self._db, interval_ms)

    def counters(self) -> dict[str, int]:
        """Return ``PORT/figure`` of every port: bytes, marks, drops, pauses, queues."""
        return sonic_counters.collect(self._db, self._settings.ports, self._settings.queue)


def _split(place: str) -> tuple[str, str]:
    key, _, field = place.rpartition("/")
    return key.removeprefix("WRED_PROFILE|"), field


def _by_profile(values: Values) -> dict[str, dict[str, str]]:
    """Return profile -> fields."""
    found: dict[str, dict[str, str]] = {}
    for place, text in values.items():
        profile, field = _split(place)
        found.setdefault(profile, {})[field] = text
    return found


def members(key: str) -> list[tuple[str, int]]:
    """Return the (port, queue) pairs that a key of the table QUEUE names.

    ``QUEUE|Ethernet0|3``, and as older images write them ``QUEUE|Ethernet0,Ethernet4|3-4``. A key
    of another shape (a chassis has longer ones) names none.
    """
    parts = key.split("|")
    if len(parts) != 3:
        return []
    first, dash, last = parts[2].partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or len(parts[2]) > 7:
        return []
    queues = range(int(first), int(last if dash else first) + 1)
    return [(port, queue) for port in parts[1].split(",") for queue in queues]
