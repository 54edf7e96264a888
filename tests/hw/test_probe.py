"""Round trips by perftest, which a script plays here, as an agent reports them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from devices import NIC, nic_tree
from test_load import LATENCY
from test_load_flows import PERFTEST, free_ports
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.hw.drivers import Surroundings, make_driver
from dcqcn_gym.hw.probe import Prober
from dcqcn_gym.hw.runner import RecordedRunner


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an ``ib_write_lat`` onto the path that connects as perftest does and prints a table."""
    script = tmp_path / "bin" / "ib_write_lat"
    script.parent.mkdir()
    text = PERFTEST.format(python=sys.executable, log=str(tmp_path / "sent"))
    head, _, _ = text.partition("with open(")
    text = head.replace('given["-s"] * given["-n"]', "2") + f"print({LATENCY!r})\n"
    script.write_text(text)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    return tmp_path


def test_two_hosts_probe_each_other_and_the_agent_reports_it(played: Path) -> None:
    port, root = free_ports(), nic_tree(played / "root", "newer")
    hosts = [
        Prober(own, {1 - own: "127.0.0.1"}, root / f"rtt{own}", first_port=port) for own in (0, 1)
    ]
    stop = threading.Event()

    def answer() -> None:
        while not stop.wait(0.01):
            hosts[1]._waiting.keep()

    other = threading.Thread(target=answer)
    other.start()
    try:
        while hosts[0].round():  # until the other one waits
            stop.wait(0.05)
        around = Surroundings(root, RecordedRunner(root / "commands"))
        driver = make_driver("mlx5", {**NIC, "rtt_file": "rtt0"}, around, "test")
        first = driver.counters()
        while hosts[0].round():
            stop.wait(0.05)
        second = driver.counters()
    finally:
        stop.set()
        other.join()
        for host in hosts:
            host.close()
    assert (first["rtt/1/count"], first["rtt/1/base_ns"]) == (1000, 2060)  # whole round trips
    assert first["rtt/1/sum_ns"] == 2140 * 1000
    assert (second["rtt/1/count"], second["rtt/1/sum_ns"]) == (2000, 2 * 2140 * 1000)


def test_a_peer_that_does_not_answer_adds_nothing(played: Path) -> None:
    prober = Prober(0, {3: "127.0.0.1"}, played / "rtt", first_port=free_ports())
    try:
        assert prober.round() == [3]
        assert (played / "rtt").read_text() == ""
    finally:
        prober.close()


def test_mistakes_are_one_sentence(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["hw", "probe", "--own", "0", "--out", str(played / "rtt"), "--rounds", "1"]
    for wrong in ("1", "x=10.0.0.1", "0=10.0.0.1", "1="):
        done = CliRunner().invoke(app, [*given, "--peer", wrong])
        assert isinstance(done.exception, ConfigError)
        assert "expected the number of another host" in str(done.exception)
    prober = Prober(0, {1: "127.0.0.1"}, played / "no" / "rtt", first_port=free_ports())
    with pytest.raises(DeviceError, match="cannot be written"):
        prober.round()
    prober.close()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DeviceError, match="ib_write_lat cannot be started here"):
        prober.round()
