"""Several tuners on one network, each with devices of its own; they know nothing of each other.

``per-group`` gives a copy of a tuner to every group of devices, and all copies the utility of the
whole network: PARALEON (ICNP'24) has one controller for everything. ``two-sides`` has one tuner for
the switches and another for the NICs, as schemes are made for one side: ACC beside PARALEON. Ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.group_space import GroupSpace
from dcqcn_gym.core.groups import Devices, members
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings


def tuner_inside(owner: Tuner[Any], setting: str = "tuner") -> Tuner[Any]:
    """Return a fresh tuner that a setting of ``owner`` names; ``owner.holds`` has to list it.

    Raises as :func:`dcqcn_gym.tuners.make_tuner` does.
    """
    make = importlib.import_module("dcqcn_gym.tuners").make_tuner  # which knows its owner, too
    arguments = getattr(owner.settings, owner.holds[setting])
    found: Tuner[Any] = make(getattr(owner.settings, setting), dict(arguments))
    return found


@dataclass
class Part:
    """One tuner of several: the group of devices that it sets, and what it has in force there."""

    name: str
    tuner: Tuner[Any]
    chosen: dict[str, Setting]


class CompositeTuner(Tuner[Proposal]):
    """Asks, tells and joins a tuner for each group; a subclass says which, and what each sees."""

    def _groups(self, context: TunerContext) -> Sequence[str]:
        """Return the groups that have a tuner of their own."""
        raise NotImplementedError

    def _inside(self, group: str) -> str:
        """Return the setting that names the tuner of a group."""
        raise NotImplementedError

    def start(self, context: TunerContext) -> None:
        """Start every part with a seed of its own; one that holds its own kind is refused."""
        super().start(context)
        if any(getattr(self.settings, setting) == self.name for setting in self.holds):
            raise ConfigError(f"tuner {self.name!r}: {quote(self.name)} inside it has no end")
        self._whole = GroupSpace(context.space, self._groups(context), context.devices)
        self._parts: list[Part] = []
        for i, (group, space) in enumerate(self._whole.parts):
            tuner = tuner_inside(self, self._inside(group))
            seed = int(context.generator(1 + i).integers(2**31))
            tuner.start(self._shown(replace(context, space=space, seed=seed, groups=())))
            self._parts.append(Part(group, tuner, {group: context.base}))

    def ask(self) -> Proposal | None:
        """Return what all parts propose, together; None if none of them wants a change."""
        answers = [(part, part.tuner.ask()) for part in self._parts]
        for part, answer in answers:
            if answer is not None:
                part.chosen = self._taken(part, answer)
        if all(answer is None for _, answer in answers):
            return None
        return self._joined([part.chosen for part in self._parts])

    def tell(self, outcome: Outcome) -> None:
        """Tell every part what the network did under its own setting."""
        super().tell(outcome)
        for part in self._parts:
            part.tuner.tell(replace(outcome, setting=self._seen(part, outcome)))

    @property
    def tuning(self) -> bool:
        """True while any part is."""
        return any(part.tuner.tuning for part in self._parts)

    def recommend(self) -> Proposal:
        """Return what every part recommends for its own devices."""
        return self._joined([self._taken(p, p.tuner.recommend()) for p in self._parts])

    def state(self) -> dict[str, Any]:
        """Return the state of every part by its name."""
        return {part.name: part.tuner.state() for part in self._parts}

    def _shown(self, context: TunerContext) -> TunerContext:
        """Return what a part may know at the start: nothing of other devices."""
        return replace(context, devices=None)

    def _seen(self, part: Part, outcome: Outcome) -> Proposal:
        return self._whole.of(outcome.setting, part.name)

    def _taken(self, part: Part, answer: Proposal) -> dict[str, Setting]:
        """Return a proposal by the groups of the part."""
        if isinstance(answer, Setting):
            return {part.name: answer}
        raise ConfigError(
            f"tuner {self.name!r}: {quote(part.tuner.name)} itself proposes a setting per group; "
            "expected one that proposes one setting"
        )

    def _joined(self, chosen: Sequence[Mapping[str, Setting]]) -> Proposal:
        parts = {group: setting for own in chosen for group, setting in own.items()}
        return self._whole.joined(parts, self.context.base)


class _PerGroupSettings(TunerSettings):
    tuner: str = Field(default="paraleon", description="the tuner that every group gets")
    arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")
    groups: tuple[str, ...] = Field(
        default=(), description='the groups, as ["tor-uplinks", "spine"]; none: see paraleon-tiers'
    )


class PerGroupTuner(CompositeTuner):
    """One tuner per group of devices, and one for what no group holds (``cluster``)."""

    name = "per-group"
    summary = "any tuner, once per group of devices, each on its own"
    needs = frozenset({"fsd"})
    Settings: ClassVar[type[TunerSettings]] = _PerGroupSettings
    holds: ClassVar[Mapping[str, str]] = {"tuner": "arguments"}

    def _groups(self, context: TunerContext) -> Sequence[str]:
        return cast(_PerGroupSettings, self.settings).groups or context.groups_apart()

    def _inside(self, group: str) -> str:
        return "tuner"


class _TwoSidesSettings(TunerSettings):
    switches: str = Field(default="acc", description="the tuner of the switches")
    switch_arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")
    hosts: str = Field(default="paraleon", description="the tuner of the NICs")
    host_arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")


class TwoSidesTuner(CompositeTuner):
    """A tuner for the switches beside a tuner for the NICs; each may set groups of its side apart.

    Both see the whole network's utility and reports.
    """

    name = "two-sides"
    summary = "one tuner for the switches, another for the NICs: ACC beside PARALEON"
    needs = frozenset({"fsd", "per_switch"})
    Settings: ClassVar[type[TunerSettings]] = _TwoSidesSettings
    holds: ClassVar[Mapping[str, str]] = {
        "switches": "switch_arguments",
        "hosts": "host_arguments",
    }

    def _groups(self, context: TunerContext) -> Sequence[str]:
        return tuple(self.holds)

    def _inside(self, group: str) -> str:
        return group

    def _shown(self, context: TunerContext) -> TunerContext:
        return context

    def _seen(self, part: Part, outcome: Outcome) -> Proposal:
        if len(part.chosen) == 1:
            return part.chosen[part.name]
        return {"cluster": self.context.base, **part.chosen}

    def _taken(self, part: Part, answer: Proposal) -> dict[str, Setting]:
        """Return a proposal by groups, the side's first; refuse devices of the other side."""
        if isinstance(answer, Setting):
            return {part.name: answer}
        groups = dict(answer)
        whole = groups.pop("cluster", part.chosen[part.name])
        whole = groups.pop(part.name, whole)
        for group in groups:
            hosts, ports = members(group, cast(Devices, self.context.devices))
            if hosts if part.name == "switches" else ports:
                raise ConfigError(
                    f"{quote(part.tuner.name)} acts on the {part.name} "
                    f"alone, and proposes a setting for {quote(group)}"
                )
        return {part.name: whole, **groups}
