"""What a driver is: read, stage, diff, apply, read back, revert, and the figures of its device.

A driver knows one kind of device and keeps no state of a change: :mod:`dcqcn_gym.hw.transaction`
does. What a device holds is a dictionary from *place* (a file's name, a key and a field) to text,
as the device writes it; only such places can be written. The smallest one is ``mlxconfig.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.device_limits import check_held
from dcqcn_gym.core.device_units import device_unit, from_device, to_device
from dcqcn_gym.core.errors import DeviceError, quote
from dcqcn_gym.core.knobs import DCQCN, Knob, KnobTable
from dcqcn_gym.hw.device_files import DeviceFiles
from dcqcn_gym.hw.runner import Runner, SystemRunner

Values = Mapping[str, str]
"""Place -> text, as the device holds it."""

Targets = Mapping[str, Mapping[str, float]]
"""Port -> knobs, in the units of the knob table.

The port ``""`` is the NIC itself, or all other ports of a switch.
"""


class DriverSettings(StrictModel):
    """What an agent's file says about its device; a driver has a subclass."""


_PCI = r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$"
Pci = Annotated[str, Field(pattern=_PCI, description="the PCI address, such as '0000:3b:00.0'")]
Netdev = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$",
                              description="the network interface")]  # fmt: skip
Ibdev = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$",
                             description="the RDMA device, such as 'mlx5_0'")]  # fmt: skip
Port = Annotated[int, Field(ge=1, le=2, description="the port of the RDMA device")]
Skip = Annotated[tuple[str, ...], Field(description="knobs that this device may lack")]


@dataclass(frozen=True)
class Surroundings:
    """What a driver reaches its device through: a root for files and a runner for commands."""

    root: Path = Path("/")
    runner: Runner = field(default_factory=SystemRunner)


@dataclass(frozen=True)
class Edit:
    """One place that a change touches: what it holds, what it will, and whom that concerns."""

    place: str
    knob: str
    unit: str
    before: str
    after: str
    shared_by: tuple[str, ...] = ()
    """Everything that uses this place (ports and queues of a profile), if more than one does."""
    needs_reset: bool = False
    """True if the device takes the value only at its next reset."""


