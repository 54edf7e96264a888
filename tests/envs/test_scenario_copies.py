"""A scenario copied with another scheme runs, or is refused at once; large stars load."""

from __future__ import annotations

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.network import BUFFER_AT_100G, Switch
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.scheme import DcqcnPlus

MINI = load_scenario("mini-fb-hadoop")


def star(hosts: int, **more: object) -> Scenario:
    table = {
        "topology": {"kind": "single-switch", "hosts": hosts, "gbps": 25},
        "workloads": [{"kind": "incast", "bytes": 1000, "hosts": [1, 2]}],
        **more,
    }
    return Scenario.model_validate(table)


@pytest.mark.parametrize("scheme", ["dcqcn-plus", DcqcnPlus(), {"name": "dcqcn-plus"}])
def test_a_copy_with_another_scheme_has_its_knobs_and_runs(scheme: object) -> None:
    copy = MINI.model_copy(update={"scheme": scheme, "intervals": 2})
    assert copy == MINI.model_copy(update={"scheme": "dcqcn-plus"}).model_copy(
        update={"intervals": 2}
    )
    assert copy.table.scheme == "dcqcn-plus"
    env = DcqcnEnv(copy)
    env.reset(seed=1)
    env.step_setting(copy.default_setting())
    env.close()


def test_one_whose_knobs_do_not_fit_is_refused_at_once() -> None:
    chosen = Scenario.model_validate({**MINI.model_dump(), "knobs": ["rp_dce_tcp_g"]})
    with pytest.raises(ConfigError, match="rp_dce_tcp_g is a knob of scheme 'dcqcn'"):
        chosen.model_copy(update={"scheme": "timely"})


def test_an_unknown_scheme_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="scheme: unknown scheme 'dcqcn-pluss'"):
        MINI.model_copy(update={"scheme": "dcqcn-pluss"})


def test_headroom_that_does_not_fit_comes_on_top_of_the_default_buffer() -> None:
    usual = BUFFER_AT_100G // 4
    assert star(32).buffer_bytes == usual
    large = star(256)
    assert large.set_aside_bytes == 256 * (46_875 + 4096)
    assert large.buffer_bytes == usual + large.set_aside_bytes
    DcqcnEnv(large).reset(seed=1)


def test_a_given_buffer_that_is_too_small_is_refused_as_ever() -> None:
    with pytest.raises(ValueError, match="too small: headroom and reserve of the 256 ports"):
        star(256, switch=Switch(buffer_bytes=BUFFER_AT_100G // 4))
