"""Settings, contexts and outcomes as plain data and back, every number to the bit.

A setting is ``{"scheme", "si"}``, its values in the order of the scheme's knob table; a setting per
group ``{"groups": {NAME: setting}}``; none at all is null. An observation is the list of its
numbers, a report what :func:`~dcqcn_gym.envs.backends.report_dict.report_to_dict` makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.observation import Observation
from dcqcn_gym.core.optional_knobs import named_table
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.envs.backends.report_dict import report_from_dict, report_to_dict
from dcqcn_gym.tuners.base import Outcome, Proposal, TunerContext

__all__ = [
    "context_from",
    "context_plain",
    "outcome_from",
    "outcome_plain",
    "proposal_from",
    "proposal_plain",
]

_SAME = ("seed", "intervals", "cadence", "trigger", "observation_version", "observation_layout")
"""Fields of a context that are plain as they are."""


def proposal_plain(proposal: Proposal | None) -> dict[str, Any] | None:
    """Return a proposal as plain data."""
    if proposal is None:
        return None
    if isinstance(proposal, Setting):
        return {"scheme": proposal.table.scheme, "si": list(proposal.values_si)}
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
    values = value.get("si") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(values, list):
        raise ConfigError(f"expected a setting; got {quote(value)}")
    return Setting(tuple(values), named_table(str(value.get("scheme"))))


def context_plain(context: TunerContext) -> dict[str, Any]:
    """Return a context as plain data; ConfigError if its knob table belongs to no scheme."""
    scheme = context.space.table.scheme
    named_table(scheme).require(context.base, "a tuner in a process of its own")
    return {
        **{name: getattr(context, name) for name in _SAME},
        "scheme": scheme,
        "knobs": list(context.space.knobs),
        "line_rate_bps": context.space.line_rate_bps,
        "base": proposal_plain(context.base),
        "observation": _numbers(context.observation),
        "groups": list(context.groups),
        "devices": _devices_plain(context.devices),
    }


def context_from(value: Mapping[str, Any]) -> TunerContext:
    """Return the context that :func:`context_plain` wrote."""
    return TunerContext(
        **{name: value[name] for name in _SAME},
        space=KnobSpace(value["knobs"], value["line_rate_bps"], named_table(value["scheme"])),
        base=_setting(value["base"]),
        observation=_observation(value["observation"]),
        groups=tuple(value["groups"]),
        devices=_devices(value["devices"]),
    )


def outcome_plain(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data."""
    terms = outcome.terms
    return {
        "setting": proposal_plain(outcome.setting),
        "utility": outcome.utility,
        "terms": [terms.tp, terms.rtt, terms.pfc],
        "observation": _numbers(outcome.observation),
        "report": report_to_dict(outcome.report),
        "intervals": outcome.intervals,
        "triggered": outcome.triggered,
    }


def outcome_from(value: Mapping[str, Any]) -> Outcome:
    """Return the outcome that :func:`outcome_plain` wrote."""
    setting = proposal_from(value["setting"])
    if setting is None:
        raise ConfigError("an outcome belongs to a setting; got none")
    return Outcome(
        setting=setting,
        utility=value["utility"],
        terms=Terms(*value["terms"]),
        observation=_observation(value["observation"]),
        report=report_from_dict(value["report"]),
        intervals=value["intervals"],
        triggered=value["triggered"],
    )


def _numbers(observation: Observation) -> list[float]:
    """Return float32 numbers as the doubles that they are, which JSON writes to the bit."""
    return [float(number) for number in observation]


def _observation(numbers: list[float]) -> Observation:
    return np.array(numbers, dtype=np.float32)


def _devices_plain(devices: Devices | None) -> dict[str, Any] | None:
    if devices is None:
        return None
    return {
        "n_hosts": devices.n_hosts,
        "port_node": [int(node) for node in devices.port_node],
        "port_index": [int(index) for index in devices.port_index],
        "tiers": [[int(node), int(tier)] for node, tier in devices.tiers.items()],
    }


def _devices(value: Mapping[str, Any] | None) -> Devices | None:
    if value is None:
        return None
    return replace(Devices(**value), tiers=dict(value["tiers"]))
