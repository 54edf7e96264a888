"""A discrete form of the action space, for agents that choose among a few settings (DQN).

The settings form two ordered ladders, one for the NIC knobs and one for the ECN thresholds, from
the most delay-friendly rung to the most throughput-friendly one; an action names a rung of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.wrappers import Env, _SettingAction

__all__ = ["LadderAction", "ladder"]


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
