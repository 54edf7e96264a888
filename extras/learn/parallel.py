"""The multi-agent interface: a PettingZoo ``ParallelEnv`` with one agent per switch, port or NIC.

docs/reference/multiagent.md describes agents, spaces and rewards. PettingZoo is the extra
``multiagent``; :class:`AgentsEnv` does everything without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.agents import Agent, AgentSpec, agents_of, joint_setting
from dcqcn_gym.core.errors import (
    ConfigError,
    MissingExtraError,
    StateError,
    UnknownNameError,
    quote,
)
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import KnobTable, Setting
from dcqcn_gym.core.port_view import FIGURES, Past, PortView
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.utility import judge
from dcqcn_gym.envs.backends import Backend, make_backend
from dcqcn_gym.envs.backends.base import is_over
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

Observation = npt.NDArray[np.float32]
Infos = dict[str, dict[str, Any]]


@dataclass
class _Episode:
    """What changes while an episode runs."""

    past: Past
    setting: DeviceSetting
    chosen: dict[Agent, Setting]
    shown: npt.NDArray[np.float32]
    steps: int = 0
    over: bool = False
    reports: tuple[IntervalReport, ...] = field(default=())


@dataclass(frozen=True)
class Reward:
    """What an agent is paid: its own reward, the utility of the network, or some of both."""

    throughput_weight: float = 0.5
    """Of its own one (:class:`~dcqcn_gym.core.port_view.PortView`)."""
    shared: float = 0.0
    """Share of the network's utility, 0 to 1."""


