"""Drivers: one file for each way to a device; a name here is what ``driver`` in a file takes.

A built-in is one file and one line in :data:`BUILTIN`; other packages register theirs in the
entry-point group ``dcqcn_gym.drivers``; ``path.py:Class`` names a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.registry import Registry
from dcqcn_gym.hw.drivers.base import Driver, DriverSettings, Edit, Surroundings, Targets, Values

__all__ = [
    "BUILTIN",
    "DRIVERS",
    "Driver",
    "DriverSettings",
    "Edit",
    "Surroundings",
    "Targets",
    "Values",
    "make_driver",
]

BUILTIN = {
    "bnxt": "dcqcn_gym.hw.drivers.bnxt:BnxtDriver",
    "eos": "dcqcn_gym.hw.drivers.eos:EosDriver",
    "gnmi": "dcqcn_gym.hw.drivers.gnmi:GnmiDriver",
    "hiroce3": "dcqcn_gym.hw.drivers.huawei:Hiroce3Driver",
    "hns": "dcqcn_gym.hw.drivers.huawei:HnsDriver",
    "junos": "dcqcn_gym.hw.drivers.junos:JunosDriver",
    "mlx5": "dcqcn_gym.hw.drivers.mlx5:Mlx5Driver",
    "mlxconfig": "dcqcn_gym.hw.drivers.mlxconfig:MlxconfigDriver",
    "nvue": "dcqcn_gym.hw.drivers.nvue:NvueDriver",
    "ofed": "dcqcn_gym.hw.drivers.ofed:OfedDriver",
    "sonic": "dcqcn_gym.hw.drivers.sonic:SonicDriver",
    "sonic-asics": "dcqcn_gym.hw.drivers.sonic_asics:SonicAsicsDriver",
}

DRIVERS: Registry[Driver] = Registry(
    "driver",
    "dcqcn_gym.drivers",
    Driver,  # type: ignore[type-abstract]  # only classes that fit it are made
    BUILTIN,
)


def make_driver(name: str, device: Mapping[str, Any], around: Surroundings, source: str) -> Driver:
    """Return the driver ``name`` of the device that the table ``device`` describes.

    ``source`` begins the message for a wrong key. Raises ConfigError, UnknownNameError.
    """
    found = DRIVERS.load(name)
    return found.of(validate(device, found.Settings, source=source), around)
