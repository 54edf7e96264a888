"""The schema that both ends must share, as canonical JSON with its SHA-256."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dcqcn_gym.core import interval
from dcqcn_gym.core.knobs import DCQCN, KnobTable

PROTOCOL = (1, 4)
"""Major and minor version of our extra fields; another major is refused."""

_DTYPES = {"IntArray": ("<i8", 1), "FloatArray": ("<f8", 1), "int": ("<i8", 0)} | {
    "float": ("<f8", 0),
    "bool": ("bool", 0),
}

REPORT_FIELDS: dict[str, tuple[str, int]] = {
    path: _DTYPES[field.kind] for path, field in interval.REPORT_FIELDS.items()
}
"""{dotted field name: (type on the wire, dimensions)} of an interval report, in order."""


def schema(table: KnobTable = DCQCN) -> dict[str, Any]:
    """Return the description: knobs with units and bounds, report fields."""
    return {
        "protocol": list(PROTOCOL),
        "knobs": [[k.name, k.si_unit, k.unit, *map(float, k.legal)] for k in table.rows],
        "report": [[name, dtype, ndim] for name, (dtype, ndim) in REPORT_FIELDS.items()],
    }


def canonical(value: Any) -> str:
    """Return the one JSON text of ``value``."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """Return the SHA-256 of ``text``, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def first_difference(ours: Any, theirs: Any, where: str = "") -> str | None:
    """Return the place and both values of the first difference, or None if there is none."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *(k for k in theirs if k not in ours)]:
            inner = f"{where}.{key}" if where else str(key)
            if found := first_difference(ours.get(key), theirs.get(key), inner):
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list):
        for i in range(max(len(ours), len(theirs))):
            mine, other = (side[i] if i < len(side) else None for side in (ours, theirs))
            if found := first_difference(mine, other, f"{where}[{i}]"):
                return found
        return None
    return None if ours == theirs else f"{where}: ours {ours!r}, theirs {theirs!r}"
