"""NICs of NVIDIA through ``mlxconfig``: values that survive, and take force at the next reset.

mlxconfig prints a table: names on the left, the value at the next boot in the last column, as a
number or as ``Name(number)``. ``set`` takes all keys at once. Its field for ``RPG_BYTE_RESET`` has
15 bits, so a larger value is refused by the tool. ``mstconfig`` is the same tool, in
Debian's package mstflint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import DCQCN, Knob
from dcqcn_gym.hw.drivers.base import (
    DriverSettings,
    NicDriver,
    Pci,
    Port,
    Skip,
    Surroundings,
    Targets,
    Values,
)
from dcqcn_gym.hw.runner import NotInstalledError, Runner

PCC_KEYS = ("USER_PROGRAMMABLE_CC", "PCC_INT_EN")
_ROW = re.compile(r"^[\s*]*(?P<key>[A-Z][A-Z0-9_]+)\s+(?P<values>\S.*?)\s*$")
_VALUE = re.compile(r"^(?:[\w-]+\((?P<named>\d+)\)|(?P<plain>\d+)|0x(?P<hex>[0-9a-fA-F]+))$")


class MlxconfigSettings(DriverSettings):
    """One port of one NIC."""

    pci: Pci
    port: Port = 1
    skip: Skip = ()


def _tool(runner: Runner, *arguments: str) -> str:
    """Run mlxconfig, or mstconfig where that is what is installed."""
    try:
        return runner.run("mlxconfig", *arguments)
    except NotInstalledError:
        return runner.run("mstconfig", *arguments)


def query(runner: Runner, pci: str) -> dict[str, int]:
    """Return key -> the value at the next boot; values that are no numbers are left out."""
    found = {}
    for line in _tool(runner, "-d", pci, "query").splitlines():
        row = _ROW.match(line)
        value = _VALUE.match(row["values"].split()[-1]) if row else None
        if row and value:
            found[row["key"]] = int(value["named"] or value["plain"] or int(value["hex"], 16))
    return found


def programmable(runner: Runner, pci: str) -> str:
    """Return which key says that programmable congestion control is active; empty if none does.

    Raises DeviceError if mlxconfig cannot be asked, as nothing else tells.
    """
    try:
        held = query(runner, pci)
    except DeviceError as error:
        raise DeviceError(
            f"whether programmable congestion control is active on {pci} cannot be asked: {error}; "
            "install mlxconfig or mstconfig (package mstflint), or put assume_dcqcn = true into "
            "the agent's file"
        ) from None
    return ", ".join(f"{key} = {held[key]}" for key in PCC_KEYS if held.get(key))


class MlxconfigDriver(NicDriver):
    """See the module. Its changes need a reset, so it serves to keep a winner, not to search."""

    name = "mlxconfig"
    summary = "NIC: mlxconfig, in force after the next reset"
    at_reset = True
    writes_blind = False  # flash
    Settings = MlxconfigSettings

    def __init__(self, settings: MlxconfigSettings, around: Surroundings) -> None:
        self._settings = settings
        self._runner = around.runner
        self._keys = {
            f"{row.mlxconfig}_P{settings.port}": row
            for row in DCQCN.rows
            if row.mlxconfig and not row.is_ecn
        }

    def _rows(self) -> Mapping[str, Knob]:
        return self._keys

    def knobs(self) -> tuple[str, ...]:
        """Return the knobs that the card lists."""
        held = query(self._runner, self._settings.pci)
        return tuple(row.name for key, row in self._keys.items() if key in held)

    def read(self) -> dict[str, str]:
        """Return every key's value at the next boot."""
        held = query(self._runner, self._settings.pci)
        found = {key: str(held[key]) for key in self._keys if key in held}
        if not found:
            raise DeviceError(
                f"mlxconfig lists no key of DCQCN for port {self._settings.port} of "
                f"{self._settings.pci}"
            )
        return found

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the keys that must change; one target, the port ``""``."""
        held = self.read()
        own = {row.name: row for key, row in self._keys.items() if key in held}
        raw = self._raw(targets, own, self._settings.skip)
        wanted = {k: str(raw[r.name]) for k, r in self._keys.items() if r.name in raw}
        return {key: text for key, text in wanted.items() if held[key] != text}

    def apply(self, values: Values) -> None:
        """Set all keys with one command and read them back."""
        if not values:
            return
        pairs = [f"{key}={values[key]}" for key in self._keys if key in values]
        _tool(self._runner, "-d", self._settings.pci, "-y", "set", *pairs)
        wrong = self.read_back(values)
        for key, held in wrong.items():
            raise DeviceError(f"{key} holds {held} after {values[key]} was set")

    def line_rate_bps(self) -> float | None:
        """Return None: mlxconfig does not tell."""
        return None
