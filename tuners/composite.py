"""Several tuners on one network, each with devices and a view of its own.

A part is a name, its devices, a tuner and what that has in force there; :class:`CompositeTuner`
asks, tells and joins them. ``per-group`` gives a copy of a tuner to every group of devices, and all
copies the utility of the whole network. ``clusters`` gives one to every cluster, which sees its own
traffic and weighs it by weights of its own: PARALEON (ICNP'24) has one controller for everything.
``two-sides`` has one tuner for the switches and another for the NICs, as schemes are made for one
side: ACC beside PARALEON. They know nothing of each other. Ours.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.agents import Agent, agents_of
from dcqcn_gym.core.clusters import Cluster, part_of
from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.group_space import GroupSpace, tiers_of
from dcqcn_gym.core.groups import Devices, members
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import PfcOver, RttBase, UtilityWeights, judge
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings


def tuner_inside(owner: Tuner[Any], setting: str = "tuner") -> Tuner[Any]:
    """Return a fresh tuner that a setting of ``owner`` names; ``owner.holds`` has to list it.

    Raises as :func:`dcqcn_gym.tuners.make_tuner` does.
    """
    make = importlib.import_module("dcqcn_gym.tuners").make_tuner  # which knows its owner, too
    arguments = getattr(owner.settings, owner.holds[setting])
    found: Tuner[Any] = make(getattr(owner.settings, setting), dict(arguments))
    return found


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


@dataclass
class Part:
    """One tuner of several: the groups of devices that it sets, and what it has in force there."""

    name: str
    space: KnobSpace
    tuner: Tuner[Any]
    chosen: dict[str, Setting]


class CompositeTuner(Tuner[Proposal]):
    """Asks, tells and joins its parts; a subclass says which there are and what each sees."""

    endless: ClassVar[tuple[str, ...]] = ()
    """Tuners that hold further ones of their kind, and so cannot be parts."""

    @abstractmethod
    def _parts_of(self, context: TunerContext) -> Iterator[Part]:
        """Yield the parts, their tuners not yet started."""

    def start(self, context: TunerContext) -> None:
        """Start every part with a seed of its own; one that holds itself is refused."""
        super().start(context)
        for setting in self.holds:
            inside = getattr(self.settings, setting)
            if inside in self.endless:
                raise ConfigError(f"tuner {self.name!r}: {quote(inside)} inside it has no end")
        self._parts: list[Part] = []
        for i, part in enumerate(self._parts_of(context)):
            seed = int(context.generator(1 + i).integers(2**31))
            own = replace(context, space=part.space, seed=seed, groups=())
            part.tuner.start(self._shown(own))
            self._parts.append(part)

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
        """Tell every part what it sees of the outcome."""
        super().tell(outcome)
        for part in self._parts:
            part.tuner.tell(self._seen(part, outcome))

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

    def _seen(self, part: Part, outcome: Outcome) -> Outcome:
        """Return what a part sees: the whole network, under its own setting."""
        return replace(outcome, setting=next(iter(part.chosen.values())))

    def _taken(self, part: Part, answer: Proposal) -> dict[str, Setting]:
        """Return a proposal by the groups of the part; one setting for all of them."""
        if isinstance(answer, Setting):
            return dict.fromkeys(part.chosen, answer)
        raise ConfigError(
            f"tuner {self.name!r}: {quote(part.tuner.name)} itself proposes a setting per group; "
            "expected one that proposes one setting"
        )

    def _joined(self, chosen: list[dict[str, Setting]]) -> Proposal:
        return {"cluster": self.context.base, **{g: s for own in chosen for g, s in own.items()}}

    def _devices(self, context: TunerContext) -> Devices:
        if context.devices is None:
            raise ConfigError(f"tuner {self.name!r} has to know the network's devices")
        return context.devices

    def _agents(
        self, spec: Mapping[str, tuple[str, ...]], context: TunerContext
    ) -> tuple[Agent, ...]:
        space = context.space
        return agents_of(spec, self._devices(context), space.knobs, space.table)


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
    endless = ("per-group",)

    def _parts_of(self, context: TunerContext) -> Iterator[Part]:
        options = cast(_PerGroupSettings, self.settings)
        groups = options.groups or groups_apart(context)
        self._whole = GroupSpace(context.space, groups, context.devices)
        for group, space in self._whole.parts:
            yield Part(group, space, tuner_inside(self), {group: context.base})

    def _seen(self, part: Part, outcome: Outcome) -> Outcome:
        return replace(outcome, setting=self._whole.of(outcome.setting, part.name))

    def _joined(self, chosen: list[dict[str, Setting]]) -> Proposal:
        parts = {group: setting for own in chosen for group, setting in own.items()}
        return self._whole.joined(parts, self.context.base)


class _Weights(UtilityWeights):
    tp: float = Field(default=0.2, ge=0, le=1)
    rtt: float = Field(default=0.5, ge=0, le=1)
    pfc: float = Field(default=0.3, ge=0, le=1)


class _ClusterSettings(StrictModel):
    """``hosts`` are the first and the last one of a row of NICs, ``groups`` any other devices."""

    hosts: tuple[int, int] | None = None
    groups: tuple[str, ...] = ()
    weights: _Weights = _Weights()

    def names(self) -> tuple[str, ...]:
        """Return all groups of devices."""
        first, last = self.hosts or (0, -1)
        return (*(f"nic:{host}" for host in range(first, last + 1)), *self.groups)


class _ClustersSettings(TunerSettings):
    tuner: str = Field(default="paraleon", description="the tuner that every cluster gets")
    arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")
    clusters: dict[str, _ClusterSettings] = Field(
        default={},
        description='{"NAME": {"hosts": [first, last], "groups": ["switch:16"], "weights": '
        '{"tp": 0.2, "rtt": 0.5, "pfc": 0.3}}, ...}; none: one of all hosts, one of all switches',
    )


@dataclass
class _View:
    """What a cluster sees: its own part of every report, by its own weights."""

    cluster: Cluster
    weights: UtilityWeights
    active_share: float
    pfc_over: PfcOver
    rtt_base: RttBase
    fsd: FlowSizeDistribution = field(default_factory=lambda: FlowSizeDistribution(known=False))
    utility: float = 0.0


class ClustersTuner(CompositeTuner):
    """A copy of a tuner per cluster: own devices, own flow sizes, own weights.

    What no cluster holds stays as it starts.
    """

    name = "clusters"
    summary = "any tuner, once per cluster of devices, each by its own traffic and weights"
    Settings: ClassVar[type[TunerSettings]] = _ClustersSettings
    holds: ClassVar[Mapping[str, str]] = {"tuner": "arguments"}
    endless = ("clusters", "per-group")

    def _parts_of(self, context: TunerContext) -> Iterator[Part]:
        given = cast(_ClustersSettings, self.settings).clusters or {
            "hosts": _ClusterSettings(groups=("hosts",)),
            "switches": _ClusterSettings(groups=("switches",)),
        }
        named = {name: one.names() for name, one in given.items()}
        ports = self._devices(context).port_node
        rules = (context.active_share, context.pfc_over, context.rtt_base)
        self._views: dict[str, _View] = {}
        for agent in self._agents(named, context):
            weights = given[agent.name].weights
            self._views[agent.name] = _View(Cluster.of(agent, ports), weights, *rules)
            chosen = dict.fromkeys(agent.groups, context.base)
            yield Part(agent.name, context.space.part(agent.knobs), tuner_inside(self), chosen)

    def _seen(self, part: Part, outcome: Outcome) -> Outcome:
        view = self._views[part.name]
        report = part_of(outcome.report, view.cluster, view.fsd)
        view.fsd = report.fsd
        found = judge(report, view)
        view.utility = found.utility
        own = super()._seen(part, outcome)
        return replace(own, utility=found.utility, terms=found.terms, report=report)

    def state(self) -> dict[str, Any]:
        """Return utility, share of elephants and state of every cluster by its name."""
        return {
            name: {
                "utility": self._views[name].utility,
                "elephant_share": self._views[name].fsd.elephant_share,
                **state,
            }
            for name, state in super().state().items()
        }


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
    endless = ("two-sides",)

    def _parts_of(self, context: TunerContext) -> Iterator[Part]:
        for agent in self._agents({side: (side,) for side in self.holds}, context):
            space = context.space.part(agent.knobs)
            chosen = {agent.name: context.base}
            yield Part(agent.name, space, tuner_inside(self, agent.name), chosen)

    def _shown(self, context: TunerContext) -> TunerContext:
        return context

    def _seen(self, part: Part, outcome: Outcome) -> Outcome:
        if len(part.chosen) == 1:
            return super()._seen(part, outcome)
        return replace(outcome, setting={"cluster": self.context.base, **part.chosen})

    def _taken(self, part: Part, answer: Proposal) -> dict[str, Setting]:
        """Return a proposal by groups, the side's first; refuse devices of the other side."""
        if isinstance(answer, Setting):
            return {part.name: answer}
        groups = dict(answer)
        whole = groups.pop("cluster", part.chosen[part.name])
        whole = groups.pop(part.name, whole)
        for group in groups:
            hosts, ports = members(group, self._devices(self.context))
            if hosts if part.name == "switches" else ports:
                raise ConfigError(
                    f"{quote(part.tuner.name)} acts on the {part.name} "
                    f"alone, and proposes a setting for {quote(group)}"
                )
        return {part.name: whole, **groups}
