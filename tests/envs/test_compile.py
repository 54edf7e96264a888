"""The compiled form of a scenario: exact lines, purity, and the engine's view of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.monitor import with_kind
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

GOOD = Path(__file__).parent.parent / "schemas" / "good"


def _lines(scenario: Scenario, word: str) -> list[str]:
    return [line for line in compile_scenario(scenario).splitlines() if line.startswith(word)]


def _pairs(line: str) -> dict[str, str]:
    return dict(item.split("=", 1) for item in line.split() if "=" in item)


def test_frame_of_the_text() -> None:
    text = compile_scenario(load_scenario("mini-fb-hadoop"))
    assert text.startswith("dcqcn-gym-scenario 1 complete\nnodes hosts=16 switches=4\n")
    assert text.endswith("\nend\n")
    assert text.isascii()


def test_network_of_the_paper() -> None:
    scenario = load_scenario("fb-hadoop")
    switches, links = _lines(scenario, "switch "), _lines(scenario, "link ")
    assert len(switches) == 12
    assert len(links) == 128 + 32
    assert [_pairs(s)["tier"] for s in switches] == ["0"] * 8 + ["1"] * 4
    assert {_pairs(s)["buffer"] for s in switches} == {"12582912"}
    assert len({_pairs(s)["salt"] for s in switches}) == 12
    assert links[0] == "link 0 128 ps_per_byte=80 delay_ps=5000000 headroom=187500"
    assert links[16].startswith("link 16 129 ")
    assert links[128].startswith("link 128 136 ")


def test_device_lines_of_the_defaults() -> None:
    text = compile_scenario(load_scenario("fb-hadoop")).splitlines()
    for line in (
        "wire payload=1000 data=62 ack=66 cnp=78 pfc=64 cnp_in_ack=0",
        "pfc enabled=1 lossless=3 alpha=0.125 reserve=4096 resume_offset=3072 ack_class=control",
        "scheme name=dcqcn mode=nic",
        "transport qp=flow ack_every=1 window=0 window_scaling=0 rto_ps=4000000000 "
        "dispatch_delay_ps=0",
        "cnp scope=qp port_gap_ps=0 delay_ps=0",
        "monitor kind=elastic tau=1000000 theta=0.01 delta=3 pe_weight=ratio max_flows=65536 "
        "heavy_bytes=153600 light_bytes=460800 unit=bytes",
    ):
        assert line in text


def test_every_key_reaches_the_text() -> None:
    text = compile_scenario(load_scenario(GOOD / "everything.toml")).splitlines()
    for line in (
        "switch 4 tier=0 buffer=100000 salt=" + _pairs(text[2])["salt"],
        "link 0 4 ps_per_byte=200 delay_ps=1000000 headroom=0",
        "wire payload=4096 data=68 ack=84 cnp=80 pfc=63 cnp_in_ack=1",
        "pfc enabled=0 lossless=3,4 alpha=1.0 reserve=4096 resume_offset=3072 ack_class=control",
        "scheme name=dcqcn mode=paper",
        "transport qp=pair ack_every=1 window=100000 window_scaling=1 "
        "rto_ps=1000000000 dispatch_delay_ps=0 rtt_probe_ps=50000000",
        "cnp scope=port port_gap_ps=1000000 delay_ps=55000000",
        "monitor kind=elastic tau=500000 theta=0.1 delta=2 pe_weight=logistic max_flows=65536 "
        "heavy_bytes=4096 light_bytes=8192 unit=bytes",
        "cdf 0 100:0.0 1000:1.0 points=2",
        "workload poisson cdf=0 hosts=0,1,2,3 dsts=0,1,2,3 mean_gap_ps=10000000.0 "
        "start_ps=100000000 stop_ps=200000000 repeat_ps=300000000 priority=4",
        "workload incast hosts=0,1 dst=3 bytes=1000 messages=1 off_ps=0 start_ps=0 stop_ps=-1 "
        "rounds=2 priority=3",
    ):
        assert line in text


def test_mixture_of_rounds_and_poisson() -> None:
    alltoall, poisson = _lines(load_scenario("influx"), "workload ")
    assert alltoall == (
        "workload alltoall hosts=0,16,32,48,64,80,96,112,1,17,33,49,65,81,97,113,2,18,34,50 "
        "bytes=12000000 messages=1 off_ps=20000000000 start_ps=0 stop_ps=-1 rounds=0 priority=3"
    )
    pairs = _pairs(poisson)
    assert pairs["start_ps"] == "40000000000"
    assert pairs["stop_ps"] == "70000000000"
    assert pairs["repeat_ps"] == "200000000000"
    assert float(pairs["mean_gap_ps"]) == pytest.approx(120_420.75 * 80 / 0.3, rel=1e-12)


def test_paths_of_single_flows() -> None:
    scenario = load_scenario(GOOD / "next_hops.toml")
    assert _lines(scenario, "next_hop ") == [
        "next_hop 4 0 2 0 2",
        "next_hop 4 1 3 0 3",
        "next_hop 6 0 2 0 1",
    ]
    salts = {_pairs(line)["salt"] for line in _lines(scenario, "switch ")}
    plain = scenario.model_copy(
        update={"switch": scenario.switch.model_copy(update={"ecmp_salt": 0})}
    )
    assert len(salts) == 4
    assert not salts & {_pairs(line)["salt"] for line in _lines(plain, "switch ")}


def test_rows_of_the_table_move_traffic() -> None:
    scenario = load_scenario(GOOD / "next_hops.toml")
    for ports in ((2, 2), (2, 3), (3, 2), (3, 3)):
        rows = tuple((4, src, src + 2, 0, port) for src, port in zip((0, 1), ports, strict=True))
        data = scenario.model_dump(mode="json")
        data["switch"]["ecmp_table"] = rows
        backend = make_backend("native")
        backend.open(Scenario.model_validate(data), seed=1)
        backend.apply(scenario.initial_setting())
        report = backend.advance()
        uplinks = report.port_tx_packets[report.port_node == 4][2:]  # host links come first
        assert [int(n) for n in uplinks] == [100 * ports.count(2), 100 * ports.count(3)]
        backend.close()


def test_pairs_and_permutation() -> None:
    (pairs,) = _lines(load_scenario(GOOD / "dumbbell.toml"), "workload ")
    assert pairs == (
        "workload pairs pairs=0>2:1000,1>3:500 messages=1 off_ps=0 start_ps=0 stop_ps=-1 "
        "rounds=1 priority=3"
    )
    (permutation,) = _lines(load_scenario(GOOD / "fat_tree.toml"), "workload ")
    assert permutation.startswith("workload permutation hosts=0,1,2,")
    assert permutation.endswith(
        " bytes=100000 messages=1 off_ps=10000000 start_ps=0 stop_ps=-1 rounds=3 priority=3"
    )


def test_own_tables() -> None:
    scenario = load_scenario(GOOD / "own_tables.toml")
    assert _lines(scenario, "cdf ") == ["cdf 0 1000:0.5 9000:0.5 9000:1.0 points=3"]
    assert _lines(scenario, "flow ") == [
        "flow 0 1 1000000 0",
        "flow 1 2 5000 1000500",
        "flow 3 2 5000 1000500",
    ]


def test_rings_and_messages() -> None:
    scenario = load_scenario(GOOD / "ring_and_messages.toml")
    assert _lines(scenario, "workload ") == [
        # 2 (n - 1) steps of S / n
        "workload ring hosts=0,3,1,4 bytes=250000 steps=6 messages=1 off_ps=10000000 start_ps=0 "
        "stop_ps=-1 rounds=3 priority=3",
        # n - 1 steps; a chunk is rounded up to a whole byte
        "workload ring hosts=5,4,3 bytes=4 steps=2 messages=1 off_ps=0 start_ps=0 stop_ps=-1 "
        "rounds=0 priority=3",
        "workload ring hosts=0,1 bytes=1 steps=1 messages=1 off_ps=0 start_ps=0 stop_ps=-1 "
        "rounds=0 priority=3",
        "workload pairs pairs=0>1:5000 messages=4 off_ps=0 start_ps=0 stop_ps=-1 rounds=1 "
        "priority=3",
    ]


def test_monitor_keys() -> None:
    scenario = load_scenario(GOOD / "monitor_netflow.toml")
    assert _lines(scenario, "monitor ") == [
        "monitor kind=netflow tau=1000000 theta=0.01 sample_one_in=50 export_ps=2000000000"
    ]
    scenario = load_scenario(GOOD / "monitor_survival.toml")
    assert _lines(scenario, "monitor ") == [
        "monitor kind=exact tau=1000000 theta=0.01 delta=3 pe_weight=survival max_flows=100 "
        "sizes_cdf=1"
    ]
    assert [line.split()[1] for line in _lines(scenario, "cdf ")] == ["0", "1"]
    scenario = load_scenario(GOOD / "monitor_chameleon.toml")
    assert _lines(scenario, "monitor ") == [
        "monitor kind=chameleon tau=1000000 theta=0.01 heavy_bytes=64 light_bytes=1 unit=packets "
        "local_ps=100000000 upload_ps=500000000"
    ]


def test_one_cdf_is_written_once() -> None:
    scenario = load_scenario("mini-fb-hadoop")
    data = scenario.model_dump(mode="json")
    data["workloads"] = data["workloads"] * 2
    twice = Scenario.model_validate(data)
    assert len(_lines(twice, "cdf ")) == 1
    assert [_pairs(line)["cdf"] for line in _lines(twice, "workload ")] == ["0", "0"]


@pytest.mark.parametrize("path", sorted(GOOD.glob("*.toml")), ids=lambda path: path.stem)
def test_the_engine_reads_it(path: Path) -> None:
    scenario = load_scenario(path)
    backend = make_backend("native")
    backend.open(scenario, seed=1)
    backend.apply(scenario.initial_setting())
    report = backend.advance(1_000_000)  # 1 us
    assert report.host_rate_bps.shape == (scenario.n_hosts,)
    assert report.port_node.shape == (2 * len(scenario.fabric.links),)
    backend.close()


def test_a_hash_seed_is_written_only_where_there_is_one() -> None:
    base = load_scenario("mini-fb-hadoop")
    plain = with_kind(base.monitor, "elastic", source="test")
    assert "hash_seed" not in plain.model_dump(mode="json")  # older logs have none
    one = base.model_copy(update={"monitor": plain})
    assert "hash_seed" not in compile_scenario(one)
    other = one.model_copy(update={"monitor": plain.model_copy(update={"hash_seed": 7})})
    assert "hash_seed=7" in compile_scenario(other)
    assert other.model_dump(mode="json")["monitor"]["hash_seed"] == 7
    assert Scenario.model_validate(other.model_dump(mode="json")) == other
