"""Wrappers: actions by name, by step or by group, and observations as a dict.

They wrap any :class:`~dcqcn_gym.envs.dcqcn.DcqcnEnv`, also through ``gymnasium.make``. A wrapper
changes how a setting is written down, never what it does to the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.core.group_space import GroupSpace, tiers_of
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.info import Info, plain_info
from dcqcn_gym.envs.observation import as_groups, bounds, group_slices

Env = gymnasium.Env[Any, Any]


def _dcqcn(env: Env) -> DcqcnEnv:
    inner = env.unwrapped
    if not isinstance(inner, DcqcnEnv):
        raise ConfigError(f"this wrapper needs a DcqcnEnv; got {type(inner).__name__}")
    return inner


class _SettingAction(gymnasium.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """An action wrapper that passes an explicit setting down; ``space`` is what it turns."""

    space: KnobSpace

    def __init__(self, env: Env, **arguments: Any) -> None:
        RecordConstructorArgs.__init__(self, **arguments)
        gymnasium.ActionWrapper.__init__(self, env)
        self._inner = _dcqcn(env)
        self.space = env.get_wrapper_attr("space")

    def action(self, action: Any) -> DeviceSetting:
        """Return the setting that this action stands for.

        A Setting, or one per group, is taken as it is: wrappers further out pass them down.
        """
        return cast(DeviceSetting, action) if _explicit(action) else self._setting(action)

    def _setting(self, action: Any) -> Setting:
        raise NotImplementedError

    def _near(self, values: Mapping[str, float], base: Setting | None = None) -> Setting:
        """Return the base with these values, brought into their tuned ranges.

        By default the base is the initial setting.
        """
        return self.space.moved(values, base or self._inner.initial_setting)


class DictAction(_SettingAction):
    """Actions are ``{knob: value}`` in NVIDIA's units, as ``--set`` takes them.

    Knobs that an action does not name keep the value in force. Values are brought into the tuned
    range and to whole units, and Kmax to at least Kmin.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        rate = self.space.line_rate_bps
        ranges = {n: self.space.row(n).tuned_at(rate) for n in self.space.knobs}
        self.action_space = spaces.Dict(
            {n: spaces.Box(low, high, (), np.float64) for n, (low, high) in ranges.items()}
        )

    def _setting(self, action: Mapping[str, Any]) -> Setting:
        if not isinstance(action, Mapping):
            raise ConfigError(f"an action is {quote(action)}; expected values by knob")
        for name in action:
            if name not in self.space.knobs:
                raise UnknownNameError("knob in the action", name, self.space.knobs)
        named = {n: _number(n, action[n]) for n in self.space.knobs if n in action}
        return self._near(named, self._inner.setting)


class DeltaAction(_SettingAction):
    """Actions are steps from the setting in force, in -1..1 per knob, as PARALEON searches.

    +1 moves a knob by ``scale`` times its step s_p of the knob table in the throughput-friendly
    direction, -1 in the delay-friendly one, 0 keeps it. Integer knobs move by whole units; every
    knob stays in its tuned range.
    """

    def __init__(self, env: Env, scale: float = 1.0) -> None:
        super().__init__(env, scale=scale)
        if not (np.isfinite(scale) and scale > 0):
            raise ConfigError(f"scale = {scale}: expected a positive number")
        rate = self.space.line_rate_bps
        rows = [self.space.table[n] for n in self.space.knobs]
        self._step = np.array([r.direction * r.step_at(rate) * scale for r in rows])
        self.action_space = spaces.Box(-1.0, 1.0, (self.space.n,), np.float32)

    def _setting(self, action: npt.ArrayLike) -> Setting:
        move = np.asarray(action, dtype=np.float64)
        if move.shape != (self.space.n,):
            raise ConfigError(f"an action has shape {move.shape}; expected ({self.space.n},)")
        for name, by in zip(self.space.knobs, move, strict=True):
            _number(name, by)
        start = self.space.clip({n: self._inner.setting[n] for n in self.space.knobs})
        steps = zip(self.space.knobs, np.clip(move, -1, 1) * self._step, strict=True)
        return self._near({n: start[n] + float(by) for n, by in steps})


