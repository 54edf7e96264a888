"""One tuner for the switches and another for the NICs of the same network.

ACC sets the marking curve of every switch port while PARALEON turns the NICs' knobs: schemes that
are made for one side combine. Each side knows its own devices and setting; both see the whole
network's utility and reports. Ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.agents import Agent, agents_of
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.groups import Devices, members
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.inside import tuner_inside

__all__ = ["TwoSidesTuner"]

SIDES = ("switches", "hosts")


class _TwoSidesSettings(TunerSettings):
    switches: str = Field(default="acc", description="the tuner of the switches")
    switch_arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")
    hosts: str = Field(default="paraleon", description="the tuner of the NICs")
    host_arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")


@dataclass
class _Side:
    """The tuner of one side, and what it has in force: a setting per group, the side's first."""

    agent: Agent
    tuner: Tuner[Any]
    chosen: dict[str, Setting]

    def take(self, answer: Proposal, devices: Devices) -> None:
        """Keep a proposal; raise ConfigError for one that sets devices of the other side."""
        if isinstance(answer, Setting):
            self.chosen = {self.agent.name: answer}
            return
        parts = dict(answer)
        whole = parts.pop("cluster", self.chosen[self.agent.name])
        whole = parts.pop(self.agent.name, whole)
        for group in parts:
            hosts, ports = members(group, devices)
            if hosts if self.agent.switches else ports:
                raise ConfigError(
                    f"{quote(self.tuner.name)} acts on the {self.agent.name} "
                    f"alone, and proposes a setting for {quote(group)}"
                )
        self.chosen = {self.agent.name: whole, **parts}


class TwoSidesTuner(Tuner[Proposal]):
    """A tuner for the switches beside a tuner for the NICs."""

    name = "two-sides"
    summary = "one tuner for the switches, another for the NICs: ACC beside PARALEON"
    needs = frozenset({"fsd", "per_switch"})
    Settings: ClassVar[type[TunerSettings]] = _TwoSidesSettings
    holds: ClassVar[Mapping[str, str]] = {
        "switches": "switch_arguments",
        "hosts": "host_arguments",
    }

    def start(self, context: TunerContext) -> None:
        """Start both with a seed of their own; raise ConfigError for a tuner inside itself."""
        super().start(context)
        options = cast(_TwoSidesSettings, self.settings)
        if context.devices is None:
            raise ConfigError(f"tuner {self.name!r} has to know the network's devices")
        if self.name in (options.switches, options.hosts):
            raise ConfigError(f"tuner {self.name!r}: {quote(self.name)} inside it has no end")
        whole = context.space
        agents = agents_of(SIDES, context.devices, whole.knobs, whole.table)
        self._sides: list[_Side] = []
        for i, (agent, side) in enumerate(zip(agents, SIDES, strict=True)):
            tuner = tuner_inside(self, side)
            space = whole.part(agent.knobs)
            seed = int(context.generator(1 + i).integers(2**31))
            tuner.start(replace(context, space=space, seed=seed, groups=()))
            self._sides.append(_Side(agent, tuner, {agent.name: context.base}))

    def ask(self) -> Proposal | None:
        """Return what both propose, together; None if neither wants a change."""
        answers = [(side, side.tuner.ask()) for side in self._sides]
        for side, answer in answers:
            if answer is not None:
                side.take(answer, self._devices)
        if all(answer is None for _, answer in answers):
            return None
        return self._joined(self._sides)

    def tell(self, outcome: Outcome) -> None:
        """Tell both what the network did under their own settings."""
        super().tell(outcome)
        for side in self._sides:
            own: Proposal = side.chosen[side.agent.name]
            if len(side.chosen) > 1:
                own = {"cluster": self.context.base, **side.chosen}
            side.tuner.tell(replace(outcome, setting=own))

    @property
    def tuning(self) -> bool:
        """True while either is."""
        return any(side.tuner.tuning for side in self._sides)

    def recommend(self) -> Proposal:
        """Return what each recommends for its side."""
        found = []
        for side in self._sides:
            final = replace(side, chosen=dict(side.chosen))
            final.take(side.tuner.recommend(), self._devices)
            found.append(final)
        return self._joined(found)

    def state(self) -> dict[str, Any]:
        """Return the state of each side."""
        return {side.agent.name: side.tuner.state() for side in self._sides}

    @property
    def _devices(self) -> Devices:
        return cast(Devices, self.context.devices)

    def _joined(self, sides: list[_Side]) -> Proposal:
        return {"cluster": self.context.base, **{k: v for s in sides for k, v in s.chosen.items()}}
