"""One action for several groups: which number is which, and the way back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.group_space import GroupSpace, tiers_of
from dcqcn_gym.core.groups import check_group_names
from dcqcn_gym.core.knobs import DCQCN, Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.scenario.scenario import load_scenario

MINI = load_scenario("mini-fb-hadoop")
DEVICES, BASE = MINI.fabric.devices, MINI.initial_setting()
SPACE = KnobSpace(("rp_ai_rate", "kmin", "kmax", "pmax"), MINI.line_rate_bps)
CURVE = ("kmin", "kmax", "pmax")


def parts(*groups: str) -> dict[str, tuple[str, ...]]:
    return {name: own.knobs for name, own in GroupSpace(SPACE, groups, DEVICES).parts}


def test_the_cluster_has_what_no_group_takes() -> None:
    assert parts() == {"cluster": SPACE.knobs}
    assert parts("tor", "spine") == {"cluster": ("rp_ai_rate",), "tor": CURVE, "spine": CURVE}
    assert parts("tor-uplinks") == {"cluster": SPACE.knobs, "tor-uplinks": CURVE}
    assert parts("hosts") == {"cluster": CURVE, "hosts": ("rp_ai_rate",)}
    assert parts("hosts", "switches") == {"hosts": ("rp_ai_rate",), "switches": CURVE}
    sides = parts("tor-uplinks", "tor-downlinks", "spine")
    assert sides["cluster"] == ("rp_ai_rate",)


def test_tiers_of_fabrics() -> None:
    assert tiers_of(DEVICES) == ("tor", "spine")
    assert tiers_of(load_scenario("fat-tree-1024").fabric.devices) == ("tor", "spine", "core")


def test_there_and_back() -> None:
    space = GroupSpace(SPACE, ("tor", "spine"), DEVICES)
    assert space.names[:3] == ("cluster/rp_ai_rate", "tor/kmin", "tor/kmax")
    unit = np.linspace(-0.9, 0.9, space.n)
    setting = space.setting(unit, BASE)
    assert not isinstance(setting, Setting)
    assert list(setting) == ["cluster", "tor", "spine"]
    assert space.setting(space.encode(setting), BASE) == setting
    assert setting["tor"] == KnobSpace(CURVE, MINI.line_rate_bps).setting(unit[1:4], BASE)
    assert all(setting["cluster"][k] == BASE[k] for k in CURVE)
    assert np.array_equal(space.encode(BASE)[1:4], space.encode(BASE)[4:7])


def test_without_groups_it_is_the_space_itself() -> None:
    space = GroupSpace(SPACE)
    unit = np.array([0.1, 0.2, 0.3, 0.4])
    assert space.setting(unit, BASE) == SPACE.setting(unit, BASE)
    assert np.array_equal(space.encode(BASE), SPACE.encode(BASE))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (("tor", "tor"), "none repeated"),
        (("cluster",), "beside 'cluster'"),
        (("tors",), "did you mean 'tor'"),
        (("core",), "group 'core' has no device"),
    ],
)
def test_groups_that_cannot_be(groups: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GroupSpace(SPACE, groups, DEVICES)


def test_bad_actions_and_unknown_devices() -> None:
    space = GroupSpace(SPACE, ("tor", "spine"), DEVICES)
    with pytest.raises(ConfigError, match=r"shape \(3,\); expected \(7,\): cluster/rp_ai_rate"):
        space.setting(np.zeros(3), BASE)
    with pytest.raises(ConfigError, match=r"group 'spine': action\[1\] \(kmax\) = nan"):
        space.setting([0, 0, 0, 0, 0, math.nan, 0], BASE)
    with pytest.raises(ConfigError, match="which devices there are"):
        GroupSpace(SPACE, ("tor",))
    assert SPACE.table == DCQCN


def test_a_device_that_is_not_there_names_those_that_are() -> None:
    last = max(DEVICES.tiers)
    have = f"hosts are 0 to {DEVICES.n_hosts - 1}, switches {DEVICES.n_hosts} to {last}"
    with pytest.raises(ConfigError, match=f"'switch:{last + 1}' names no device .*: {have}$"):
        check_group_names([f"switch:{last + 1}"], DEVICES)
    check_group_names([f"switch:{last}", f"nic:{DEVICES.n_hosts - 1}"], DEVICES)
