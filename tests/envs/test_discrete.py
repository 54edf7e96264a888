"""The discrete face: ladders in the friendly direction, valid settings, clear errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import KNOBS, Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.wrappers import LadderAction, ladder


def make(**arguments: int) -> LadderAction:
    return LadderAction(DcqcnEnv("mini-fb-hadoop", "fake", intervals=8), **arguments)


def test_rungs_go_from_delay_to_throughput_friendly() -> None:
    space = KnobSpace()
    table = ladder(space, 5, 3)
    assert table.shape == (15, space.n)
    direction = np.array([KNOBS[n].direction for n in space.knobs])
    is_ecn = np.array([KNOBS[n].is_ecn for n in space.knobs])
    assert np.array_equal(table[0], -direction)
    assert np.array_equal(table[-1], direction)
    # action 1 moves the ECN ladder by one rung, action 3 the NIC ladder
    assert np.array_equal(table[1][is_ecn], np.zeros(is_ecn.sum()))
    assert np.array_equal(table[1][~is_ecn], -direction[~is_ecn])
    assert np.allclose(table[3][~is_ecn], -0.5 * direction[~is_ecn])
    assert np.array_equal(table[3][is_ecn], -direction[is_ecn])


def test_a_space_of_one_kind_has_one_ladder() -> None:
    assert len(ladder(KnobSpace(("kmin", "kmax", "pmax")), 5, 4)) == 4
    assert len(ladder(KnobSpace(("rp_ai_rate",)), 5, 4)) == 5


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_every_action_is_a_legal_setting_and_the_checker_is_content() -> None:
    env = make()
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    assert env.action_space.n > 1  # type: ignore[attr-defined]
    for action in range(env.action_space.n):  # type: ignore[attr-defined]
        setting = env.action(np.int64(action))
        assert isinstance(setting, Setting)
        setting.check(25e9)
        expected = env.space.setting(env.table[action], env.unwrapped.initial_setting)  # type: ignore[attr-defined]
        assert setting == expected


@pytest.mark.parametrize("action", [-1, 25, 3.7, "3", None, True])
def test_an_action_off_the_ladder_is_named(action: Any) -> None:
    env = make()
    env.reset(seed=1)
    with pytest.raises(ConfigError, match=f"action {action!r}: expected a whole number in 0..24"):
        env.step(action)


def test_a_ladder_needs_two_rungs() -> None:
    with pytest.raises(ConfigError, match="ecn = 1 rungs: expected at least 2"):
        make(ecn=1)