class GroupAction(gymnasium.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Actions set groups of devices apart: one box in -1..1 for all knobs of all groups.

    ``groups`` are names such as ``"tor"`` or ``"spine-downlinks"`` (default: the scenario's, or
    else the tiers); :attr:`parts` says which number is which knob of which group. The observation
    shows the setting of the cluster.
    """

    def __init__(self, env: Env, groups: Sequence[str] = ()) -> None:
        RecordConstructorArgs.__init__(self, groups=tuple(groups))
        gymnasium.ActionWrapper.__init__(self, env)
        self._inner = _dcqcn(env)
        scenario, devices = self._inner.scenario, self._inner.scenario.fabric.devices
        chosen = tuple(groups) or scenario.groups or tiers_of(devices)
        self.parts = GroupSpace(env.get_wrapper_attr("space"), chosen, devices)
        self.action_space = spaces.Box(-1.0, 1.0, (self.parts.n,), np.float32)

    def action(self, action: Any) -> DeviceSetting:
        """Return the setting per group that this action stands for; explicit ones as they are."""
        if _explicit(action):
            return cast(DeviceSetting, action)
        return self.parts.setting(action, self._inner.initial_setting)


def _explicit(action: Any) -> bool:
    """Return True for a Setting and for settings by group."""
    if isinstance(action, Setting):
        return True
    return isinstance(action, Mapping) and any(isinstance(v, Setting) for v in action.values())


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"action for {name} = {quote(value)}: expected a finite number") from None
    if not np.isfinite(number):
        raise ConfigError(f"action for {name} = {number}: expected a finite number")
    return number


class DictObservation(gymnasium.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Observations are a dict of the layout's groups: ``"fsd"``, ``"bins"``, ..., ``"setting"``."""

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.ObservationWrapper.__init__(self, env)
        self._table = _dcqcn(env).space.table
        low, high = bounds(self._table)
        self.observation_space = spaces.Dict(
            {g: spaces.Box(low[a:b], high[a:b]) for g, (a, b) in group_slices(self._table).items()}
        )

    def observation(self, observation: npt.NDArray[np.float32]) -> dict[str, Any]:
        """Return the vector's groups."""
        return dict(as_groups(observation, self._table))


class NumericInfo(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """``info`` holds numbers and arrays of one shape alone, as recorders such as Minari's want it.

    What stays are the values of :func:`~dcqcn_gym.envs.info.info_schema`; reports, settings and the
    rounds of collectives, of which a step has any number, are left out.
    """

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        _dcqcn(env)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, _numeric(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Run one step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, _numeric(info)


def _numeric(info: dict[str, Any]) -> dict[str, Any]:
    plain = plain_info(cast(Info, info))
    return {k: np.array(v, np.float64) if isinstance(v, list) else v for k, v in plain.items()}


# The settings form two ordered ladders, one for the NIC knobs and one for the ECN thresholds, from
# the most delay-friendly rung to the most throughput-friendly one; an action names a rung of each.
def ladder(space: KnobSpace, nic: int = 5, ecn: int = 5) -> npt.NDArray[np.float32]:
    """Return the actions in -1..1 that the rungs stand for, shape (rungs, space.n).

    Rung k of ``nic`` puts every NIC knob of the space at the share k / (nic - 1) of its range, in
    its throughput-friendly direction; ``ecn`` does the same for Kmin, Kmax and Pmax. The NIC rung
    is the slower index: action = nic_rung * ecn + ecn_rung. A space without knobs of one kind has
    one rung of that kind. Raises ConfigError for fewer than two rungs.
    """
    for name, rungs in (("nic", nic), ("ecn", ecn)):
        if rungs < 2:
            raise ConfigError(f"{name} = {rungs} rungs: expected at least 2")
    rows = [space.table[name] for name in space.knobs]
    is_ecn = np.array([row.is_ecn for row in rows])
    direction = np.array([row.direction for row in rows], dtype=np.float32)
    places = [
        np.linspace(-1.0, 1.0, rungs if has else 1, dtype=np.float32)
        for rungs, has in ((nic, not is_ecn.all()), (ecn, is_ecn.any()))
    ]
    return np.array(
        [np.where(is_ecn, low, high) * direction for high in places[0] for low in places[1]],
        dtype=np.float32,
    )


class LadderAction(_SettingAction):
    """Actions are ``Discrete(nic * ecn)``: a rung of the NIC ladder and one of the ECN ladder.

    The ladders are ours; ACC (SIGCOMM'21) chooses among ECN settings in the same way. ``table``
    holds the action in -1..1 of every rung (see :func:`ladder`).
    """

    def __init__(self, env: Env, nic: int = 5, ecn: int = 5) -> None:
        super().__init__(env, nic=nic, ecn=ecn)
        self.table = ladder(self.space, nic, ecn)
        self.action_space = spaces.Discrete(len(self.table))

    def _setting(self, action: Any) -> Setting:
        rung, last = np.asarray(action), len(self.table) - 1
        if rung.shape != () or rung.dtype.kind not in "iu" or not 0 <= int(rung) <= last:
            raise ConfigError(f"action {quote(action)}: expected a whole number in 0..{last}")
        return self.space.setting(self.table[int(rung)], self._inner.initial_setting)