class Driver(ABC):
    """One device. Every method raises DeviceError, in one sentence, if the device cannot do it."""

    name: ClassVar[str]
    summary: ClassVar[str]
    kind: ClassVar[Literal["nic", "switch"]]
    Settings: ClassVar[type[DriverSettings]]

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of a switch's ports, in the order of the scenario's; a NIC has none."""
        return ()

    def __init__(self, settings: Any, around: Surroundings) -> None:  # noqa: B027
        """Take up ``settings``, an instance of the class's ``Settings``; touches nothing yet."""

    @classmethod
    def of(cls, settings: DriverSettings, around: Surroundings) -> Self:
        """Return the driver of the device that ``settings`` name; touches nothing yet."""
        assert isinstance(settings, cls.Settings)
        return cls(settings, around)

    @abstractmethod
    def knobs(self) -> tuple[str, ...]:
        """Return the knobs that this device can be given, in the order of the table."""

    @abstractmethod
    def read(self) -> dict[str, str]:
        """Return everything that could be written: what the device holds now."""

    @abstractmethod
    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the places that must change to put ``targets`` in force; writes nothing.

        Raises DeviceError for a knob that the device lacks and ConfigError for a value out of
        range.
        """

    @abstractmethod
    def diff(self, before: Values, after: Values) -> list[Edit]:
        """Return what ``after`` changes in ``before``, place by place, in the order of writing."""

    def begin_trial(self, name: str, seconds: float) -> None:  # noqa: B027  (most have no timer)
        """Tell a device with transactions of its own how long what is written next may last.

        It then goes back by itself, whoever is gone. Called before each write of a trial and
        whenever its time starts anew. ``name`` is the change's.
        """

    def end_trial(self) -> None:  # noqa: B027
        """Have the device keep what is on trial; raise if it cannot, and it is taken back."""

    @abstractmethod
    def apply(self, values: Values) -> None:
        """Write ``values``, place by place, and read back each; stops at the first that fails."""

    def read_back(self, values: Values) -> dict[str, str]:
        """Return the places that do not hold what ``values`` say, with what they hold."""
        held = self.read()
        return {p: held.get(p, "") for p, text in values.items() if held.get(p) != text}

    writes_blind: ClassVar[bool] = True
    """False if writing wears the device out, so that it is read before each way back."""

    def revert(self, values: Values) -> None:
        """Put back ``values``, all that :meth:`read` gave; goes on past a place that fails.

        Where the device cannot be read, every place is written: one that is unreadable must not
        keep the others at a trial's values.
        """
        failed = []
        try:
            wrong = self.read_back(values)
        except Exception:  # a plug-in's too
            if not self.writes_blind:
                raise
            wrong = dict.fromkeys(values, "what cannot be read")
        for place, text in wrong.items():
            try:
                self.apply({place: values[place]})
            except Exception as error:  # a plug-in's too
                failed.append(f"{error} (holds {text!r})")
        if failed:
            raise DeviceError(f"{len(failed)} places could not be put back: {failed[0]}")

    def setting(self) -> dict[str, dict[str, float]]:
        """Return port -> knobs, as :meth:`read` shows them."""
        raise DeviceError(f"driver {self.name} does not show its setting")

    def line_rate_bps(self) -> float | None:
        """Return the rate of the device's ports, the fastest one's; None if it does not tell."""
        return None

    def prepare(self, interval_ms: float) -> None:  # noqa: B027  (most need nothing)
        """Get ready to report counters every ``interval_ms``; raise if they are slower."""

    def cadence(self) -> str:
        """Return what :meth:`prepare` may change of the device, as text; empty: nothing."""
        return ""

    def release(self, before: str) -> None:  # noqa: B027  (most need nothing)
        """Undo what :meth:`prepare` did: ``before`` is what :meth:`cadence` gave before it."""

    def keep(self) -> None:  # noqa: B027  (most need nothing)
        """Have the device itself remember what was confirmed, where its settings say so."""

    def counters(self) -> dict[str, int]:
        """Return the figures of now, counted since the device started: docs/hardware.md.

        Raises DeviceError for a driver that has none, whose fleet is changed and not tuned.
        """
        raise DeviceError(f"driver {self.name} has no counters; it changes devices only")


class NicDriver(Driver):
    """One port of one NIC, each place a knob of its own; a subclass says which."""

    kind = "nic"
    at_reset: ClassVar[bool] = False
    """True if what is written takes force at the next reset."""
    _settings: Any
    _root: DeviceFiles

    def line_rate_bps(self) -> float | None:
        """Return the link's speed, as the kernel has it; None while the link is down."""
        text = self._root.read(f"sys/class/net/{self._settings.netdev}/speed")
        return float(text) * 1e6 if text is not None and text.isdecimal() and int(text) else None

    @abstractmethod
    def _rows(self) -> Mapping[str, Knob]:
        """Return place -> knob, in the order of writing."""

    def _raw(
        self, targets: Targets, own: Mapping[str, Knob], skip: tuple[str, ...]
    ) -> dict[str, int]:
        """Return knob -> the device's number of the one target, the port ``""``."""
        if set(targets) != {""}:
            ports = ", ".join(quote(port) for port in targets)
            raise DeviceError(f"a NIC has no ports to choose from; got {ports}")
        return raw_values(targets[""], own, DCQCN, skip, self.name)

    def diff(self, before: Values, after: Values) -> list[Edit]:
        """Return one line per place, in the order of writing."""
        return [
            Edit(p, row.name, device_unit(row), before.get(p, ""), after[p], (), self.at_reset)
            for p, row in self._rows().items()
            if p in after and after[p] != before.get(p)
        ]

    def setting(self) -> dict[str, dict[str, float]]:
        """Return the knobs, for the port ``""``."""
        held = self.read()
        known = ((row, held[p]) for p, row in self._rows().items() if p in held)
        return {"": {row.name: from_device(row, int(text)) for row, text in known}}


def raw_values(
    given: Mapping[str, float],
    known: Mapping[str, Knob],
    table: KnobTable,
    skip: tuple[str, ...],
    driver: str,
) -> dict[str, int]:
    """Return knob -> the device's whole number, in the order of the table.

    ``known`` are the knobs that this device has. One that it lacks is left out if ``skip`` names
    it, and refused otherwise; so is a number that ``core.device_limits`` has not for the driver.
    """
    found = {}
    for name in sorted(given, key=lambda n: table.index[table[n].name]):
        if name in known:
            found[name] = check_held(driver, table[name], to_device(table[name], given[name]))
        elif name not in skip:
            raise DeviceError(
                f"this device lacks the knob {name}; update its kernel or firmware, or put the "
                f'name into skip = ["{name}"] of the agent\'s file to leave it out'
            )
    return found


def number(text: str, where: str) -> int:
    """Return an unsigned number, decimal or with 0x; raise DeviceError that begins with its place.

    The kernel reads both; it prints decimal.
    """
    digits = text.strip()
    try:
        found = int(digits, 16 if digits[:2].lower() == "0x" else 10)
    except ValueError:
        raise DeviceError(f"{where} holds {text[:40]!r}; expected a whole number") from None
    if not 0 <= found < 2**64 or "_" in digits:
        raise DeviceError(f"{where} holds {text[:40]!r}; expected a whole number of 64 bits")
    return found
