"""Settings, contexts and outcomes as plain data and back, every number to the bit.

A setting is ``{"scheme", "knobs"}``, its values in the order of the scheme's knob table; a setting
per group ``{"groups": {NAME: setting}}``; none at all is null. An observation is the list of its
numbers, a report what :func:`~dcqcn_gym.envs.backends.report_dict.report_to_dict` makes of it.
Contexts and outcomes are written field by field, so that one that is new goes over as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.core.interval import Observation
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.scheme_tables import named_table
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.envs.backends.report_dict import report_from_dict, report_to_dict
from dcqcn_gym.tuners.base import Outcome, Proposal, TunerContext

T = TypeVar("T")

Codecs: TypeAlias = Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]
"""How fields are written and read; one that is not there is plain data as it is."""


def proposal_plain(proposal: Proposal | None) -> dict[str, Any] | None:
    """Return a proposal as plain data."""
    if proposal is None:
        return None
    if isinstance(proposal, Setting):
        return {"scheme": proposal.table.scheme, "knobs": list(proposal.numbers)}
    return {"groups": {name: proposal_plain(setting) for name, setting in proposal.items()}}


def proposal_from(value: object) -> Proposal | None:
    """Return the proposal; raise ConfigError for what is none, whoever has sent it."""
    if value is None:
        return None
    groups = value.get("groups") if isinstance(value, dict) else None
    if isinstance(groups, dict):
        return {str(name): _setting(setting) for name, setting in groups.items()}
    return _setting(value)


def _setting(value: object) -> Setting:
    values = value.get("knobs") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(values, list):
        raise ConfigError(f"expected a setting; got {quote(value)}")
    return Setting(tuple(values), named_table(str(value.get("scheme"))))


def context_plain(context: TunerContext) -> dict[str, Any]:
    """Return a context as plain data; ConfigError if its knob table belongs to no scheme."""
    named_table(context.space.table.scheme).require(context.base, "a tuner in a process of its own")
    return _written(context, TunerContext, _CONTEXT)


def context_from(value: Mapping[str, Any]) -> TunerContext:
    """Return the context that :func:`context_plain` wrote."""
    return _read(value, TunerContext, _CONTEXT)


def outcome_plain(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data."""
    return _written(outcome, Outcome, _OUTCOME)


def outcome_from(value: Mapping[str, Any]) -> Outcome:
    """Return the outcome that :func:`outcome_plain` wrote."""
    return _read(value, Outcome, _OUTCOME)


def _written(value: T, kind: type[T], codecs: Codecs) -> dict[str, Any]:
    """Return a dataclass field by field; a subclass is written as ``kind``."""
    return {name: write(getattr(value, name)) for name, write, _ in _fields(kind, codecs)}


def _read(value: Mapping[str, Any], kind: type[T], codecs: Codecs) -> T:
    return kind(**{name: read(value[name]) for name, _, read in _fields(kind, codecs)})


def _fields(
    kind: Any, codecs: Codecs
) -> Iterable[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]:
    return ((field.name, *codecs.get(field.name, (_same, _same))) for field in fields(kind))


def _same(value: Any) -> Any:
    return value


def _numbers(observation: Observation) -> list[float]:
    """Return float32 numbers as the doubles that they are, which JSON writes to the bit."""
    return [float(number) for number in observation]


def _observation(numbers: list[float]) -> Observation:
    return np.array(numbers, dtype=np.float32)


def _space_plain(space: KnobSpace) -> dict[str, Any]:
    return {
        "scheme": space.table.scheme,
        "knobs": list(space.knobs),
        "line_rate_bps": space.line_rate_bps,
        "ranges": {name: list(bounds) for name, bounds in space.ranges.items()},
    }


def _space(value: Mapping[str, Any]) -> KnobSpace:
    ranges = {name: (low, high) for name, (low, high) in value["ranges"].items()}
    table = named_table(value["scheme"])
    return KnobSpace(value["knobs"], value["line_rate_bps"], table, ranges)


def _whole(numbers: Iterable[Any]) -> list[int]:
    return [int(number) for number in numbers]


def _tiers_plain(tiers: Mapping[int, int]) -> list[list[int]]:
    return [_whole(pair) for pair in tiers.items()]  # the keys of JSON's objects are texts


def _devices_plain(devices: Devices | None) -> dict[str, Any] | None:
    return None if devices is None else _written(devices, Devices, _DEVICES)


def _devices(value: Mapping[str, Any] | None) -> Devices | None:
    return None if value is None else _read(value, Devices, _DEVICES)


def _told(value: object) -> Proposal:
    setting = proposal_from(value)
    if setting is None:
        raise ConfigError("an outcome belongs to a setting; got none")
    return setting


_DEVICES: Codecs = {
    "port_node": (_whole, tuple),
    "port_index": (_whole, tuple),
    "tiers": (_tiers_plain, dict),
    "nic_knobs": (lambda rows: [list(row) for row in rows], lambda rows: tuple(map(tuple, rows))),
    "port_up": (lambda sides: [bool(up) for up in sides], tuple),
}
_CONTEXT: Codecs = {
    "space": (_space_plain, _space),
    "base": (proposal_plain, _setting),
    "observation": (_numbers, _observation),
    "groups": (list, tuple),
    "devices": (_devices_plain, _devices),
    "fabric": (
        lambda facts: None if facts is None else asdict(facts),
        lambda facts: None if facts is None else FabricFacts(**facts),
    ),
}
_OUTCOME: Codecs = {
    "setting": (proposal_plain, _told),
    "terms": (lambda terms: [terms.tp, terms.rtt, terms.pfc], lambda three: Terms(*three)),
    "observation": (_numbers, _observation),
    "report": (report_to_dict, report_from_dict),
}
