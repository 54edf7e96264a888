"""The groups by which reports and docs sort knobs: parts of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Group = Literal["rp_increase", "rp_decrease", "rp_alpha", "np", "ecn", "pfc"]

GROUP_TITLES: Mapping[Group, str] = {
    "rp_increase": "NIC: rate increase",
    "rp_decrease": "NIC: rate decrease",
    "rp_alpha": "NIC: alpha",
    "np": "NIC: notification point",
    "ecn": "Switch: ECN marking",
    "pfc": "Switch: PFC",
}
"""A heading for every group, in the order of the table."""
