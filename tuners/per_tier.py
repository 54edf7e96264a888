"""Which groups a tuner sets apart when it is asked to."""

from __future__ import annotations

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.group_space import tiers_of
from dcqcn_gym.tuners.base import TunerContext

__all__ = ["groups_apart"]


def groups_apart(context: TunerContext) -> tuple[str, ...]:
    """Return the groups of the scenario, or else the tiers of the network.

    Raises :class:`ConfigError` if nobody knows which devices there are.
    """
    if context.groups:
        return context.groups
    if context.devices is None:
        raise ConfigError(
            "this tuner sets groups apart itself and has to know the network's devices; it cannot "
            "be one of the copies of 'per-group'"
        )
    return tiers_of(context.devices)
