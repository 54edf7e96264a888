"""What a SONiC switch's ASIC has taken: CONFIG_DB only says what was asked for.

orchagent turns fields of CONFIG_DB into attributes of the ASIC a moment later, and skips what the
platform does not know, with a line in the switch's log alone. ASIC_DB holds what the ASIC took. Its
objects have numbers, not names: a port's queue (COUNTERS_QUEUE_NAME_MAP) names its WRED object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.drivers.sonic_db import ASIC_DB, COUNTERS_DB, Databases

__all__ = ["asic_differs"]

_OBJECT = "ASIC_STATE:SAI_OBJECT_TYPE_{}:{}"


def asic_differs(db: Databases, queues: Iterable[str], fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that the ASIC holds otherwise, for one of these queues, with what it holds.

    ``queues`` (``Ethernet0:3``) are bound to one profile, ``fields`` what that is to hold; one
    that is to be absent (empty text) is passed over.
    """
    (numbers,) = db.read(COUNTERS_DB, ["COUNTERS_QUEUE_NAME_MAP"])
    names = list(queues)
    for name in names:
        if name not in numbers:
            raise DeviceError(f"COUNTERS_DB has no queue {name}, so ASIC_DB tells nothing of it")
    bound = db.read(ASIC_DB, [_OBJECT.format("QUEUE", numbers[name]) for name in names])
    profiles = [queue.get("SAI_QUEUE_ATTR_WRED_PROFILE_ID", "") for queue in bound]
    held = db.read(ASIC_DB, [_OBJECT.format("WRED", number) for number in profiles])
    found = {}
    for attributes in held:
        for field, text in fields.items():
            taken = attributes.get(f"SAI_WRED_ATTR_{field.upper()}", "")
            if text and taken != text:
                found[field] = taken
    return found
