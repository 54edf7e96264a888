"""The environment: one step puts a DCQCN setting in force and runs the network for an interval.

docs/environment.md describes spaces, reward, episodes and seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.applications import ApplicationTracker
from dcqcn_gym.core.collectives import CollectiveRound, RoundTracker
from dcqcn_gym.core.errors import ConfigError, StateError, quote
from dcqcn_gym.core.groups import DeviceSetting, cluster_setting
from dcqcn_gym.core.interval import IntervalReport, LiveFlows, Observation
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.measured import Interval, measure
from dcqcn_gym.core.overhead import wire_cost
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.envs.backends import Backend, make_backend
from dcqcn_gym.envs.backends.base import is_over, live_flows_of
from dcqcn_gym.envs.info import Info, make_info
from dcqcn_gym.envs.observation import bounds, idle_observation, observe
from dcqcn_gym.envs.rendering import as_picture, as_text
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.workloads import applications_of, collectives_of

Action = npt.NDArray[np.float32]
Step = tuple[Observation, float, bool, bool, dict[str, Any]]


class BareStep(NamedTuple):
    """A step without ``info``, of which two figures are here."""

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    utility: float
    idle: bool


@dataclass
class _Episode:
    """What changes while an episode runs; ``last`` are the intervals of the last step."""

    seed: int
    setting: DeviceSetting
    collectives: RoundTracker
    applications: ApplicationTracker
    interval: int = 0
    over: bool = False
    last: tuple[Interval, ...] = ()
    begun: tuple[DeviceSetting, bool] | None = None
    """The setting of a step that :meth:`DcqcnEnv.begin` began, and whether it is another one."""


class DcqcnEnv(gymnasium.Env[Observation, Action]):
    """DCQCN tuning as a Gymnasium environment.

    ``scenario`` is a name, the path of a TOML file, or a Scenario; ``backend`` a name
    (``"native"``, ``"fake"``) or an object with the backend contract. ``intervals`` replaces the
    scenario's budget of monitor intervals, ``knobs`` the list of knobs that an action sets (the
    others stay at the scenario's initial setting). ``render_mode`` is None, ``"ansi"`` (one
    line of text) or ``"rgb_array"`` (a picture; needs the extra ``report``).

    Action: ``Box(-1, 1, (len(knobs),))``, decoded by :class:`~dcqcn_gym.core.space.KnobSpace`;
    every action is a valid setting. Observation: :func:`dcqcn_gym.envs.observation.layout`. Reward:
    the utility of the interval, in 0..1; with a cadence above 1, one step is so many intervals and
    the reward their mean. ``metadata["versions"]`` names the code: version and the engine's digest.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }

    def __init__(
        self,
        scenario: str | Path | Scenario = "fb-hadoop",
        backend: str | Backend = "native",
        *,
        intervals: int | None = None,
        knobs: Sequence[str] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        budget = self.scenario.intervals if intervals is None else intervals
        if not isinstance(budget, (int, np.integer)) or budget < 1:
            raise ConfigError(
                f"intervals = {quote(intervals)}: expected at least 1, a whole number"
            )
        self.intervals = int(budget)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(
                f"render_mode = {render_mode!r}: expected None, 'ansi' or 'rgb_array'"
            )
        self.render_mode = render_mode
        self.metadata = {**type(self).metadata, "versions": code_versions()}  # type: ignore[misc]
        self.initial_setting = self.scenario.initial_setting()
        self.space = KnobSpace(
            self.scenario.turned if knobs is None else tuple(knobs),
            self.scenario.line_rate_bps,
            self.initial_setting.table,
            self.scenario.ranges,
        )
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.space.n,), np.float32)
        self.observation_space = gymnasium.spaces.Box(*bounds(self.space.table), dtype=np.float32)
        self.backend = make_backend(backend) if isinstance(backend, str) else backend
        self.history: list[Info] = []
        """One info per step of the episode; stored only with ``render_mode="rgb_array"``."""
        self._episode: _Episode | None = None

    def __repr__(self) -> str:
        """Name what it is made of: scenario, backend, tuned knobs and length of an episode."""
        backend = type(self.backend).__name__
        return (
            f"<{type(self).__name__} {self.scenario.name!r} on {backend}, {self.space.n} knobs, "
            f"{self.intervals} intervals>"
        )

    @property
    def setting(self) -> Setting:
        """The setting in force (of the cluster, where groups have their own)."""
        if self._episode is None:
            return self.initial_setting
        return cluster_setting(self._episode.setting)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: build the network, run the warm-up, return what it looks like.

        ``seed`` is the traffic seed: the same seed gives the same bytes. Without one the traffic
        seed is the next draw of the generator that the last given seed started; an environment
        that was never given a seed behaves as if it had been given 0. ``options["setting"]``
        replaces the scenario's initial setting during the warm-up.
        """
        if seed is None and self._np_random is None:
            seed = 0
        super().reset(seed=seed)
        self._check_limit()
        traffic = int(self.np_random.integers(2**32)) if seed is None else int(seed)
        traced = (self.scenario.workloads, self.scenario.fabric)
        episode = _Episode(
            traffic,
            self._start_setting(options or {}),
            RoundTracker(collectives_of(*traced)),
            ApplicationTracker(applications_of(*traced)),
        )
        self._episode = None  # if the network cannot be built, no half-open episode is left
        self.history.clear()
        self.backend.close()
        self.backend.open(self.scenario, traffic)
        self.backend.apply(episode.setting)
        self._episode = episode
        episode.last = self._warm_up()
        info: dict[str, Any] = dict(self._info())
        if not episode.last:
            return idle_observation(self.setting, self.space), info
        return episode.last[-1].observation, info

    def step(self, action: npt.ArrayLike | DeviceSetting) -> Step:
        """Decode an action, put it in force and run ``scenario.cadence`` intervals.

        Numbers outside -1..1 are clipped to them. An explicit setting is taken as it is (the action
        wrappers pass one down). The reward is
        the mean utility of these intervals; observation, ``info["terms"]`` and
        ``info["utility"]`` are means over those with traffic. Raises ConfigError for a wrong
        shape, NaN or infinity.
        """
        return self._step(self._setting_of(action), self.scenario.cadence)

    def bare_step(self, action: npt.ArrayLike | DeviceSetting) -> BareStep:
        """Do what :meth:`step` does, without the cost of ``info``."""
        done = self._advance(self._setting_of(action), self.scenario.cadence, tuning=True)
        busy = [i.utility for i in done if not i.idle]
        reward = mean([i.utility for i in done])
        cut = self._running("step").interval >= self.intervals
        utility = mean(busy) if busy else reward
        return BareStep(_mean_observation(done), reward, self.done, cut, utility, not busy)

    def begin(self, action: npt.ArrayLike | DeviceSetting) -> Backend | None:
        """Put the setting of ``action`` in force and return the backend; then comes its step.

        In between the caller lets many networks run at once
        (:func:`dcqcn_gym.envs.backends.native.run_ahead`). None, and nothing happens, if this
        environment has to run its network itself. Called again, as after an error of another
        environment's, it begins anew: the last action counts.
        """
        if not getattr(self.backend, "can_run_ahead", False) or self.scenario.cadence != 1:
            return None
        episode, setting = self._running("step"), self._asked(action)
        # what an earlier begin put in force was never stepped: its dispatch still has to be counted
        changed = episode.begun is not None and episode.begun[1]
        episode.begun = (setting, self._put_in_force(setting) or changed)
        return self.backend

    def step_setting(self, setting: DeviceSetting | None, *, tuning: bool = True) -> Step:
        """Run one monitor interval under an explicit setting (None: the one in force).

        ``tuning=False`` says that nobody needs round trips and pauses of this interval unless the
        KL trigger fires in it: ``info`` counts the bytes on the wire by that.
        """
        if setting is None:
            setting = self._running("step").setting
        return self._step(self._checked(setting, "setting"), 1, tuning)

    def run_interval(self, setting: DeviceSetting, *, tuning: bool = True) -> Interval:
        """Run one monitor interval under a setting that was checked; the main path's step.

        What :meth:`step_setting` does, without Gymnasium's ``info`` and without a second check.
        """
        (interval,) = self._advance(setting, 1, tuning)
        return interval

    @property
    def done(self) -> bool:
        """True once a finite scenario has delivered everything; flows without an end go on."""
        last = self._running("done").last
        return is_over(self.backend, last[-1].report) if last else bool(self.backend.done)

    def left_over(self) -> tuple[LiveFlows, dict[int, int]] | None:
        """Return the flows and rounds of collectives ({workload: start in ps}) under way now.

        None if the backend cannot know them.
        """
        live = live_flows_of(self.backend)
        return (
            None if live is None else (live, self._running("left_over").collectives.running(live))
        )

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the episode so far as text or as an RGB picture, by ``render_mode``."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode: pass one to gymnasium.make")
            return None
        self._running("render")
        info = self._info()
        if self.render_mode == "ansi":
            return as_text(self.scenario.name, self.intervals, info)
        return as_picture(self.scenario.name, self.intervals, self.history or [info])

    def close(self) -> None:
        """Release the network; may be called again, and ``reset`` may follow."""
        self.backend.close()
        self._episode = None

    def _check_limit(self) -> None:
        """Raise ConfigError for a budget beyond the limit that an id was registered with."""
        registered = None if self.spec is None else gymnasium.registry.get(self.spec.id)
        if registered is not None and registered.max_episode_steps is not None:
            check_limit(self.intervals, self.scenario.cadence, registered.max_episode_steps)

    def _start_setting(self, options: Mapping[str, Any]) -> DeviceSetting:
        unknown = [name for name in options if name != "setting"]
        if unknown:
            raise ConfigError(f"reset option {unknown[0]!r} is unknown; the only one is 'setting'")
        if "setting" not in options:
            return self.initial_setting
        return self._checked(options["setting"], "options['setting']")

    def _checked(self, setting: DeviceSetting, where: str) -> DeviceSetting:
        groups = {where: setting} if isinstance(setting, Setting) else setting
        if not isinstance(groups, Mapping):
            raise ConfigError(f"{where}: expected a Setting or a mapping of group to Setting")
        cluster_setting(setting)
        for name, value in groups.items():
            if isinstance(value, Setting):  # the backend names groups that are not
                value.check(self.space.line_rate_bps, name)
        return setting

    def _running(self, call: str) -> _Episode:
        if self._episode is None:
            raise StateError(f"{call}() before the episode began; call reset() first")
        return self._episode

    def _warm_up(self) -> tuple[Interval, ...]:
        """Run the warm-up in monitor intervals; return the last one, the first observation."""
        length = self.scenario.monitor_interval_ps
        whole, rest = divmod(self.scenario.warmup_ps, length)
        last: Interval | None = None
        rounds: list[CollectiveRound] = []
        # the odd part comes first, so that the observation is of a whole interval
        for span in [rest] * bool(rest) + [length] * whole:
            last = self._measure(self.backend.advance(span), tuning=False, dispatched=False)
            rounds += last.rounds
        return () if last is None else (replace(last, rounds=tuple(rounds)),)

    def _measure(self, report: IntervalReport, *, tuning: bool, dispatched: bool) -> Interval:
        episode = self._running("measure")
        needed = tuning or (self.scenario.trigger == "kl" and report.fsd.triggered)
        return measure(
            report,
            self.scenario,
            number=episode.interval,
            setting=episode.setting,
            rounds=episode.collectives.add(report.finished, report.job_spans),
            applications=episode.applications.add(report.finished),
            cost=wire_cost([report], [needed], dispatched=dispatched, table=self.space.table),
            observe=self._observe,
        )

    def _observe(self, report: IntervalReport, value: Terms) -> Observation:
        return observe(report, self.setting, self.space, value=value)

    def _advance(
        self, setting: DeviceSetting, intervals: int, tuning: bool
    ) -> tuple[Interval, ...]:
        """Put a setting in force and run intervals, at most up to the end of the episode."""
        episode = self._running("step")
        changed = self._put_in_force(setting) if episode.begun is None else episode.begun[1]
        episode.begun = None
        done: list[Interval] = []
        while len(done) < intervals and not episode.over:
            report = self.backend.advance()
            episode.interval += 1
            dispatched = changed and not done
            done.append(self._measure(report, tuning=tuning, dispatched=dispatched))
            episode.last = tuple(done)
            episode.over = self.done or episode.interval >= self.intervals
        if self.render_mode == "rgb_array":
            self.history.append(self._info())
        return episode.last

    def _setting_of(self, action: npt.ArrayLike | DeviceSetting) -> DeviceSetting:
        if self._episode is not None and self._episode.begun is not None:
            return self._episode.begun[0]
        return self._asked(action)

    def _asked(self, action: npt.ArrayLike | DeviceSetting) -> DeviceSetting:
        if isinstance(action, Mapping):
            return self._checked(action, "setting")
        return self.space.setting(action, self.initial_setting)

    def _put_in_force(self, setting: DeviceSetting) -> bool:
        """Apply a setting if it is another one than that in force; return whether it is."""
        episode = self._running("step")
        if episode.over:
            raise StateError("step() after the end of the episode; call reset() first")
        changed = setting != episode.setting
        if changed:
            self.backend.apply(setting)
            episode.setting = setting
        return changed

    def _step(self, setting: DeviceSetting, intervals: int, tuning: bool = True) -> Step:
        done = self._advance(setting, intervals, tuning)
        episode = self._running("step")
        terminated, truncated = self.done, episode.interval >= self.intervals
        reward = mean([i.utility for i in done])
        return _mean_observation(done), reward, terminated, truncated, dict(self._info())

    def _info(self) -> Info:
        episode = self._running("info")
        return make_info(
            seed=episode.seed,
            interval=episode.interval,
            setting=episode.setting,
            intervals=episode.last,
        )


def check_limit(intervals: int, cadence: int, steps: int) -> None:
    """Raise ConfigError if Gymnasium's limit of ``steps`` would cut an episode of ``intervals``."""
    if intervals > steps * cadence:
        raise ConfigError(
            f"intervals = {intervals}: this id ends an episode after {steps} steps; make "
            "'dcqcn/Dcqcn-v0' with scenario= and intervals=, which has no limit of its own"
        )


def _mean_observation(intervals: Sequence[Interval]) -> Observation:
    counted = [i.observation for i in intervals if not i.idle] or [i.observation for i in intervals]
    if len(counted) == 1:
        return counted[0]
    return np.asarray(np.mean(counted, axis=0, dtype=np.float64), dtype=np.float32)
