"""NICs of NVIDIA under MLNX_OFED: congestion control in sysfs, in force at once.

NVIDIA's MLNX_OFED documentation, "Explicit Congestion Notification (ECN)", has the files:
``/sys/class/net/IF/ecn/roce_rp`` (reaction point) and ``roce_np`` (notification point) with
``enable/PRIORITY`` and one file per parameter, named and counted as ``mlxconfig`` does. The
mainline kernel has none of them. What the RDMA CM sends is congestion controlled only if its type
of service says so (``cma_roce_tos`` of mlnx-tools; 106 is DSCP 26 with ECT).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.core.knobs import DCQCN, Knob
from dcqcn_gym.hw.drivers.base import Surroundings
from dcqcn_gym.hw.drivers.mlx5 import Mlx5Driver, Mlx5Settings

ECN_CAPABLE = (1, 2)
"""Last two bits of a type of service: ECT(1) and ECT(0)."""


class OfedSettings(Mlx5Settings):
    """One port of one NIC."""

    roce_tos: int | None = Field(
        default=None, ge=0, le=255, description="what `cma_roce_tos` has to say; none: not asked"
    )


class OfedDriver(Mlx5Driver):
    """See the module. Figures are those of the driver ``mlx5``."""

    name = "ofed"
    summary = "NIC: MLNX_OFED's ecn/roce_rp and roce_np in sysfs, at once"
    Settings = OfedSettings
    files: ClassVar[Mapping[str, Knob]] = {
        f"{'roce_np' if row.name.startswith('np_') else 'roce_rp'}/{row.mlxconfig.lower()}": row
        for row in DCQCN.rows
        if row.mlxconfig and not row.is_ecn
    }

    def __init__(self, settings: OfedSettings, around: Surroundings) -> None:
        if settings.write_as == "hex":
            raise ConfigError('write_as = "hex": MLNX_OFED\'s files would take 0x32 for 0')
        super().__init__(settings, around)
        self._tos = settings.roce_tos

    def _folder_of(self, settings: Mlx5Settings) -> str:
        return f"sys/class/net/{settings.netdev}/ecn"

    def knobs(self) -> tuple[str, ...]:
        """Return the knobs whose files are there, once DCQCN is found on for the priority."""
        self._require_dcqcn()
        self._require_ecn()
        found = {f"{side}/{name}" for side in ("roce_np", "roce_rp")
                 for name in self._root.names(f"{self._folder}/{side}")}  # fmt: skip
        return tuple(row.name for file, row in self.files.items() if file in found)

    def _require_ecn(self) -> None:
        """Refuse a port whose knobs would change nothing: DCQCN off, or packets not capable."""
        priority = self._settings.priority
        point = f"{self._folder}/roce_np/enable"
        if not any(self._root.read(f"{point}/{n}") == "1" for n in range(8)):
            raise DeviceError(
                f"no file in /{point} holds 1: the notification point, which any priority turns on "
                f"for the port, is off, or this is not MLNX_OFED; write 1 into {priority} first"
            )
        file = f"{self._folder}/roce_rp/enable/{priority}"
        held = self._root.read(file)
        if held != "1":
            raise DeviceError(
                f"/{file} holds {held or 'nothing'}: DCQCN is off for priority {priority}, or "
                "this is not MLNX_OFED; write 1 into it first"
            )
        if self._tos is None:
            return
        own = self._settings
        said = self._runner.run("cma_roce_tos", "-d", own.ibdev, "-p", str(own.port)).strip()
        if said != str(self._tos) or self._tos % 4 not in ECN_CAPABLE:
            raise DeviceError(
                f"cma_roce_tos of {own.ibdev} says {said[:40]!r} and roce_tos of the agent's file "
                f"{self._tos}; expected the same, with ECN: "
                f"`cma_roce_tos -d {own.ibdev} -p {own.port} -t 106` (DSCP 26)"
            )
