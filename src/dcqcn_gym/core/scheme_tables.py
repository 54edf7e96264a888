"""Knob tables of networks in which more than one scheme runs, and which table knobs belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import Knob, KnobTable, knob_table, schemes
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS, with_optional


def table_of_schemes(names: Sequence[str]) -> KnobTable:
    """Return the table of a network whose NICs run these schemes.

    One scheme has its own table. That of several is called ``"dcqcn,dcqcn-plus"`` and has the rows
    of each NIC in this order, a row that two have alike once, then those of a switch. Raises
    ConfigError for schemes whose rows of one name differ.
    """
    return _joint(tuple(dict.fromkeys(names)))


@cache
def _joint(names: tuple[str, ...]) -> KnobTable:
    if len(names) == 1:
        return knob_table(names[0])
    rows: dict[str, Knob] = {}
    tables = [knob_table(name) for name in names]
    for table in tables:
        for name in table.nic:
            if rows.setdefault(name, table[name]) != table[name]:
                raise ConfigError(
                    f"schemes {', '.join(names)}: their knobs {name!r} differ, so that no setting "
                    "is one for all of them; expected schemes that can run side by side"
                )
    return KnobTable(",".join(names), (*rows.values(), *(tables[0][n] for n in tables[0].ecn)))


def named_table(name: str) -> KnobTable:
    """Return the table of this name: of a scheme, or of several with a comma between.

    Behind each ``+`` stands an optional knob. Raises
    :class:`~dcqcn_gym.core.errors.UnknownNameError` for a scheme or a knob that there is not.
    """
    names, *optional = name.split("+")
    for other in optional:
        if other not in OPTIONAL_KNOBS:
            raise UnknownNameError("optional knob", other, OPTIONAL_KNOBS)
    return with_optional(table_of_schemes(names.split(",")), optional)


def table_of(knobs: Iterable[str]) -> KnobTable:
    """Return the table that has all these knobs: of one scheme, or of the fewest together.

    Optional knobs come on top. A name that no scheme has counts for nothing; whoever uses the table
    refuses it.
    """
    names = tuple(knobs)
    return with_optional(_scheme_table_of([n for n in names if n not in OPTIONAL_KNOBS]), names)


def _scheme_table_of(knobs: Sequence[str]) -> KnobTable:
    tables = [knob_table(scheme) for scheme in schemes()]
    known = [name for name in knobs if any(name in table.knobs for table in tables)]
    for table in tables:
        if all(name in table.knobs for name in known):
            return table
    owners = (next((t.scheme for t in tables if name in t.nic), None) for name in known)
    return table_of_schemes([owner for owner in owners if owner is not None])
