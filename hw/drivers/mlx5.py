"""NICs of NVIDIA under the kernel's driver mlx5: congestion control in debugfs, in force at once.

``/sys/kernel/debug/mlx5/<pci>/cc_params`` has one file per parameter, mode 0600: the kernel hands
the number to the firmware as it is and prints it back with ``%u`` (torvalds/linux
drivers/infiniband/hw/mlx5/cong.c). Older kernels lack some files, so which there are is asked.
There is no way to write several at once, and on some cards a write goes to another port than a
read, so every file is read back after it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import DCQCN, Knob
from dcqcn_gym.hw.device_files import DeviceFiles
from dcqcn_gym.hw.drivers import mlx5_counters
from dcqcn_gym.hw.drivers.base import (
    DriverSettings,
    Ibdev,
    Netdev,
    NicDriver,
    Pci,
    Port,
    Skip,
    Surroundings,
    Targets,
    Values,
    number,
)
from dcqcn_gym.hw.drivers.mlxconfig import programmable
from dcqcn_gym.hw.runner import Runner


class Mlx5Settings(DriverSettings):
    """One port of one NIC."""

    pci: Pci
    netdev: Netdev
    ibdev: Ibdev
    port: Port = 1
    priority: int = Field(default=3, ge=0, le=7, description="the lossless priority")
    skip: Skip = ()
    write_as: Literal["decimal", "hex"] = "decimal"
    rtt_file: str | None = Field(
        default=None, description="the file below the root in which a prober keeps round trips"
    )
    pair_counter: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_]{0,62}$",
        description="the counter of sent bytes that `rdma statistic qp show` has per queue pair, "
        "as rdma_tx_bytes; none: queue pairs are not read",
    )
    assume_dcqcn: bool = Field(
        default=False, description="true if it is known that no programmable algorithm is active"
    )


class Mlx5Driver(NicDriver):
    """See the module. ``root`` of the surroundings is ``/`` on a real host."""

    name = "mlx5"
    summary = "NIC: the kernel's cc_params in debugfs, at once"
    Settings = Mlx5Settings

    files: ClassVar[Mapping[str, Knob]] = {
        row.debugfs: row for row in DCQCN.rows if row.debugfs and not row.is_ecn
    }
    """Below the folder: file -> knob, in the order of the table."""

    def __init__(self, settings: Mlx5Settings, around: Surroundings) -> None:
        self._settings = settings
        self._folder = self._folder_of(settings)
        self._place = {row.name: file for file, row in self.files.items()}
        self._source = mlx5_counters.CounterSource(
            settings.netdev, settings.ibdev, settings.port, settings.priority, settings.rtt_file
        )
        writable = {f"{self._folder}/{file}" for file in self.files} | {self._source.lifespan}
        self._root = DeviceFiles(around.root, writable)
        self._runner: Runner = around.runner
        self._dcqcn = settings.assume_dcqcn

    def _rows(self) -> Mapping[str, Knob]:
        return self.files

    def _folder_of(self, settings: Mlx5Settings) -> str:
        return f"sys/kernel/debug/mlx5/{settings.pci}/cc_params"

    def knobs(self) -> tuple[str, ...]:
        """Return the knobs whose files this kernel has."""
        self._require_dcqcn()
        found = set(self._root.names(self._folder))
        if not found:
            raise DeviceError(
                f"/{self._folder} is not there: the kernel lacks it, debugfs is not mounted, the "
                "agent may not read it, or the firmware does not let the host set DCQCN"
            )
        return tuple(row.name for file, row in self.files.items() if file in found)

    def _require_dcqcn(self) -> None:
        """Refuse a card whose firmware runs a programmable algorithm: DCQCN's knobs would lie."""
        if self._dcqcn:
            return
        active = programmable(self._runner, self._settings.pci)
        if active:
            raise DeviceError(
                f"programmable congestion control is active on {self._settings.pci} ({active}), so "
                "the knobs of DCQCN may not apply; `mlxconfig -d "
                f"{self._settings.pci} set USER_PROGRAMMABLE_CC=0` and a reset of the NIC turn it "
                "off: its links go down meanwhile, and what that algorithm did is gone"
            )
        self._dcqcn = True

    def read(self) -> dict[str, str]:
        """Return every knob's file, in decimal."""
        return {self._place[name]: str(self._number(name)) for name in self.knobs()}

    def _number(self, name: str) -> int:
        path = f"{self._folder}/{self._place[name]}"
        text = self._root.read(path)
        if text is None:
            raise DeviceError(f"/{path} has gone; the kernel's driver may have been loaded again")
        return number(text, f"/{path}")

    def stage(self, targets: Targets) -> dict[str, str]:
        """Return the files that must change; one target, the port ``""``."""
        own = {name: DCQCN[name] for name in self.knobs()}
        raw = self._raw(targets, own, self._settings.skip)
        return {
            self._place[name]: str(value)
            for name, value in raw.items()
            if value != self._number(name)
        }

    def apply(self, values: Values) -> None:
        """Write file by file, in the order of the knob table, and read back each."""
        for file in (f for f in self.files if f in values):
            path = f"{self._folder}/{file}"
            wanted = int(values[file])
            self._root.write(path, self._text(wanted))
            held = self._number(self.files[file].name)
            if held != wanted:
                raise DeviceError(f"/{path} holds {held} after {wanted} was written")

    def _text(self, value: int) -> str:
        return f"{value:#x}" if self._settings.write_as == "hex" else str(value)

    def prepare(self, interval_ms: float) -> None:
        """Have the driver's cache of counters end within the interval (``lifespan``)."""
        text = self._root.read(self._source.lifespan)
        if text is None:
            return
        wanted = max(int(interval_ms) - 1, 0)
        if number(text, f"/{self._source.lifespan}") > wanted:
            self._root.write(self._source.lifespan, str(wanted))

    def cadence(self) -> str:
        """Return the lifespan of the driver's cache; empty where the kernel has none."""
        return self._root.read(self._source.lifespan) or ""

    def release(self, before: str) -> None:
        """Give the cache the lifespan that it had before :meth:`prepare`."""
        number(before, f"/{self._source.lifespan}")
        self._root.write(self._source.lifespan, before)

    def counters(self) -> dict[str, int]:
        """Return what the NIC has counted: bytes, pauses, CNPs, marks, round trips."""
        found = mlx5_counters.collect(self._root, self._runner, self._source)
        counter = self._settings.pair_counter
        if counter is not None:
            found |= mlx5_counters.sent_by_pair(self._runner, self._source, counter)
        return found
