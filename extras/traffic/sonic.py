"""``config_db.json`` of a SONiC switch: its tables, and what they say of its queues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dcqcn_gym.core.device_units import SONIC_FIELDS, SONIC_OWN_CURVES

Row = Mapping[str, Any]
MARKS_GREEN = ("ecn_all", "ecn_green", "ecn_green_red", "ecn_green_yellow")
"""Values of ``ecn`` with which a profile marks what RoCE sends."""
USUALLY_LOSSLESS = frozenset((3, 4))
"""Where PORT_QOS_MAP says nothing."""
_TABLES = ("WRED_PROFILE", "QUEUE", "PORT_QOS_MAP", "PORT", "BUFFER_PROFILE", "DEVICE_METADATA",
           "DEVICE_NEIGHBOR")  # fmt: skip


def is_sonic(whole: Any) -> bool:
    """Return whether JSON is a ``config_db.json``, or a part of one."""
    return isinstance(whole, dict) and any(isinstance(whole.get(name), dict) for name in _TABLES)


def numbers(text: str) -> list[int]:
    """Return ``3-4`` or ``3,4`` as numbers; nothing for another form."""
    found: list[int] = []
    for part in text.split(","):
        if match := re.fullmatch(r"\s*(\d{1,2})(?:-(\d{1,2}))?\s*", part):
            found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def number(row: Row, key: str) -> float | None:
    """Return a field as a number; None if it is none."""
    try:
        return float(str(row[key]).strip())
    except (KeyError, ValueError):
        return None


def curve_fields(profile: Row) -> dict[str, str]:
    """Return field -> knob of what a WRED profile marks green by: of its own, or where it drops."""
    kind = next(
        (k for k in SONIC_OWN_CURVES if SONIC_FIELDS[k]["kmin"].format("green") in profile), "wred"
    )
    return {text.format("green"): knob for knob, text in SONIC_FIELDS[kind].items()}


def marking_problem(profile: Row | None) -> tuple[str, str] | None:
    """Return why a WRED profile marks nothing that RoCE sends, and the field; None if it marks."""
    if profile is None:
        return "is not there", ""
    if str(profile.get("ecn", "")) not in MARKS_GREEN:
        return "marks nothing that RoCE sends", "ecn"
    own_curve = "green_min_threshold" not in curve_fields(profile)
    if not own_curve and str(profile.get("wred_green_enable", "true")).lower() != "true":
        return "is off: nothing is marked", "wred_green_enable"
    return None


@dataclass(frozen=True)
class Queue:
    """A queue of a port that has a WRED profile."""

    port: str
    number: int
    profile: str
    scheduler: str


class SonicSwitch:
    """The tables of one switch, or of one ASIC, and what they say together."""

    def __init__(self, name: str, whole: Mapping[str, Any]) -> None:
        self.name, self._whole = name, whole

    def table(self, name: str) -> dict[str, Row]:
        """Return the rows of a table by key."""
        given = self._whole.get(name)
        rows = given.items() if isinstance(given, dict) else ()
        return {str(key): row for key, row in rows if isinstance(row, dict)}

    def per_port(self, name: str) -> Iterator[tuple[str, list[int], Row]]:
        """Yield port, numbers and row of a table whose keys are ``PORT,...|3-4`` or longer."""
        for key, row in self.table(name).items():
            ports, _, last = key.rpartition("|")
            for port in ports.split(","):
                yield port, numbers(last), row

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """Every queue that has a WRED profile."""
        return tuple(
            Queue(port, n, profile, refers(row, "scheduler"))
            for port, found, row in self.per_port("QUEUE")
            if (profile := refers(row, "wred_profile"))
            for n in found
        )

    @cached_property
    def pfc(self) -> dict[str, frozenset[int]]:
        """Port -> priorities that PFC protects, of the ports that PORT_QOS_MAP names."""
        return {
            port: frozenset(numbers(str(row.get("pfc_enable", ""))))
            for key, row in self.table("PORT_QOS_MAP").items()
            if key != "global"
            for port in key.split(",")
        }

    def priority(self, queue: Queue) -> int:
        """Return the priority that a queue serves: by the port's maps, else its own number."""
        own = next((row for key, row in self.table("PORT_QOS_MAP").items()
                    if queue.port in key.split(",")), {})  # fmt: skip
        for field, table in (("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE"),
                             ("tc_to_queue_map", "TC_TO_QUEUE_MAP")):  # fmt: skip
            mapped = self.table(table).get(refers(own, field), {})
            found = [n for n, q in mapped.items() if str(q) == str(queue.number)]
            if len(found) == 1 and found[0].isdecimal():
                return int(found[0])
        return queue.number

    def is_lossless(self, queue: Queue) -> bool:
        """Return whether PFC protects a queue's priority."""
        return self.priority(queue) in self.pfc.get(queue.port, USUALLY_LOSSLESS)

    def weight(self, queue: Queue) -> int | None:
        """Return a queue's weight of its DWRR; None with another scheduler."""
        row = self.table("SCHEDULER").get(queue.scheduler, {})
        weight = number(row, "weight")
        return int(weight) if row.get("type") in ("DWRR", "WRR") and weight else None

    def dscp(self, priority: int) -> int | None:
        """Return the DSCP of a priority, if the switch maps just one to it."""
        maps = self.table("DSCP_TO_TC_MAP")
        if len(maps) != 1:
            return None
        of_all = next(iter(maps.values()))
        found = [d for d, tc in of_all.items() if str(tc) == str(priority)]
        return int(found[0]) if len(found) == 1 and found[0].isdecimal() else None

    def buffer_profiles(self) -> Iterator[tuple[str, int, str, Row]]:
        """Yield port, priority group, name and row of every profile of BUFFER_PG."""
        profiles = self.table("BUFFER_PROFILE")
        for port, groups, row in self.per_port("BUFFER_PG"):
            name = refers(row, "profile")
            for group in groups:
                yield port, group, name, profiles.get(name, {})

    def lossless_buffers(self) -> list[tuple[int | None, str, Row]]:
        """Return group, name and row of the profiles of lossless groups; by name if none is said.

        A group is a port's; a profile is there for each.
        """
        return [
            (group, name, row)
            for port, group, name, row in self.buffer_profiles()
            if group in self.pfc.get(port, USUALLY_LOSSLESS)
        ] or [
            (None, name, row)
            for name, row in self.table("BUFFER_PROFILE").items()
            if "lossless" in name and not name.startswith("egress")
        ]

    def pool(self, profile: Row) -> tuple[str, float] | None:
        """Return name and bytes of a buffer profile's pool; None if it says no size."""
        name = refers(profile, "pool")
        size = number(self.table("BUFFER_POOL").get(name, {}), "size")
        return (name, size) if size else None


def refers(row: Row, field: str) -> str:
    """Return the name in a field that refers to another table, also as ``[TABLE|NAME]``."""
    return re.sub(r"^\[[A-Z_]{1,40}\|(.*)\]$", r"\1", str(row.get(field, "")))
