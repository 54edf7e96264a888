"""Several controllers on one network: any tuner, once per group of devices.

Each copy sees the utility of the whole network, has its own random numbers, and turns the knobs of
its group alone. They know nothing of each other; ``paraleon-tiers`` and ``cmaes-tiers`` search all
groups together. Ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.group_space import GroupSpace
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.inside import tuner_inside
from dcqcn_gym.tuners.per_tier import groups_apart

__all__ = ["PerGroupTuner"]


class _PerGroupSettings(TunerSettings):
    tuner: str = Field(default="paraleon", description="the tuner that every group gets")
    arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")
    groups: tuple[str, ...] = Field(
        default=(), description='the groups, as ["tor-uplinks", "spine"]; none: see paraleon-tiers'
    )


@dataclass
class _Controller:
    """One copy of the tuner and what it has in force."""

    group: str
    tuner: Tuner[Any]
    setting: Setting


class PerGroupTuner(Tuner[Proposal]):
    """One tuner per group of devices, and one for what no group holds (``cluster``)."""

    name = "per-group"
    summary = "any tuner, once per group of devices, each on its own"
    needs = frozenset({"fsd"})
    Settings: ClassVar[type[TunerSettings]] = _PerGroupSettings
    holds: ClassVar[Mapping[str, str]] = {"tuner": "arguments"}

    def start(self, context: TunerContext) -> None:
        """Start every copy with a seed of its own; a nested ``per-group`` is refused."""
        super().start(context)
        options = cast(_PerGroupSettings, self.settings)
        if options.tuner == self.name:
            raise ConfigError(f"tuner {self.name!r}: tuner = {quote(self.name)} has no end")
        groups = options.groups or groups_apart(context)
        self._space = GroupSpace(context.space, groups, context.devices)
        self._controllers: list[_Controller] = []
        for i, (group, space) in enumerate(self._space.parts):
            tuner = tuner_inside(self)
            seed = int(context.generator(1 + i).integers(2**31))
            tuner.start(replace(context, space=space, seed=seed, groups=(), devices=None))
            self._controllers.append(_Controller(group, tuner, context.base))

    def ask(self) -> Proposal | None:
        """Return what all copies propose, together; None if none of them wants a change."""
        answers = [(c, c.tuner.ask()) for c in self._controllers]
        for controller, answer in answers:
            if answer is not None:
                controller.setting = self._plain(controller, answer)
        if all(answer is None for _, answer in answers):
            return None
        return self._joined({c.group: c.setting for c in self._controllers})

    def tell(self, outcome: Outcome) -> None:
        """Tell every copy what the network did under its own setting and all others."""
        super().tell(outcome)
        for controller in self._controllers:
            own = self._space.of(outcome.setting, controller.group)
            controller.tuner.tell(replace(outcome, setting=own))

    @property
    def tuning(self) -> bool:
        """True while any copy is."""
        return any(c.tuner.tuning for c in self._controllers)

    def recommend(self) -> Proposal:
        """Return what every copy recommends for its group."""
        found = {c.group: self._plain(c, c.tuner.recommend()) for c in self._controllers}
        return self._joined(found)

    def state(self) -> dict[str, Any]:
        """Return every copy's state by its group."""
        return {c.group: c.tuner.state() for c in self._controllers}

    def _joined(self, parts: dict[str, Setting]) -> Proposal:
        return self._space.joined(parts, self.context.base)

    def _plain(self, controller: _Controller, answer: Proposal) -> Setting:
        if isinstance(answer, Setting):
            return answer
        name = cast(_PerGroupSettings, self.settings).tuner
        raise ConfigError(
            f"tuner {self.name!r}: {quote(name)} itself proposes a setting per group; expected one "
            "that proposes one setting"
        )
