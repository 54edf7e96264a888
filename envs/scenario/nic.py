"""Profiles of real NICs (``configs/nics``): what ``nic = NAME`` fills in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dcqcn_gym.core.config import CONFIGS, read_toml
from dcqcn_gym.core.errors import UnknownNameError

__all__ = ["nic_names", "with_nic"]

_FOLDER = CONFIGS / "nics"


def nic_names() -> list[str]:
    """Return the names of the profiles that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def with_nic(given: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return ``given``, the keys of a scenario, over those of the profile that its ``nic`` names.

    Of tables key by key; a preset as ``initial`` leaves nothing of the profile's. Keys that are not
    ``known`` to the model are left out. Raises :class:`UnknownNameError` for another name.
    """
    name = given.get("nic")
    if name is None:
        return dict(given)
    if name not in nic_names():
        raise UnknownNameError("nic", str(name), nic_names())
    filled = dict(given)
    for key, table in read_toml(_FOLDER / f"{name}.toml").items():
        own = filled.get(key, {})
        if key in known and isinstance(own, Mapping):
            filled[key] = {**table, **own}
    return filled
