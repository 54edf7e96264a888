"""NICs of Broadcom under the driver bnxt_re of its own package: configfs, in force at once.

``mkdir /sys/kernel/config/bnxt_re/DEV`` makes ``ports/1/cc`` with one file per parameter
(``configfs.c`` of Broadcom's bnxt_re sources). The kernel reads these files in hexadecimal and
holds what is written back until 1 goes to ``apply``, whose own text is what the firmware has: only
that counts as read back. One parameter means what a knob of DCQCN means, the time between CNPs
(``min_time_bet_cnp``, whole microseconds of 16 bits); the others are of Broadcom's own algorithm
and are left alone. The kernel's own driver has none of them: of the 14 parameters in its debugfs
(``debugfs.c``, Linux 6.15 to torvalds/linux 0eaed89c18ae of 2026: ``run_avg_weight_g``,
``init_cr``, ``tcp_cp`` ..., of which ``tx_queue`` cannot be written) none is the time between CNPs,
nor has a unit in public text; a NIC with that driver is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import DCQCN, Knob
from dcqcn_gym.hw.device_files import DeviceFiles
from dcqcn_gym.hw.drivers.base import (
    DriverSettings,
    Ibdev,
    Netdev,
    NicDriver,
    Port,
    Skip,
    Surroundings,
    Targets,
    Values,
)

FILES: Mapping[str, Knob] = {"min_time_bet_cnp": DCQCN["np_min_time_between_cnps"]}
_WORDS = {"min_time_bet_cnp": "minimum time between cnp", "ecn_enable": "ecn status"}
"""What older drivers print instead of a parameter's name."""


class BnxtSettings(DriverSettings):
    """One port of one NIC."""

    ibdev: Ibdev
    netdev: Netdev
    port: Port = 1
    skip: Skip = ()


class BnxtDriver(NicDriver):
    """See the module. It reports no figures."""

    name = "bnxt"
    summary = "NIC: Broadcom's bnxt_re in configfs, at once; no counters"
    Settings = BnxtSettings

    def __init__(self, settings: BnxtSettings, around: Surroundings) -> None:
        self._settings = settings
        self._folder = f"sys/kernel/config/bnxt_re/{settings.ibdev}/ports/{settings.port}/cc"
        names = (*FILES, "apply", "advanced")
        self._root = DeviceFiles(around.root, {f"{self._folder}/{name}" for name in names})

    def _rows(self) -> Mapping[str, Knob]:
        return FILES

    def knobs(self) -> tuple[str, ...]:
        """Return the one knob, once congestion control is found on."""
        self.read()
        return tuple(row.name for row in FILES.values())

    def _applied(self) -> str:
        """Return what the firmware holds, in words."""
        text = self._root.read(f"{self._folder}/apply")
        if text is None and (stock := self._root.names("sys/kernel/debug/bnxt_re")):
            raise DeviceError(
                f"this is the kernel's own bnxt_re (/sys/kernel/debug/bnxt_re/{stock[0]}/cc_config)"
                ", whose parameters are of Broadcom's algorithm alone: none is the time between "
                "CNPs; install Broadcom's package, which has configfs"
            )
        if text is None:
            raise DeviceError(
                f"/{self._folder} is not there: configfs is not mounted, or `mkdir "
                f"/sys/kernel/config/bnxt_re/{self._settings.ibdev}` was not done"
            )
        if _value(text, "min_time_bet_cnp") is None:
            self._root.write(f"{self._folder}/advanced", "0x1")  # what it prints, nothing else
            text = self._root.read(f"{self._folder}/apply") or ""
        return text

    def read(self) -> dict[str, str]:
        """Return what the firmware holds, in decimal."""
        text = self._applied()
        if not _value(text, "ecn_enable"):
            raise DeviceError(f"/{self._folder}: congestion control is off; set ecn_enable first")
        held = {file: _value(text, file) for file in FILES}
        for file, value in held.items():
            if value is None:
                raise DeviceError(f"/{self._folder}/apply does not tell {file}; is the NIC older?")
        return {file: str(value) for file, value in held.items()}

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the files that must change; one target, the port ``""``."""
        held, own = self.read(), {row.name: row for row in FILES.values()}
        raw = self._raw(targets, own, self._settings.skip)
        found = {file: raw[row.name] for file, row in FILES.items() if row.name in raw}
        return {file: str(value) for file, value in found.items() if held[file] != str(value)}

    def apply(self, values: Values) -> None:
        """Write the files, have the firmware take them, and read back what it holds."""
        for file in (f for f in FILES if f in values):
            self._root.write(f"{self._folder}/{file}", f"{int(values[file]):#x}")
        if values:
            self._root.write(f"{self._folder}/apply", "0x1")
        for file, held in self.read_back(values).items():
            raise DeviceError(f"the firmware holds {file} = {held} after {values[file]} was set")


def _value(text: str, name: str) -> int | None:
    """Return a parameter of ``apply``'s text; None if it is not there.

    The newest drivers print ``name=0x..``; older ones words, from some on a name in parentheses, a
    colon, and a number (``%#x``) or Enabled.
    """
    found = re.search(
        rf"^(?:{name}=|{_WORDS[name]}s?(?: \(\w+\))?\s*:\s*)(0x[0-9a-f]+|\d+|Enabled)\b",
        text,
        re.MULTILINE,
    )
    if found is None:
        return None
    return 1 if found[1] == "Enabled" else int(found[1], 16 if found[1].startswith("0x") else 10)
