"""Several controllers on one network, each with its own devices, flow sizes and weights.

The clusters of one fabric run different jobs: each controller is a copy of a tuner that sees the
throughput, round trips, pauses and flow sizes of its own hosts and switches, weighs them by its own
weights and sets its own devices. What no cluster holds stays as it starts. Ours; PARALEON (ICNP'24)
has one controller for everything. ``per-group`` is the same with one utility for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.agents import Agent, agents_of, joint_setting
from dcqcn_gym.core.clusters import Cluster, part_of
from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.interval import FlowSizeDistribution, IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.utility import PfcOver, RttBase, judge
from dcqcn_gym.core.weights import UtilityWeights
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.inside import tuner_inside

__all__ = ["ClustersTuner"]


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


@dataclass(frozen=True)
class _Rules:
    """A cluster's own weights, and the scenario's rules for the three terms."""

    weights: UtilityWeights
    active_share: float
    pfc_over: PfcOver
    rtt_base: RttBase

    @classmethod
    def of(cls, weights: UtilityWeights, context: TunerContext) -> _Rules:
        """Return the rules of one cluster."""
        return cls(weights, context.active_share, context.pfc_over, context.rtt_base)


@dataclass
class _Controller:
    agent: Agent
    part: Cluster
    tuner: Tuner[Any]
    rules: _Rules
    setting: Setting
    fsd: FlowSizeDistribution = field(default_factory=lambda: FlowSizeDistribution(known=False))
    utility: float = 0.0

    def seen(self, report: IntervalReport) -> IntervalReport:
        """Return the report of its own part, and keep its distribution."""
        own = part_of(report, self.part, self.fsd)
        self.fsd = own.fsd
        return own


class ClustersTuner(Tuner[Proposal]):
    """A copy of a tuner per cluster: own devices, own flow sizes, own weights."""

    name = "clusters"
    summary = "any tuner, once per cluster of devices, each by its own traffic and weights"
    Settings: ClassVar[type[TunerSettings]] = _ClustersSettings
    holds: ClassVar[Mapping[str, str]] = {"tuner": "arguments"}

    def start(self, context: TunerContext) -> None:
        """Start every copy with a seed of its own; clusters that share a device are refused."""
        super().start(context)
        options = cast(_ClustersSettings, self.settings)
        if context.devices is None:
            raise ConfigError(f"tuner {self.name!r} has to know the network's devices")
        if options.tuner in (self.name, "per-group"):
            raise ConfigError(f"tuner {self.name!r}: tuner = {quote(options.tuner)} has no end")
        given = options.clusters or {
            "hosts": _ClusterSettings(groups=("hosts",)),
            "switches": _ClusterSettings(groups=("switches",)),
        }
        named = {name: one.names() for name, one in given.items()}
        agents = agents_of(named, context.devices, context.space.knobs, context.space.table)
        self._controllers = []
        for i, agent in enumerate(agents):
            space = context.space.part(agent.knobs)
            seed = int(context.generator(1 + i).integers(2**31))
            tuner = tuner_inside(self)
            tuner.start(replace(context, space=space, seed=seed, groups=(), devices=None))
            part = Cluster.of(agent, context.devices.port_node)
            rules = _Rules.of(given[agent.name].weights, context)
            self._controllers.append(_Controller(agent, part, tuner, rules, context.base))

    def ask(self) -> Proposal | None:
        """Return what all copies propose, together; None if none of them wants a change."""
        answers = [(c, c.tuner.ask()) for c in self._controllers]
        for controller, answer in answers:
            if answer is not None:
                controller.setting = self._plain(answer)
        if all(answer is None for _, answer in answers):
            return None
        return joint_setting(self.context.base, {c.agent: c.setting for c in self._controllers})

    def tell(self, outcome: Outcome) -> None:
        """Tell every copy what its own part did in the last interval, by its own weights."""
        super().tell(outcome)
        for c in self._controllers:
            report = c.seen(outcome.report)
            found = judge(report, c.rules)
            c.utility = found.utility
            own = replace(outcome, setting=c.setting, utility=c.utility, terms=found.terms)
            c.tuner.tell(replace(own, report=report))

    @property
    def tuning(self) -> bool:
        """True while any copy is."""
        return any(c.tuner.tuning for c in self._controllers)

    def recommend(self) -> Proposal:
        """Return what every copy recommends for its own devices."""
        found = {c.agent: self._plain(c.tuner.recommend()) for c in self._controllers}
        return joint_setting(self.context.base, found)

    def state(self) -> dict[str, Any]:
        """Return utility, share of elephants and state of every cluster by its name."""
        return {
            c.agent.name: {
                "utility": c.utility,
                "elephant_share": c.fsd.elephant_share,
                **c.tuner.state(),
            }
            for c in self._controllers
        }

    def _plain(self, answer: Proposal) -> Setting:
        if isinstance(answer, Setting):
            return answer
        name = cast(_ClustersSettings, self.settings).tuner
        raise ConfigError(
            f"tuner {self.name!r}: {quote(name)} itself proposes a setting per group; expected one "
            "that proposes one setting"
        )
