"""Options of the model: next hops of ACKs, TIMELY by segments, a CNP delay with a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.next_hops import NextHop, read_next_hops
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

GOOD = Path(__file__).resolve().parents[1] / "schemas" / "good"


def changed(scenario: Scenario, **tables: dict[str, Any]) -> Scenario:
    data = scenario.model_dump(mode="json")
    for table, values in tables.items():
        data[table] = {**data[table], **values}
    return Scenario.model_validate(data)


def first_report(scenario: Scenario, setting: Setting | None = None) -> IntervalReport:
    backend = make_backend("native")
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting() if setting is None else setting)
    report = backend.advance()
    backend.close()
    return report


def test_rows_move_acks_alone() -> None:
    """100 packets of each of two flows; their ACKs come back by the other leaf, number 5."""
    scenario = load_scenario(GOOD / "next_hops.toml")
    for ports in ((2, 2), (2, 3), (3, 2), (3, 3)):
        rows = [
            NextHop(5, src, src + 2, 0, port, "acks")
            for src, port in zip((0, 1), ports, strict=True)
        ]
        report = first_report(changed(scenario, switch={"ecmp_table": rows, "ack_class": "data"}))
        back = report.port_tx_packets[report.port_node == 5][2:]
        assert [int(n) for n in back] == [100 * ports.count(2), 100 * ports.count(3)]


def test_a_column_says_of_which_packets_a_row_is(tmp_path: Path) -> None:
    path = tmp_path / "hops.csv"
    path.write_text(
        "switch,src,dst,ordinal,port,packets\n5,0,2,0,3,acks\n4,0,2,0,2,data\n4,1,3,0,2\n"
    )
    rows = read_next_hops(path)
    assert [(row.switch, row.packets) for row in rows] == [(5, "acks"), (4, "data"), (4, "data")]
    scenario = changed(load_scenario(GOOD / "next_hops.toml"), switch={"ecmp_table": rows})
    lines = [x for x in compile_scenario(scenario).splitlines() if x.startswith("next_hop ")]
    assert lines == ["next_hop 5 0 2 0 3 packets=acks", "next_hop 4 0 2 0 2", "next_hop 4 1 3 0 2"]
    path.write_text("5,0,2,0,3,ack\n")
    with pytest.raises(ConfigError, match=r"line 1: packets = 'ack'; expected data or acks; did"):
        read_next_hops(path)


def test_acks_need_a_shortest_path_to_the_source() -> None:
    """Port 0 of leaf 5 is the link to host 2: right for data, wrong for ACKs to host 0."""
    scenario = load_scenario(GOOD / "next_hops.toml")
    with pytest.raises(ValueError, match="on no shortest path to host 0; expected 2, 3"):
        changed(scenario, switch={"ecmp_table": [(5, 0, 2, 0, 0, "acks")]})


def longest_queue(pacing: str) -> int:
    """Return the bytes of the longest queue, with two senders at a tenth of the line each."""
    pair = {"kind": "pairs", "pairs": [[0, 2, 200_000], [1, 2, 200_000]]}
    scenario = Scenario.model_validate(
        {
            "monitor_interval_us": 100, "intervals": 1, "warmup_us": 0, "initial": "default",
            "topology": {"kind": "single-switch", "hosts": 3, "gbps": 100, "delay_us": 1},
            "scheme": {"name": "timely", "pacing": pacing}, "workloads": [pair],
        }
    )  # fmt: skip
    slow = scenario.initial_setting().replace({"timely_start_rate": 10_000, "timely_step": 1})
    report = first_report(scenario, slow)
    assert report.delivered_bytes > 100_000
    return int(max(report.port_max_queue_bytes))


def test_timely_paces_segments() -> None:
    """Two segments of 16 packets meet at the port, where packets one by one hardly do."""
    assert longest_queue("packet") <= 2 * 1100
    assert 14 * 1000 <= longest_queue("segment") <= 17 * 1100
    with pytest.raises(ValueError, match="pacing"):
        longest_queue("segments")


def test_a_cnp_delay_with_a_name() -> None:
    scenario = load_scenario("mini-storm")
    named = changed(scenario, cnp={"delay_us": "connectx"})
    assert compile_scenario(named) == compile_scenario(changed(scenario, cnp={"delay_us": 55.0}))
    assert " delay_ps=55000000" in compile_scenario(named)
    with pytest.raises(ValueError, match="delay_us"):
        changed(scenario, cnp={"delay_us": "connectx-7"})
