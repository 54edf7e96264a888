"""The congestion control that NICs and switches run: the key ``scheme`` and its options.

A scheme is one model here with its ``name`` and its options, and one line in :data:`SCHEMES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import UnknownNameError

__all__ = ["SCHEMES", "Dcqcn", "Scheme"]


class Dcqcn(StrictModel):
    """DCQCN. ``rp``: the reaction point as in NICs, or as published in the paper."""

    name: Literal["dcqcn"] = "dcqcn"
    rp: Literal["nic", "paper"] = "nic"


SCHEMES: Mapping[str, type[StrictModel]] = {"dcqcn": Dcqcn}
"""Every scheme by the name that a scenario gives."""


def _by_name(value: Any) -> Any:
    """Read ``scheme = "NAME"`` as the table with that name alone; refuse unknown names."""
    table = {"name": value} if isinstance(value, str) else value
    name = table.get("name", "dcqcn") if isinstance(table, Mapping) else None
    if isinstance(name, str) and name not in SCHEMES:
        raise UnknownNameError("scheme", name, SCHEMES)
    return table


Scheme = Annotated[
    Dcqcn,
    BeforeValidator(_by_name, json_schema_input_type=Literal["dcqcn"] | Dcqcn),
    Field(description='the name of a scheme, or a table such as { name = "dcqcn", rp = "paper" }'),
]
