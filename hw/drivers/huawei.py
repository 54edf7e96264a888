"""NICs of Huawei: hiroce3 (RoCE of hinic3) and HiSilicon's hns, by files in sysfs, at once.

Both are of openEuler's kernel (github.com/openeuler-mirror/kernel, drivers/infiniband/hw:
``hiroce3/roce_sysfs.c`` at ae52f9c522dd, ``hns/hns_roce_sysfs.c`` at 523f34d81ea7). Linux's own
(torvalds/linux at b9dc06cc5fd0, 2026) has hinic3 without RoCE, and hns without these files. Sources
give names and ranges; **no public text says what one step of a rate or a time is worth**, so the
agent's file does, by the maker's manual: without it that knob is refused. What has no knob's
meaning for certain (``factor_gita``, ``rate_first_set``, ``tkp``, ``alp``, ``ashift`` ...) is left
alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from dcqcn_gym.core.errors import ConfigError, DeviceError, UnknownNameError
from dcqcn_gym.core.knobs import DCQCN, Knob
from dcqcn_gym.hw.device_files import DeviceFiles
from dcqcn_gym.hw.drivers.base import (
    DriverSettings,
    Edit,
    Ibdev,
    Netdev,
    NicDriver,
    Port,
    Skip,
    Surroundings,
    Targets,
    Values,
    number,
)

Row = tuple[str, int, int, float | None]
"""Knob, least and largest number, and what one step is worth in SI units, where that is certain."""


class HuaweiSettings(DriverSettings):
    """One port of one NIC."""

    netdev: Netdev
    units: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default={}, description="file -> what one step is worth: bit/s, s, or 1 for a count"
    )
    skip: Skip = ()


class HuaweiDriver(NicDriver):
    """Files of one folder, each a knob in steps of a unit; a subclass names them."""

    table: ClassVar[Mapping[str, Row]]
    _settings: HuaweiSettings

    def __init__(self, settings: HuaweiSettings, around: Surroundings) -> None:
        for file in settings.units:
            if file not in self.table:
                raise UnknownNameError("file of units", file, self.table)
        self._settings, self._folder = settings, self._folder_of(settings)
        self._root = DeviceFiles(around.root, {f"{self._folder}/{file}" for file in self.table})
        self._units = {file: settings.units.get(file, row[3]) for file, row in self.table.items()}

    def _folder_of(self, settings: HuaweiSettings) -> str:
        raise NotImplementedError

    def _require_dcqcn(self) -> None:
        """Raise DeviceError where the knobs would change nothing."""

    def _settle(self) -> None:
        """Wait until what was written is what is read."""

    def _rows(self) -> Mapping[str, Knob]:
        return {file: DCQCN[row[0]] for file, row in self.table.items() if self._units[file]}

    def knobs(self) -> tuple[str, ...]:
        """Return the knobs of files whose unit is known."""
        self._require_dcqcn()
        if not self._rows():
            raise DeviceError(f"no unit of a file is known: give units of {', '.join(self.table)}")
        return tuple(knob.name for knob in self._rows().values())

    def read(self) -> dict[str, str]:
        """Return every file with a unit, in decimal."""
        self._require_dcqcn()
        found = {}
        for file in self._rows():
            text = self._root.read(f"{self._folder}/{file}")
            if text is None:
                raise DeviceError(f"/{self._folder}/{file} is not there: is this openEuler's own "
                                  "driver, and the NIC no virtual function?")  # fmt: skip
            found[file] = str(number(text, f"/{self._folder}/{file}"))
        return found

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the files that must change; one target, the port ``""``."""
        held = self.read()
        asked = targets.get("", {}).keys() - set(self._settings.skip)
        for file, (name, *_) in self.table.items():
            if name in asked and not self._units[file]:
                raise DeviceError(
                    f"no public text says what one step of {file} is worth ({name}): put "
                    f"units = {{ {file!r} = ... }} by the maker's manual into [settings], or "
                    f"skip = [{name!r}]"
                )
        raw = self._raw(targets, {k.name: k for k in self._rows().values()}, self._settings.skip)
        found = {}
        for file, knob in self._rows().items():
            if knob.name not in raw:
                continue
            _, low, high, _ = self.table[file]
            steps = round(knob.to_si(raw[knob.name]) / self._unit(file))
            if not low <= steps <= high:
                raise ConfigError(f"{knob.name}: {file} would be {steps}; it holds {low} to {high}")
            if held[file] != str(steps):
                found[file] = str(steps)
        return found

    def _unit(self, file: str) -> float:
        return self._units[file] or 1.0

    def diff(self, before: Values, after: Values) -> list[Edit]:
        """Return one line per file; the unit is that of one step."""
        return [
            Edit(file, knob.name, f"x {self._unit(file):g} {knob.si_unit}", before.get(file, ""),
                 after[file])
            for file, knob in self._rows().items()
            if file in after and after[file] != before.get(file)
        ]  # fmt: skip

    def apply(self, values: Values) -> None:
        """Write file by file, then read back all."""
        for file in (f for f in self.table if f in values):
            self._root.write(f"{self._folder}/{file}", values[file])
        if values:
            self._settle()
        for file, held in self.read_back(values).items():
            raise DeviceError(f"/{self._folder}/{file} holds {held} after {values[file]} was set")

    def setting(self) -> dict[str, dict[str, float]]:
        """Return the knobs, for the port ``""``."""
        held, rows = self.read(), self._rows()
        return {"": {k.name: round(int(held[f]) * self._unit(f) / k.si_per_unit, 9)
                     for f, k in rows.items()}}  # fmt: skip


