"""Switches over gNMI: OpenConfig's queue management profiles, read and set from outside the switch.

Paths are those of OpenConfig (openconfig-qos, as openconfig/featureprofiles tests them):
``/qos/queue-management-profiles/queue-management-profile[name=]/wred/uniform/config`` with
``min-threshold`` and ``max-threshold`` in bytes, ``max-drop-probability-percent`` and
``enable-ecn``; a port's queue names its profile. All fields go out in one Set, which a target
carries out whole or not at all. Some vendors round thresholds; the read-back tells, and the change
is taken back. The model has no counters of marks or PFC, so this driver reports none.

With ``commit_confirmed`` a trial is a confirmed commit of the switch (openconfig/reference,
gnmi-commit-confirmed.md): it goes back by itself when the time is over, also where this agent and
its host are gone. A further step of a tuning run cancels the commit and begins another.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dcqcn_gym.core.errors import DeviceError, MissingExtraError, in_one_line, quote
from dcqcn_gym.hw.drivers.base import Surroundings, Values, number
from dcqcn_gym.hw.drivers.switch import PORTS, MarkingSwitch, SwitchSettings

_KNOBS = {
    "min-threshold": "kmin",
    "max-threshold": "kmax",
    "max-drop-probability-percent": "pmax",
}
_BYTES = ("min-threshold", "max-threshold")
_PROFILE = "/qos/queue-management-profiles/queue-management-profile[name={}]/wred/uniform/config"
_BOUND = "/qos/interfaces/interface[interface-id={}]/output/queues/queue[name={}]/config"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
_Plain = Annotated[str, Field(pattern=f"^{_NAME.pattern}$")]
_ALIVE = [("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5_000)]
"""A switch that is gone ends a call."""
ANSWER_S = 30.0


class GnmiSettings(SwitchSettings):
    """One switch; the agent stands beside it, on a host that reaches its management address."""

    host: str = Field(description="the switch's management address")
    port: int = Field(default=9339, ge=1, le=65535, description="its gNMI port, with TLS")
    name: str = Field(description="the name in the switch's certificate")
    ca: Path = Field(description="who signed it, PEM; the root folder's, if not absolute")
    cert: Path = Field(description="the certificate that is shown to the switch")
    key: Path = Field(description="its key")
    queue: _Plain = Field(description="the queue of the lossless traffic")
    ports: tuple[_Plain, ...] = PORTS
    commit_confirmed: bool = Field(default=False, description="trials are confirmed commits")


class GnmiDriver(MarkingSwitch):
    """See the module."""

    name = "gnmi"
    summary = "switch: OpenConfig over gNMI, at once; no counters"
    Settings = GnmiSettings
    fields = _KNOBS
    rounds = "; the switch rounds it: choose a value that it can hold"
    _settings: GnmiSettings

    def __init__(self, settings: GnmiSettings, around: Surroundings) -> None:
        self._settings, self._root = settings, around.root
        self._client: Any = None
        self._trial: tuple[str, float] | None = None
        """Id and seconds of the commit that the next write begins."""
        self._pending = ""
        """Id of the commit that waits to be confirmed."""
        self._tried: dict[str, str] = {}
        """What that commit holds: another one begins at what was before it."""

    def _profiles(self) -> dict[str, str]:
        """Return port -> the profile of its queue."""
        found = {}
        for port in self._settings.ports:
            held = self._get(_BOUND.format(port, self._settings.queue))
            profile = str(held.get("queue-management-profile", ""))
            if not _NAME.fullmatch(profile):
                raise DeviceError(
                    f"queue {self._settings.queue} of port {port} has the queue management profile "
                    f"{quote(profile)}; bind one with a plain name first"
                )
            found[port] = profile
        return found

    def _held(self, profile: str) -> dict[str, str]:
        """Return field -> text of a profile that marks; raise if it does not."""
        held = self._get(_PROFILE.format(profile))
        if held.get("enable-ecn") is not True:
            raise DeviceError(f"profile {profile} does not mark: set enable-ecn to true first")
        return {field: str(held[field]) for field in _KNOBS if field in held}

    def read(self) -> dict[str, str]:
        """Return the thresholds and probability of every profile that the ports use."""
        return {
            f"{profile}/{field}": text
            for profile in sorted(set(self._profiles().values()))
            for field, text in self._held(profile).items()
        }

    def begin_trial(self, name: str, seconds: float) -> None:
        """Make the next write a confirmed commit; one that waits already waits anew."""
        if not self._settings.commit_confirmed:
            return
        self._trial = name, seconds
        if self._pending:
            self._commit(self._pending, "set_rollback_duration", seconds)

    def end_trial(self) -> None:
        """Confirm the commit."""
        if self._pending:
            self._commit(self._pending, "confirm")
        self._forget()

    def _forget(self) -> None:
        self._trial, self._pending, self._tried = None, "", {}

    def _write(self, values: Values, held: Values) -> None:
        if self._trial is None:
            update = _updates(values)
            self._ask(lambda client: client.set(update=update, encoding="json_ietf"))
            return
        name, seconds = self._trial
        if self._pending:  # a second commit is refused while one waits
            self._commit(self._pending, "cancel")
        self._tried |= values
        self._commit(name, "commit", seconds, _updates(self._tried))
        try:  # a target that ignores extensions takes this as well: then no timer runs there
            self._commit(f"{name}-unknown", "set_rollback_duration", seconds)
        except DeviceError:
            self._pending = name
            return
        self._pending = ""
        raise DeviceError(
            "the switch ignores gNMI's extension Commit, so no timer runs in it; "
            "commit_confirmed = false has the agent's"
        )

    def _commit(self, name: str, action: str, seconds: float = 0.0, update: Any = ()) -> None:
        request = commit_request(name, action, seconds, update)
        try:
            self._ask(lambda client: _stub_of(client).Set(request, timeout=ANSWER_S))
        except DeviceError as error:
            raise DeviceError(
                f"{error} ({action} of a confirmed commit; without gNMI's extension Commit: "
                "commit_confirmed = false)"
            ) from None

    def revert(self, values: Values) -> None:
        """Put back everything in one request; a commit that waits is cancelled first."""
        if self._pending:
            with suppress(DeviceError):  # its time may be over, or the switch has none
                self._commit(self._pending, "cancel")
        self._forget()
        self.apply({place: values[place] for place in self.read_back(values)})

    def _get(self, path: str) -> dict[str, Any]:
        """Return the fields of a container, without the names of their modules."""
        found = self._ask(
            lambda client: client.get(path=[path], encoding="json_ietf", datatype="config")
        )
        try:
            value = found["notification"][0]["update"][0]["val"]
            return {key.rpartition(":")[2]: text for key, text in value.items()}
        except (KeyError, IndexError, TypeError, AttributeError):
            raise DeviceError(f"the switch has nothing at {path}") from None

    def _ask(self, call: Callable[[Any], Any]) -> Any:
        """Make a call; a connection that failed is opened again by the next one."""
        try:
            if self._client is None:
                self._client = self._connected()
            return call(self._client)
        except MissingExtraError:
            raise
        except Exception as error:  # pygnmi raises its own, gRPC's and plain ones
            client, self._client = self._client, None
            if client is not None:
                client.close()
            where = f"{self._settings.host}:{self._settings.port}"
            raise DeviceError(f"gNMI at {where}: {in_one_line(error) or 'no answer'}") from None

    def _connected(self) -> Any:
        try:
            from pygnmi.client import gNMIclient
        except ImportError:
            raise MissingExtraError("the driver of switches over gNMI", "gnmi") from None
        logging.getLogger("pygnmi").setLevel(logging.CRITICAL)  # errors are raised, too
        own = self._settings
        files = {
            f"path_{use}": str(self._root / path)
            for use, path in (("root", own.ca), ("cert", own.cert), ("key", own.key))
        }
        client = gNMIclient(
            target=(own.host, own.port), override=own.name, grpc_options=_ALIVE, **files
        )
        return client.connect(timeout=0)  # else it waits, and then weakens this process's ciphers


def _updates(values: Values) -> list[tuple[str, dict[str, int | str]]]:
    """Return path -> fields; JSON has uint64 as text (RFC 7951, 6.1), a percentage is uint8."""
    changes: dict[str, dict[str, int | str]] = {}
    for place, text in values.items():
        profile, _, field = place.rpartition("/")
        whole = number(text, place)
        changes.setdefault(profile, {})[field] = str(whole) if field in _BYTES else whole
    return [(_PROFILE.format(name), fields) for name, fields in changes.items()]


def commit_request(name: str, action: str, seconds: float, update: Any) -> Any:
    """Return a Set with the extension Commit, field 4 of ``gnmi_ext.Extension``.

    pygnmi's messages are of gNMI 0.8, which has no such field; what is unknown to them is kept.
    """
    from pygnmi.create_gnmi_path import gnmi_path_generator
    from pygnmi.spec.v080 import gnmi_ext_pb2, gnmi_pb2

    whole = max(math.ceil(seconds), 1)
    duration = _field(1, _varint(0x08) + _varint(whole))  # google.protobuf.Duration
    body = duration if action in ("commit", "set_rollback_duration") else b""
    commit = _field(1, name.encode()) + _field(_ACTIONS[action], body)
    extension = gnmi_ext_pb2.Extension.FromString(_field(4, commit))
    updates = [
        gnmi_pb2.Update(
            path=gnmi_path_generator(path),
            val=gnmi_pb2.TypedValue(json_ietf_val=json.dumps(fields).encode()),
        )
        for path, fields in update
    ]
    return gnmi_pb2.SetRequest(update=updates, extension=[extension])


_ACTIONS = {"commit": 2, "confirm": 3, "cancel": 4, "set_rollback_duration": 5}
"""Fields of gNMI's message Commit."""


def _field(number: int, body: bytes) -> bytes:
    """Return a field of bytes in protobuf's encoding."""
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _stub_of(client: Any) -> Any:
    """Return a stub on pygnmi's channel: its own ``set`` takes no extension but two."""
    from pygnmi.spec.v080.gnmi_pb2_grpc import gNMIStub

    return gNMIStub(client._gNMIclient__channel)
