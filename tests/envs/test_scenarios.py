"""Scenarios: the folders of good and bad files, round trips, the shared ones, schemas, loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from dcqcn_gym.core.config import CONFIGS, export_schemas, read_toml, validate
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.ids import env_id
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.hosts import select_hosts
from dcqcn_gym.envs.scenario.rates import ps_per_byte
from dcqcn_gym.envs.scenario.scenario import (
    SCHEMAS,
    Network,
    Scenario,
    load_scenario,
    scenario_names,
)
from dcqcn_gym.envs.scenario.tables import Cdf, cdf_names, read_cdf, read_flows
from dcqcn_gym.envs.scenario.topology import fabric
from dcqcn_gym.envs.scenario.workloads import Poisson
from dcqcn_gym.simulation.trace import port_names
from large import LARGE

FILES = Path(__file__).parent.parent / "schemas"
GOOD = sorted((FILES / "good").glob("*.toml"))
BAD = sorted((FILES / "bad").glob("*.toml"))

# mean in bytes of the published tables, as recorded with their sources
MEANS = {
    "FB_Hadoop": 120_400,
    "WebSearch": 1_711_000,
    "DataMining_a": 7_488_000,
    "DataMining_b": 5_037_000,
    "CacheFollower": 713_000,
    "WebServer": 66_000,
    "AliStorage2019": 40_900,
    "GoogleRPC2008_thinned": 4_200,
    "Solar2022": 39_400,
    "SolarRPC_approx": 34_000,
}


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good_file_loads_and_survives_json(path: Path) -> None:
    scenario = load_scenario(path)
    dump = json.loads(json.dumps(scenario.model_dump(mode="json")))
    assert Scenario.model_validate(dump) == scenario
    assert str(path.parent) not in json.dumps(dump)


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad_file_gives_the_expected_sentence(path: Path) -> None:
    expected = path.read_text().splitlines()[0].removeprefix("# expect: ")
    with pytest.raises(ConfigError) as caught:
        load_scenario(path)
    message = str(caught.value)
    assert expected in message
    assert message.startswith(str(path))
    assert "\n" not in message


@pytest.mark.parametrize("name", scenario_names())
def test_shared_scenario(name: str) -> None:
    scenario = load_scenario(name)
    first = (CONFIGS / "scenarios" / f"{name}.toml").read_text().splitlines()[0]
    assert first.startswith(f"# dcqcn-gym tune --scenario {name} ")
    assert scenario.name == name
    assert scenario.description
    restored = Scenario.model_validate(json.loads(scenario.model_dump_json()))
    assert restored == scenario
    assert name in LARGE or compile_scenario(restored) == compile_scenario(scenario)
    budget = gymnasium.spec(env_id(name)).max_episode_steps
    assert budget == -(-scenario.intervals // scenario.cadence)


def test_shared_scenarios_are_those_of_the_docs() -> None:
    page = Path(__file__).parents[2] / "docs" / "scenarios.md"
    text = page.read_text()
    assert [name for name in [*scenario_names(), *cdf_names()] if f"`{name}`" not in text] == []


def test_paper_fabric() -> None:
    scenario = load_scenario("fb-hadoop")
    assert (scenario.n_hosts, scenario.fabric.n_nodes) == (128, 140)
    assert scenario.line_rate_bps == 100e9
    assert scenario.buffer_bytes == 12 * 2**20
    assert scenario.monitor_interval_ps == 10**9
    assert scenario.warmup_ps == 5 * 10**9
    assert scenario.headroom_bytes(80, 5_000_000) == 187_500
    assert scenario.fabric.uplink_bps == dict.fromkeys(range(128, 136), 400000000000.0)
    assert scenario.initial_setting() == scenario.default_setting()


SLOW = {
    "name": "slow",
    "topology": {"kind": "single-switch", "hosts": 17, "gbps": 10, "delay_us": 1},
    "switch": {"buffer_bytes": 400_000},
    "workloads": [{"kind": "incast", "bytes": 300_000, "off_us": 100}],
}


def test_pfc_loses_nothing_on_slow_and_short_links() -> None:
    """Three times rate x delay are 3750 bytes there, less than comes before a pause acts."""
    scenario = Scenario.model_validate(SLOW)
    assert scenario.headroom_bytes(800, 1_000_000) == 3 * 1062 + 64 + 2500
    backend = make_backend("native")
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    reports = [backend.advance() for _ in range(5)]
    assert count(r.pauses for r in reports) > 0
    assert count(r.drops for r in reports) == 0


def test_unknown_scenario_offers_near_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'fb-hadoop'"):
        load_scenario("fb-hadop")


def test_missing_file() -> None:
    with pytest.raises(ConfigError, match=r"nowhere/x\.toml: no such file"):
        load_scenario("nowhere/x.toml")


def test_name_comes_from_the_file_unless_given() -> None:
    assert load_scenario(FILES / "good" / "graph.toml").name == "graph"


def test_schemas_are_committed(tmp_path: Path) -> None:
    written = export_schemas(tmp_path, SCHEMAS)
    assert len(written) == len(SCHEMAS) > 0
    for path in written:
        committed = CONFIGS / "schema" / path.name
        assert json.loads(committed.read_text()) == json.loads(path.read_text()), "make schemas"


@pytest.mark.parametrize("name", cdf_names())
def test_cdf_means(name: str) -> None:
    cdf = read_cdf(CONFIGS / "workloads" / f"{name}.csv")
    assert cdf.mean_bytes == pytest.approx(MEANS[name], rel=0.013)
    assert cdf.thinned == (name == "GoogleRPC2008_thinned")


def test_cdf_mean_counts_point_masses() -> None:
    cdf = Cdf(name="x", points=((10, 0.25), (20, 0.5), (20, 0.75), (40, 1.0)))
    # 0.25 at 10, 0.25 uniform on 10..20, 0.25 at 20, 0.25 uniform on 20..40
    assert cdf.mean_bytes == 0.25 * 10 + 0.25 * 15 + 0.25 * 20 + 0.25 * 30


def test_flow_list_keeps_order_and_fractions() -> None:
    flows = read_flows(FILES / "good" / "three_flows.csv", n_hosts=4)
    assert [tuple(flow) for flow in flows] == [
        (0, 1, 1_000_000, 0.0),
        (1, 2, 5000, 1000.5),
        (3, 2, 5000, 1000.5),
    ]


@pytest.mark.parametrize(
    ("gbps", "ps"), [(10, 800), (25, 320), (40, 200), (50, 160), (100, 80), (400, 20), (800, 10)]
)
def test_ps_per_byte(gbps: float, ps: int) -> None:
    assert ps_per_byte(gbps) == ps


def _poisson(scenario: Scenario) -> Poisson:
    workload = scenario.workloads[-1]
    assert isinstance(workload, Poisson)
    return workload


def test_host_load_is_of_one_host_link() -> None:
    scenario = load_scenario("fb-hadoop")
    gap = _poisson(scenario).mean_gap_ps(scenario.fabric)
    assert 120_420.75 * 80 / gap == pytest.approx(0.3, rel=1e-12)


def test_uplink_load_is_85_permille_of_host_load() -> None:
    scenario = load_scenario("fb-hadoop-uplink30")
    gap = _poisson(scenario).mean_gap_ps(scenario.fabric)
    host_load = 120_420.75 * 80 / gap
    assert host_load == pytest.approx(0.085, abs=5e-5)
    crossing = host_load * 16 * 112 / 127  # in host links, per rack
    assert crossing / 4 == pytest.approx(0.3, rel=1e-12)


def _net(name: str) -> Fabric:
    return fabric(load_scenario(FILES / "good" / name).topology)


def test_workers_go_round_the_racks() -> None:
    net = load_scenario("llm-alltoall").fabric
    assert select_hosts(net, 20)[:10] == (0, 16, 32, 48, 64, 80, 96, 112, 1, 17)
    assert select_hosts(net, 3, placement="packed") == (0, 1, 2)
    assert select_hosts(net, (5, 2)) == (5, 2)
    assert 7 not in select_hosts(net, "all", without=7)


def test_graph_expands_parallel_links_and_tiers() -> None:
    net = _net("graph.toml")
    assert net.tiers == (0, 0)
    assert [(x.a, x.b, x.ps_per_byte) for x in net.links] == [
        (0, 3, 40),
        (1, 3, 80),
        (4, 2, 80),
        (3, 4, 20),
        (3, 4, 20),
    ]
    assert net.racks == ((0, 1), (2,))
    assert net.uplink_bps == {3: 800e9, 4: 800e9}


def test_a_rate_may_be_picoseconds_per_byte() -> None:
    net = _net("odd_rates.toml")
    assert {x.ps_per_byte for x in net.host_link} == {81}
    assert {x.ps_per_byte for x in net.links} == {81, 143}


def test_oversubscription_gives_the_spines() -> None:
    net = _net("oversubscription.toml")  # 8 x 100 over 2 = 400 = 1 spine x 2 links x 200
    assert len(net.tiers) - 4 == 1
    assert net.uplink_bps[32] == 400e9


@pytest.mark.parametrize("k", [2, 4, 8])
def test_fat_tree_counts(k: int) -> None:
    scenario = load_scenario(FILES / "good" / "fat_tree.toml")
    topology = type(scenario.topology).model_validate({"kind": "fat-tree", "k": k})
    net = fabric(topology)
    half = k // 2
    assert net.n_hosts == k**3 // 4
    assert [net.tiers.count(t) for t in (0, 1, 2)] == [k * half, k * half, half * half]
    degree = [0] * net.n_nodes
    for link in net.links:
        degree[link.a] += 1
        degree[link.b] += 1
    assert set(degree[: net.n_hosts]) == {1}
    assert set(degree[net.n_hosts :]) == {k}
    assert len({(link.a, link.b) for link in net.links}) == len(net.links)


def test_the_engine_sees_the_network_alone() -> None:
    scenario = load_scenario(FILES / "good" / "scheme_and_groups.toml")
    assert scenario.knobs == ("kmin", "kmax", "pmax")
    assert scenario.groups == ("tor", "switch:4", "port:4:0", "nic:1")
    network = Network.model_validate(scenario.model_dump(include=set(Network.model_fields)))
    assert compile_scenario(network) == compile_scenario(scenario)


def test_the_scheme_by_name_and_by_table() -> None:
    dump = load_scenario("mini-fb-hadoop").model_dump(mode="json")
    forms: list[dict[str, object]] = [
        {"scheme": {"name": "dcqcn", "rp": "paper"}},
        {"scheme": {"rp": "paper"}},
    ]
    read = [Scenario.model_validate({**dump, **form}) for form in forms]
    assert {one.rp for one in read} == {"paper"}
    assert read[0] == read[1]
    assert "scheme name=dcqcn mode=paper" in compile_scenario(read[0])
    assert Scenario.model_validate({**dump, "scheme": "dcqcn"}).rp == "nic"


def test_ports_are_numbered_as_in_reports() -> None:
    fabric_ = load_scenario("mini-fb-hadoop").fabric
    devices = fabric_.devices
    names = [(p.node, p.index) for p in port_names(fabric_)]
    assert list(zip(devices.port_node, devices.port_index, strict=True)) == names
    assert devices.tiers == {16: 0, 17: 0, 18: 1, 19: 1}


def _tables(value: object, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every table of a file with its place."""
    if isinstance(value, dict):
        yield place, value
        for name, inner in value.items():
            yield from _tables(inner, f"{place}.{name}")
    if isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _tables(inner, f"{place}[{i}]")


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_an_unknown_key_in_any_table_comes_with_a_near_match(path: Path) -> None:
    places = [place for place, _ in _tables(read_toml(path))]
    for place in places:
        data = {"name": path.stem, **read_toml(path)}
        table = dict(_tables(data))[place]
        known = "description" if not place else max(table, key=len)
        table[f"{known}x"] = 1
        with pytest.raises(ConfigError, match=rf"{known}x'.*did you mean.*'{known}'"):
            validate(data, Scenario, source="it", folder=path.parent)


def test_tables_of_any_depth_were_looked_into() -> None:
    places = [place for path in GOOD for place, _ in _tables(read_toml(path))]
    wanted = {"", ".topology", ".weights", ".monitor", ".initial", ".scheme"}
    assert wanted | {".workloads[0]", ".workloads[0].cdf", ".topology.links[0]"} <= set(places)