class Hiroce3Settings(HuaweiSettings):
    """One port of one NIC."""

    priority: int = Field(default=3, ge=0, le=7, description="the lossless priority")


class Hiroce3Driver(HuaweiDriver):
    """``/sys/class/net/IF/ecn`` of hiroce3, whose driver tells the firmware all at each write."""

    name = "hiroce3"
    summary = "NIC: Huawei's hinic3 with openEuler's hiroce3 in sysfs, at once; no counters"
    Settings = Hiroce3Settings
    table: ClassVar[Mapping[str, Row]] = {
        "roce3_rp/rate_target_clamp": ("rp_clamp_tgt_rate", 0, 1, 1.0),
        "roce3_rp/rate_inc_period": ("rp_time_reset", 1, 1024, None),
        "roce3_rp/rate_inc_ai": ("rp_ai_rate", 1, 63, None),
        "roce3_rp/rate_inc_hai": ("rp_hai_rate", 1, 255, None),
        "roce3_rp/min_rate": ("rp_min_rate", 1, 64, None),
        "roce3_rp/rate_dec_period": ("rp_rate_reduce_monitor_period", 1, 255, None),
        "roce3_rp/alpha_dec_period": ("rp_dce_tcp_rtt", 1, 1024, None),
        "roce3_rp/initial_alpha": ("rp_initial_alpha_value", 127, 1023, 2.0**-10),
        "roce3_np/min_cnp_period": ("np_min_time_between_cnps", 1, 255, None),
    }
    _settings: Hiroce3Settings

    def _folder_of(self, settings: HuaweiSettings) -> str:
        return f"sys/class/net/{settings.netdev}/ecn"

    def _require_dcqcn(self) -> None:
        algorithm = self._root.read(f"{self._folder}/cc_algo")
        if algorithm != "dcqcn":
            raise DeviceError(
                f"/{self._folder}/cc_algo holds {algorithm or 'nothing'}: DCQCN is not what this "
                "NIC runs, or this is not hiroce3; write dcqcn into it first"
            )
        for side in ("roce3_np", "roce3_rp"):
            file = f"{self._folder}/{side}/enable/{self._settings.priority}"
            if self._root.read(file) != "1":
                raise DeviceError(f"/{file} is not 1: DCQCN is off for this priority")


class HnsSettings(HuaweiSettings):
    """One port of one NIC."""

    ibdev: Ibdev
    port: Port = 1


class HnsDriver(HuaweiDriver):
    """``cc_param/dcqcn_cc_param`` of a port. Which algorithm a queue pair has, no file says.

    A write goes to the hardware a moment later, and a read within ``lifespan`` ms gives what was
    written; one that comes too early would undo a write that waits.
    """

    name = "hns"
    summary = "NIC: HiSilicon's hns with openEuler's driver in sysfs, at once; no counters"
    Settings = HnsSettings
    table: ClassVar[Mapping[str, Row]] = {
        "f": ("rp_threshold", 0, 255, None),
        "max_speed": ("rp_max_rate", 0, 2**32 - 1, None),
        "ai": ("rp_ai_rate", 0, 2**16 - 1, None),
        "cnp_time": ("np_min_time_between_cnps", 0, 255, None),
    }
    SETTLE_S: ClassVar[float] = 0.05

    def _folder_of(self, settings: HuaweiSettings) -> str:
        assert isinstance(settings, HnsSettings)
        port = f"sys/class/infiniband/{settings.ibdev}/ports/{settings.port}"
        return f"{port}/cc_param/dcqcn_cc_param"

    def _settle(self) -> None:
        text = self._root.read(f"{self._folder}/lifespan") or "0"
        time.sleep(number(text, f"/{self._folder}/lifespan") * 1e-3 + self.SETTLE_S)
