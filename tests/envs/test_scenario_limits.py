"""Sizes and names of scenarios: refused before anything of that size is built."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.tables import read_cdf

MINI = load_scenario("mini-fb-hadoop").model_dump(mode="json")


def scenario(topology: dict[str, Any], **more: Any) -> Scenario:
    data = {**MINI, "topology": topology, **more}
    return validate(data, Scenario, source="mine.toml", folder=Path())


def leaf_spine(tors: int, hosts: int, **more: Any) -> dict[str, Any]:
    return {"kind": "leaf-spine", "tors": tors, "hosts_per_tor": hosts, **more}


@pytest.mark.parametrize(
    ("topology", "says"),
    [
        (leaf_spine(65536, 65536, spines=1), "4294967296 hosts.* GB of memory.*most 65536 hosts"),
        (leaf_spine(30000, 1, spines=65536), "1966110000 links.* GB of memory.*1000000 links"),
        (leaf_spine(1000, 1, spines=1000, links_per_spine=64), "64001000 links.*51.2 GB"),
        (leaf_spine(65000, 1, spines=1), r"17.*GB of memory; expected at most 4 GB"),
        (leaf_spine(2, 2, oversubscription=1e-300), "whole number of spines, 1 to 65536"),
        (leaf_spine(2, 2, oversubscription=5e-324), "whole number of spines, 1 to 65536"),
        ({"kind": "fat-tree", "k": 64, "hosts_per_edge": 65536}, "hosts.* GB of memory"),
        ({"kind": "dumbbell", "left": 65536, "right": 65536}, "131072 hosts"),
    ],
)
def test_a_topology_that_is_too_large(topology: dict[str, Any], says: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=f"^mine.toml: topology: .*{says}"):
            scenario(topology)
        assert tracemalloc.get_traced_memory()[1] < 10e6  # nothing was expanded
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("topology", "says"),
    [
        ({"kind": "single-switch", "hosts": 4097}, "switch 0 has 4097 ports"),
        ({"kind": "dumbbell", "left": 4095, "right": 4096}, "switch 1 has 4097 ports"),
        (leaf_spine(2, 2, spines=64, links_per_spine=64), "switch 0 has 4098 ports"),
    ],
)
def test_a_switch_with_too_many_ports(topology: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=f"^mine.toml: topology: .*{says}; expected at most 4096"):
        scenario(topology)


def test_the_widest_switch() -> None:
    widest = {"kind": "single-switch", "hosts": 4096}
    assert scenario(widest, switch={"pfc": False}).n_hosts == 4096


@pytest.mark.parametrize(
    "topology",
    [leaf_spine(4, 3, spines=2, links_per_spine=3), leaf_spine(4, 4, oversubscription=2),
     {"kind": "fat-tree", "k": 4}, {"kind": "fat-tree", "k": 6, "hosts_per_edge": 5},
     {"kind": "dumbbell", "left": 3, "right": 4}, {"kind": "single-switch", "hosts": 9}],
)  # fmt: skip
def test_the_size_is_that_of_the_network(topology: dict[str, Any]) -> None:
    made = scenario(topology, switch={"pfc": False})
    net = made.fabric
    assert made.topology.size() == (net.n_hosts, len(net.tiers), len(net.links))


POISSON = {"kind": "poisson", "cdf": "Solar2022"}


@pytest.mark.parametrize(
    ("workloads", "says"),
    [
        ([{**POISSON, "mean_gap_us": 1e-6}],
         r"\[0\]: mean_gap_us = 1e-06: .* flows .* GB of memory; expected at most 10000000"),
        ([{**POISSON, "mean_gap_us": 1e6}, {**POISSON, "mean_gap_us": 0.001}],  # a growing backlog
         r"\[1\]: mean_gap_us = 0.001: "),
        ([{"kind": "alltoall", "bytes": 1, "messages": 65536}],
         r"\[0\]: alltoall with messages = 65536: "),
    ],
)  # fmt: skip
def test_too_many_flows_at_once(workloads: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(ConfigError, match=rf"^mine.toml: workloads{says}"):
        scenario(leaf_spine(4, 8, spines=2), workloads=workloads)


def test_many_flows_that_end(tmp_path: Path) -> None:
    fast = {**POISSON, "mean_gap_us": 0.001}
    for workload in ({**fast, "stop_us": 1.0}, {**POISSON, "load": 1.5}):
        scenario(leaf_spine(4, 8, spines=2), workloads=[workload])


def test_sketches_of_all_racks_together() -> None:
    many = leaf_spine(100, 2, spines=1)
    monitor = {"kind": "elastic", "heavy_bytes": 2**24}
    with pytest.raises(ConfigError, match=r"monitor: heavy_bytes .*100 ToRs need 1.72 GB"):
        scenario(many, monitor=monitor, switch={"pfc": False})
    with pytest.raises(ConfigError, match="heavy_bytes"):
        scenario(MINI["topology"], monitor={"kind": "elastic", "heavy_bytes": 2**34})


def test_a_priority_counts_once() -> None:
    with pytest.raises(ConfigError, match=r"lossless: \[3, 3\] names a priority twice"):
        scenario(MINI["topology"], switch={"lossless": [3, 3]})


@pytest.mark.parametrize(
    "name",
    ["../../../escape", "/abs", "a/b", "a\\b", "[/x]", "<b>", "\x1b[31m", "a\nb", ".hidden", "-rf",
     " x", "x|y", "`x`", "\u202eabc", "n" * 101, "\x00"],
)  # fmt: skip
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"mine.toml: name( =|: )") as caught:
        validate({**MINI, "name": name}, Scenario, source="mine.toml")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["mini", "Über 30 % (v2)", "a.b_c-d", "网络", "x=1,y=2"])
def test_names_that_are_fine(name: str) -> None:
    assert validate({**MINI, "name": name}, Scenario, source="mine.toml").name == name


def _lines_to_open(hosts: int) -> int:
    """Return how many lines of Python are run, repetitions included, to open a network."""
    quiet = {"kind": "none"}  # sketches take their own time, per rack
    made = scenario(leaf_spine(hosts // 40, 40, spines=4), switch={"pfc": False}, monitor=quiet)
    count = 0

    def trace(frame: FrameType, event: str, given: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    backend, before = NativeBackend(), sys.gettrace()
    sys.settrace(trace)
    try:
        backend.open(made, 1)
    finally:
        sys.settrace(before)
        backend.close()
    return count


def test_opening_takes_work_in_proportion_to_the_hosts() -> None:
    small, large = _lines_to_open(400), _lines_to_open(4_000)
    assert small > 400
    assert large < 11 * small  # in proportion to the square it would be 100 times


def test_nvidia_names_in_a_scenario_file() -> None:
    made = validate(
        {**MINI, "initial": {"RPG_AI_RATE_P1": 50, "kmin": 300}}, Scenario, source="mine.toml"
    )
    assert made.initial_setting()["rp_ai_rate"] == 50
    made = validate({**MINI, "knobs": ["RPG_GD", "kmin"]}, Scenario, source="mine.toml")
    assert made.knobs == ("rp_gd", "kmin")
    with pytest.raises(ConfigError, match="rp_ai_rate is there twice, also as RPG_AI_RATE"):
        validate(
            {**MINI, "initial": {"rp_ai_rate": 5, "RPG_AI_RATE": 50}}, Scenario, source="mine.toml"
        )


@pytest.mark.slow
def test_the_largest_fat_tree_runs() -> None:
    """65,536 hosts: every destination of 16 bits is a host."""
    traffic = [{"kind": "permutation", "bytes": 30_000, "rounds": 1}]
    plain = {"monitor": {"kind": "none"}, "workloads": traffic}
    backend = NativeBackend()
    backend.open(scenario({"kind": "fat-tree", "k": 64}, **plain), seed=1)
    setting = load_scenario("mini-fb-hadoop").default_setting()
    backend.apply(setting)
    report = backend.advance(10_000_000)
    assert report.host_tx_bytes.shape == (65_536,)
    assert (report.host_tx_bytes > 0).all()
    backend.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [("0 0\n1000 20\n10000 60\n1000000 100\n", ""), ("0\t0\n1000 0.2\n10000 0.6\n1000000 1\n", ""),
     ("1 1 0.2\n5 1 1\n", "three columns, as ns-2")],
)  # fmt: skip
def test_tables_of_sizes_as_other_simulators_have_them(
    text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.cdf").write_text(text)
    if said:
        with pytest.raises(ConfigError, match=said):
            read_cdf(tmp_path / "a.cdf")
    else:
        points = read_cdf(tmp_path / "a.cdf").points
        assert points == ((0, 0.0), (1000, 0.2), (10_000, 0.6), (1_000_000, 1.0))
