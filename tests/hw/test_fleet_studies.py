"""The studies on the digital fabric: the same run twice, and what a fleet's control carries."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import fleet_bytes
import fleet_same
import pytest
from fabrics import SMALL
from fleet_same import compare_logs
from fleets import fleet_of, nic_fleet
from scale import COLUMNS, measure
from tcp_bytes import Carried, carried, read_ss

from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.hw.controller import Controller

needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)


@pytest.fixture
def small(tmp_path: Path) -> Scenario:
    (tmp_path / "small.toml").write_text(SMALL)
    return load_scenario(tmp_path / "small.toml")


@needs_redis
def test_a_run_over_the_fabric_is_the_engines_own(small: Scenario, tmp_path: Path) -> None:
    same = fleet_same.produce(tmp_path / "out", small, 4)
    assert (same.hosts, same.switches, same.intervals, same.transactions) == (4, 3, 4, 4)
    assert same.settings > 1
    assert "| 4 | 3 | 4 |" in fleet_same.markdown("small", 4, same)


@needs_redis
@pytest.mark.slow
def test_paraleon_on_the_mini_scenario_is_the_engines_own(tmp_path: Path) -> None:
    same = fleet_same.produce(tmp_path / "out", load_scenario("mini-fb-hadoop"), 10)
    assert (same.hosts, same.switches, same.intervals, same.transactions) == (16, 4, 10, 10)
    assert same.settings == 10


def test_logs_that_differ_are_told_apart(tmp_path: Path) -> None:
    near, far = tmp_path / "near.jsonl", tmp_path / "far.jsonl"
    near.write_text('{"backend":"a"}\n{"i":0}\n{"i":1}\n')
    far.write_text('{"backend":"b"}\n{"i":0}\n{"i":1}\n')
    assert compare_logs(near, far) == len('{"i":0}\n{"i":1}\n')
    for text, line in (
        ('{"backend":"b"}\n{"i":0}\n{"i":2}\n', 3),
        ('{"backend":"b"}\n{"i":0}\n', 3),
    ):
        far.write_text(text)
        with pytest.raises(BackendError, match=f"differ from line {line} on"):
            compare_logs(near, far)


@needs_redis
@pytest.mark.skipif(shutil.which("ss") is None, reason="iproute2 is not installed")
def test_bytes_on_the_wire_are_more_than_those_of_the_stream(
    small: Scenario, tmp_path: Path
) -> None:
    costs = {cost.what: cost for cost in fleet_bytes.produce(tmp_path / "out", small, 4)}
    assert list(costs) == list(fleet_bytes.PAPER)
    for cost in costs.values():
        assert 0 < cost.stream < cost.wire
        assert cost.messages > cost.stream / 4, "answers are compressed: nothing else makes it less"
        assert 0 < cost.towards < cost.wire
    assert "| counters of a NIC | 12 |" in fleet_bytes.markdown("small", 4, list(costs.values()))


@pytest.mark.skipif(shutil.which("ss") is None, reason="iproute2 is not installed")
def test_the_kernel_counts_what_a_connection_carries() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert carried([address]) == {address: Carried()}
        with socket.create_connection(server.getsockname()) as near, server.accept()[0] as far:
            near.sendall(b"x" * 1000)
            far.sendall(b"y" * 300)
            for end, n in ((far, 1000), (near, 300)):
                while n:
                    n -= len(end.recv(n))
            found = carried([address])[address]
    assert (found.bytes_sent, found.bytes_received) == (1000, 300)
    assert found.wire_sent == 1000 + 66 * found.segs_out
    assert found.segs_out >= 2


RECORDED = """\
ESTAB 0 0 127.0.0.1:58402 127.0.0.1:43733 bbr wscale:10,10 rto:204 rtt:0.029/0.021 mss:32768 \
bytes_sent:407 bytes_acked:408 bytes_received:2096 segs_out:6 segs_in:5 data_segs_out:2 \
data_segs_in:2 bbr:(bw:34bps,mrtt:0.018)
ESTAB 0 0 [::ffff:127.0.0.1]:58404 [::ffff:127.0.0.1]:43733 cubic bytes_sent:3 segs_out:1 segs_in:4
ESTAB 0 0 [::1]:5 [::1]:6 cubic bytes_received:1
"""


def test_recorded_output_of_ss() -> None:
    found = read_ss(RECORDED)
    assert found["127.0.0.1:43733"] == Carried(410, 2096, 7, 9)
    assert found["[::1]:6"] == Carried(0, 1, 0, 0)
    assert found["127.0.0.1:43733"].since(Carried(10, 96, 7, 4)) == Carried(400, 2000, 0, 5)


def test_a_change_of_a_fleet_is_timed(tmp_path: Path) -> None:
    with nic_fleet(tmp_path, 3) as agents:
        controller = Controller(fleet_of(agents), tmp_path)
        controller.agents.open()
        try:
            took = measure(controller, 2)
        finally:
            controller.close()
    assert (took.devices, len(took.seconds), len(took.row())) == (3, 2, len(COLUMNS))
    assert 0 < max(took.skews_s) < max(took.seconds)
    assert took.controller_cpu_s > 0
    audit = (tmp_path / "audit.jsonl").read_text()
    assert audit.count('"event": "confirmed"') == 2
