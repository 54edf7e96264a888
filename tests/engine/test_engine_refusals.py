"""Texts for the engines and ns-3 with schemes or flows that they lack: refused in one sentence."""

from __future__ import annotations

import pytest

pytest.importorskip("dcqcn_gym._core")

from dcqcn_gym import _core
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.limits import MAX_FLOW_PACKETS
from dcqcn_gym.envs.scenario.scenario import Scenario

LONG = (MAX_FLOW_PACKETS + 1) * 1000


def scenario() -> Scenario:
    star = {"kind": "single-switch", "hosts": 4}
    workload = {"kind": "permutation", "bytes": 1000}
    return Scenario.model_validate({"topology": star, "workloads": [workload]})


def test_a_scheme_that_the_engine_lacks() -> None:
    """What both engines and ns-3 read: a text of a later version, or of a scheme from outside."""
    for given, says in (
        ("name=swift", r"line \d+ \(scheme\): unknown scheme 'swift'"),
        ("name=dcqcn-pluss", r"unknown scheme 'dcqcn-pluss'; did you mean 'dcqcn-plus'"),
        ("name=timely mode=nic", r"scheme timely has no option 'mode'"),
        ("name=dolce-rc ratio=ideal", r"ratio=ideal of scheme dolce-rc is unknown"),
    ):
        lines = compile_scenario(scenario()).splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("scheme "))
        lines[at] = f"scheme {given}"
        with pytest.raises(ValueError, match=says) as caught:
            _core.Simulation("\n".join(lines) + "\n", 1)
        assert "\n" not in str(caught.value)


def test_the_engine_refuses_a_flow_of_too_many_packets() -> None:
    text = compile_scenario(scenario())
    assert "bytes=1000" in text
    longest = text.replace("bytes=1000", f"bytes={LONG - 1000}")
    assert _core.Simulation(longest, 1)
    with pytest.raises(ValueError, match=f"a flow of {LONG} bytes, in packets of 1000, expected"):
        _core.Simulation(text.replace("bytes=1000", f"bytes={LONG}"), 1)
