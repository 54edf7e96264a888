"""Schemes that cannot be: one sentence each that says what was given and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dcqcn_gym._core")

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import knob_table, schemes
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.limits import MAX_FLOW_PACKETS
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

HOSTS = 4
STAR = {
    "topology": {"kind": "single-switch", "hosts": HOSTS},
    "workloads": [{"kind": "permutation", "bytes": 1000}],
}
PLUS = {"hosts": [0, 1], "scheme": "dcqcn-plus"}


def scenario(**changes: Any) -> Scenario:
    return Scenario.model_validate({**STAR, **changes})


def refused(**changes: Any) -> str:
    """Return the one sentence that refuses this scenario."""
    with pytest.raises((ConfigError, ValueError)) as caught:
        scenario(**changes)
    return str(caught.value)


def mix(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "mix", "groups": list(groups), **more}


@pytest.mark.parametrize(
    ("scheme", "says"),
    [
        ("timley", "unknown scheme 'timley'; did you mean 'timely'?"),
        ("swift", "unknown scheme 'swift'"),
        ("hpcc", "unknown scheme 'hpcc'"),
        ({"name": "timely", "rp": "paper"}, "rp"),
        ({"name": "dolce-rc", "ratio": "cont"}, "cont"),
        ({"name": "dolce-rc-plus", "arithmetic": "fixed"}, "arithmetic"),
        (mix(PLUS, {"hosts": [1, 2], "scheme": "timely"}), "both name host 1; expected every host"),
        (mix({"hosts": [9], "scheme": "timely"}), "host 9 does not exist in this topology"),
        (mix({"hosts": [0], "scheme": mix(PLUS)}), "a mix inside a mix; expected one scheme"),
        (mix({"hosts": [], "scheme": "timely"}), "hosts is empty; expected at least one host"),
        (
            mix(PLUS, {"hosts": [2, 3], "scheme": "timely"}),
            r"scheme.groups name all 4 hosts, so no NIC runs scheme.rest \('dcqcn'\); expected "
            "'rest' to be the scheme of one of the groups",
        ),
        (mix({"hosts": HOSTS, "scheme": "timely"}), "name all 4 hosts"),
    ],
)
def test_a_scheme_or_a_mix_that_cannot_be(scheme: Any, says: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=says):
        scenario(scheme=scheme)


def test_what_the_message_asks_for_works() -> None:
    """All hosts in groups is refused; with one group as the rest the same network runs."""
    opened = scenario(scheme=mix(PLUS, rest="timely"))
    backend = NativeBackend()
    backend.open(opened, 1)
    backend.apply(opened.initial_setting())
    assert backend.advance().finished.src.size > 0
    assert opened.scheme.schemes == ("timely", "dcqcn-plus")


@pytest.mark.parametrize("scheme", schemes())
def test_a_knob_of_another_scheme(scheme: str) -> None:
    """Of every other scheme, in ``knobs`` and in ``initial``: refused by both names."""
    own = set(knob_table(scheme).knobs)
    tables = [[k for k in knob_table(other).knobs if k not in own] for other in schemes()]
    assert any(tables)
    for foreign, *_ in filter(None, tables):
        expected = f"{foreign} is a knob of scheme '.*'; expected one of scheme '{scheme}'"
        with pytest.raises((ConfigError, ValueError), match=expected):
            scenario(scheme=scheme, knobs=["kmin", foreign])
        with pytest.raises((ConfigError, ValueError), match=expected):
            scenario(scheme=scheme, initial={foreign: 1})


LONG = (MAX_FLOW_PACKETS + 1) * 1000


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "alltoall", "bytes": LONG},
        {"kind": "incast", "bytes": LONG, "dst": 0, "hosts": [1]},
        {"kind": "incast", "bytes": LONG // 4, "messages": 4, "dst": 0, "hosts": [1]},
        {"kind": "pairs", "pairs": [[0, 1, 5], [1, 2, LONG]]},
        {"kind": "ring", "bytes": LONG * HOSTS},
        {"kind": "streams", "bytes": LONG, "flows": 1, "hosts": [1], "dsts": [0]},
        {"kind": "flows", "flows": [{"src": 0, "dst": 1, "bytes": LONG, "start_ns": 0}]},
        {"kind": "parameter-server", "bytes": LONG},
        {"kind": "poisson", "cdf": {"name": "x", "points": [[LONG, 1.0]]}, "mean_gap_us": 40},
    ],
    ids=lambda w: str(w["kind"]),
)
def test_a_flow_of_too_many_packets(workload: dict[str, Any]) -> None:
    """Packet numbers have 32 bits; a longer flow is refused where it is written, not cut short."""
    found = refused(workloads=[workload])
    assert "workloads[0]: " in found
    assert "2147483648 packets" in found
    assert 'expected at most 2147483647 (2^31 - 1), or "unlimited" flows' in found
    # with larger packets they are fewer
    assert scenario(workloads=[workload], wire={"payload_bytes": 2000})


def test_the_same_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text(
        "[topology]\nkind = 'single-switch'\nhosts = 4\n"
        f"[[workloads]]\nkind = 'alltoall'\nbytes = {LONG}\n"
    )
    with pytest.raises(ConfigError, match=r"long\.toml: workloads\[0\]: a flow of 2147483648000"):
        load_scenario(file)