class AgentsEnv:
    """DCQCN tuning by several agents at once; :func:`parallel_env` makes PettingZoo's of it.

    ``agents`` is ``"switch"``, ``"port"``, ``"nic"``, a list of groups of devices, or a table of
    names and groups (:data:`dcqcn_gym.core.agents.AgentSpec`); their order is fixed. Those of the
    first three are named ``switch_0``, ``switch_1``, ...; ``members`` has their groups. Devices
    without an agent stay at the scenario's initial setting. ``scenario``, ``backend`` and
    ``intervals`` are those of :class:`~dcqcn_gym.envs.dcqcn.DcqcnEnv`.

    One step lasts ``decision_us`` microseconds, a divisor or a multiple of the monitor interval
    (default: ``cadence`` of these). The network reports after each decision, and after each monitor
    interval of a longer one; figures of a shorter one, its flow sizes too, are of that time alone.

    Action: a box in -1..1, one number per knob of the agent (its scenario's knobs that its devices
    have), decoded as in DcqcnEnv. With ``templates``, a list of settings by knob in NVIDIA's units,
    it is ``Discrete(len(templates))`` and names one of them.
    Observation: ``history`` intervals, the newest first, each with :data:`FIGURES` and the
    setting that was in force: its place in the action box, or the template as its share of the list
    (0 the first, 1 the last; -1: not one of them). What has not happened yet is 0.
    Reward: what :class:`Reward` says, a mean over the intervals of a step.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "dcqcn_v0",
        "render_modes": [],
        "is_parallelizable": True,
    }
    render_mode = None

    def __init__(
        self,
        scenario: str | Path | Scenario = "fb-hadoop",
        backend: str | Backend = "native",
        *,
        agents: AgentSpec = "switch",
        intervals: int | None = None,
        decision_us: float | None = None,
        history: int = 4,
        reward: Reward = Reward(),
        templates: Sequence[Mapping[str, float]] | None = None,
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        self.backend = make_backend(backend) if isinstance(backend, str) else backend
        if "per_switch" not in self.backend.offers:
            raise ConfigError(f"backend {quote(backend)} does not show figures of switch ports")
        self._set_time(self.scenario.intervals if intervals is None else intervals, decision_us)
        _check_number("history", history, 1, 64, whole=True)
        _check_number("shared", reward.shared, 0, 1)
        self.history, self.shared = int(history), float(reward.shared)
        self.initial_setting = self.scenario.initial_setting()
        table = self.initial_setting.table
        knobs = self.scenario.turned if templates is None else _knobs_of(templates)
        self.members = agents_of(agents, self.scenario.fabric.devices, knobs, table)
        if isinstance(agents, str):  # named as PettingZoo's tools expect it
            self.members = tuple(
                replace(agent, name=f"{agents}_{i}") for i, agent in enumerate(self.members)
            )
        self.view = PortView(self.members, reward.throughput_weight)
        self.templates = self._settings(templates)
        self._space = {} if self.templates else self._spaces_of(table)
        self.possible_agents = [a.name for a in self.members]
        self.agents: list[str] = []
        self._row = {name: i for i, name in enumerate(self.possible_agents)}
        self._shown = 1 if self.templates else max(len(a.knobs) for a in self.members)
        self._make_spaces()
        self._episode: _Episode | None = None
        self._random: np.random.Generator | None = None

    def _spaces_of(self, table: KnobTable) -> dict[tuple[str, ...], KnobSpace]:
        """Return the space of every list of knobs that an agent has, as parts of the scenario's."""
        scenario = self.scenario
        whole = KnobSpace(scenario.turned, scenario.line_rate_bps, table, scenario.ranges)
        return {agent.knobs: whole.part(agent.knobs) for agent in self.members}

    def _set_time(self, intervals: int, decision_us: float | None) -> None:
        """Fix how long a step is, after how long the network reports, how many steps there are."""
        _check_number("intervals", intervals, 1, 2**40, whole=True)
        if decision_us is not None:
            _check_number("decision_us", decision_us, 1e-3, 1e12)
        length = self.scenario.monitor_interval_ps
        decision = self.scenario.cadence * length if decision_us is None else us_to_ps(decision_us)
        if length % decision and decision % length:
            raise ConfigError(
                f"decision_us = {decision_us}: expected a divisor or a multiple of the monitor "
                f"interval, {self.scenario.monitor_interval_us:g} us"
            )
        self._report_ps = min(decision, length)
        self._reports = decision // self._report_ps
        self.steps = -(-int(intervals) * length // decision)

    def _settings(self, templates: Sequence[Mapping[str, float]] | None) -> tuple[Setting, ...]:
        rate = self.scenario.line_rate_bps
        return tuple(
            self.initial_setting.replace(dict(t)).check(rate, f"templates[{i}]")
            for i, t in enumerate(templates or ())
        )

    def _make_spaces(self) -> None:
        spaces = gymnasium.spaces
        self._actions: dict[str, gymnasium.Space[Any]] = {}
        self._observations: dict[str, gymnasium.Space[Any]] = {}
        for agent in self.members:
            n = len(self.templates)
            box = spaces.Box(-1.0, 1.0, (len(agent.knobs),), np.float32)
            self._actions[agent.name] = spaces.Discrete(n) if n else box
            low = np.full((self.history, self._slots(agent)), -1.0, np.float32)
            low[:, : len(FIGURES)] = 0.0
            flat = low.ravel()
            self._observations[agent.name] = spaces.Box(flat, np.ones_like(flat), dtype=np.float32)

    def _slots(self, agent: Agent) -> int:
        return len(FIGURES) + (1 if self.templates else len(agent.knobs))

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's observation space, always the same object."""
        return self._of(self._observations, agent)

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Return an agent's action space, always the same object."""
        return self._of(self._actions, agent)

    def _of(self, spaces: Mapping[str, gymnasium.Space[Any]], agent: str) -> gymnasium.Space[Any]:
        if agent not in spaces:
            raise UnknownNameError("agent", str(agent), self.possible_agents)
        return spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], Infos]:
        """Start an episode: build the network, run the warm-up, return what the agents see.

        ``seed`` is the traffic seed, as in DcqcnEnv: the same seed gives the same bytes, and
        without one the next draw follows from the last that was given (0 at first). There are no
        ``options``; PettingZoo's own test wants any to be taken.
        """
        if seed is not None:
            _check_number("seed", seed, 0, 2**64 - 1, whole=True)
        if seed is not None or self._random is None:
            self._random = np.random.Generator(np.random.PCG64(seed or 0))
            traffic = int(seed or 0)
        else:
            traffic = int(self._random.integers(2**32))
        self._episode, self.agents = None, []
        self.backend.close()
        self.backend.open(self.scenario, traffic)
        self.backend.apply(self.initial_setting)
        chosen = dict.fromkeys(self.members, self.initial_setting)
        past = Past(len(self.members), self.history, self._shown)
        shown = np.zeros((len(self.members), self._shown), np.float32)
        self._episode = episode = _Episode(past, self.initial_setting, chosen, shown)
        for i, agent in enumerate(self.members):
            self._show(episode, i, agent, self.initial_setting)
        whole, rest = divmod(self.scenario.warmup_ps, self._report_ps)
        for span in [rest] * bool(rest) + [self._report_ps] * whole:
            self._remember(episode, self.backend.advance(span))
        self.agents = list(self.possible_agents)
        return self._observe(episode), {name: {} for name in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Put every agent's action in force together and run one decision period.

        Each info has ``own`` (the agent's own reward) and ``utility`` (of the network). Raises
        ConfigError for an unknown or a missing agent, another shape, NaN or infinity; the network
        is then as before.
        """
        episode = self._running()
        chosen = self._decoded(actions)
        self._put_in_force(episode, chosen)
        own, utilities = np.zeros(len(self.members)), []
        reports: list[IntervalReport] = []
        while len(reports) < self._reports and not (reports and is_over(self.backend, reports[-1])):
            report = self.backend.advance(self._report_ps)
            reports.append(report)
            self._remember(episode, report)
            own += self.view.rewards(report)
            utilities.append(judge(report, self.scenario).utility)
        episode.reports = tuple(reports)
        episode.steps += 1
        utility, own = mean(utilities), own / len(reports)
        done = is_over(self.backend, reports[-1])
        cut = episode.steps >= self.steps
        episode.over = done or cut
        names, self.agents = self.agents, [] if episode.over else self.agents
        rewards = (1.0 - self.shared) * own + self.shared * utility
        return (
            self._observe(episode),
            dict(zip(names, rewards.tolist(), strict=True)),
            dict.fromkeys(names, done),
            dict.fromkeys(names, cut),
            {n: {"own": r, "utility": utility} for n, r in zip(names, own.tolist(), strict=True)},
        )

    @property
    def setting(self) -> DeviceSetting:
        """The setting in force, per group of devices."""
        return self._running().setting

    @property
    def reports(self) -> tuple[IntervalReport, ...]:
        """The raw reports of the last step, in order."""
        return self._running(over=True).reports

    def state(self) -> Observation:
        """Return what all agents see, one after the other."""
        episode = self._running(over=True)
        return np.concatenate(list(self._observe(episode).values()))

    def render(self) -> None:
        """Draw nothing: there is no render mode."""

    def close(self) -> None:
        """Release the network; ``reset`` may follow."""
        self.backend.close()
        self._episode, self.agents = None, []

    def _running(self, *, over: bool = False) -> _Episode:
        if self._episode is None:
            raise StateError("the episode has not begun; call reset() first")
        if self._episode.over and not over:
            raise StateError("step() after the end of the episode; call reset() first")
        return self._episode

    def _decoded(self, actions: Mapping[str, Any]) -> dict[Agent, Setting]:
        """Return every agent's setting, or raise before anything has changed."""
        if not isinstance(actions, Mapping):
            raise ConfigError(
                f"actions: expected one per agent by its name, got {type(actions).__name__}"
            )
        for name in actions:
            if name not in self._row:
                raise UnknownNameError("agent in the actions", str(name), self.possible_agents)
        missing = [name for name in self.agents if name not in actions]
        if missing:
            raise ConfigError(
                f"the actions lack {len(missing)} of {len(self.agents)} agents "
                f"({quote(missing[0])} first); every agent must act"
            )
        return {agent: self._setting(agent, actions[agent.name]) for agent in self.members}

    def _setting(self, agent: Agent, action: Any) -> Setting:
        if not self.templates:
            try:
                return self._space[agent.knobs].setting(action, self.initial_setting)
            except (ConfigError, TypeError, ValueError) as error:
                raise ConfigError(f"agent {quote(agent.name)}: {error}") from None
        n = len(self.templates)
        number = np.asarray(action)
        if number.shape != () or number.dtype.kind not in "iu" or not 0 <= int(number) < n:
            raise ConfigError(
                f"agent {quote(agent.name)}: action {quote(action)}; expected a whole number in "
                f"0..{n - 1}"
            )
        return self.templates[int(number)]

    def _put_in_force(self, episode: _Episode, chosen: dict[Agent, Setting]) -> None:
        changed = [i for i, a in enumerate(self.members) if chosen[a] != episode.chosen[a]]
        if not changed:
            return
        setting = joint_setting(self.initial_setting, chosen)
        self.backend.apply(setting)
        episode.setting, episode.chosen = setting, chosen
        for i in changed:
            self._show(episode, i, self.members[i], chosen[self.members[i]])

    def _show(self, episode: _Episode, i: int, agent: Agent, setting: Setting) -> None:
        if not self.templates:
            place = self._space[agent.knobs].encode(setting)
            episode.shown[i, : len(agent.knobs)] = place
            return
        own = [tuple(s[k] for k in agent.knobs) for s in self.templates]
        now = tuple(setting[k] for k in agent.knobs)
        last = max(len(own) - 1, 1)
        episode.shown[i, 0] = own.index(now) / last if now in own else -1.0

    def _remember(self, episode: _Episode, report: IntervalReport) -> None:
        episode.past.add(self.view.figures(report), episode.shown)

    def _observe(self, episode: _Episode) -> dict[str, Observation]:
        return {
            agent.name: episode.past.rows[i, :, : self._slots(agent)].flatten()
            for i, agent in enumerate(self.members)
        }


def parallel_env(scenario: str | Path | Scenario = "fb-hadoop", **arguments: Any) -> Any:
    """Return a PettingZoo ``ParallelEnv``; the arguments are those of :class:`AgentsEnv`.

    Raises MissingExtraError without PettingZoo.
    """
    return _env_class()(scenario, **arguments)


@cache
def _env_class() -> Any:
    """Return the class; made here because its base is an optional package."""
    try:
        from pettingzoo import ParallelEnv
    except ImportError:
        raise MissingExtraError("dcqcn_gym.parallel_env", "multiagent") from None

    class DcqcnParallelEnv(AgentsEnv, ParallelEnv):  # type: ignore[type-arg, misc, unused-ignore]
        """An AgentsEnv that PettingZoo's tools know."""

    return DcqcnParallelEnv


def _knobs_of(templates: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    if len(templates) < 2 or any(set(t) != set(templates[0]) for t in templates):
        raise ConfigError("templates: expected at least two, all with the same knobs")
    return tuple(templates[0])


def _check_number(name: str, value: float, low: float, high: float, *, whole: bool = False) -> None:
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        expected = f"{low:g} to {high:g}" + (", a whole number" if whole else "")
        raise ConfigError(f"{name} = {quote(value)}: expected {expected}")  # NaN is in no range
