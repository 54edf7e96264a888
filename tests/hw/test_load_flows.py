"""Flows of a Poisson process on a fleet: what is drawn, what runs, what is shown of it.

``ib_write_bw`` is played by a script that does what perftest does here: one side waits, serves one
peer and ends; the other connects, sends as many messages as it was told, and prints a table.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fleets import controller_of, fleet_of, nic_agent_file
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError, UnknownNameError
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.server import AgentServer, load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.commands.load import addresses
from dcqcn_gym.hw.load.fleet_flows import MOST_FLOWS, jobs_of, poisson_flows
from dcqcn_gym.hw.load.flows import LINGER_S, LoadFlow, LoadFlows, messages_of, table
from dcqcn_gym.hw.load.jobs import FLOWS, LoadJobs, results
from dcqcn_gym.hw.load.outputs import MeasuredClass
from dcqcn_gym.hw.load.waiting import PAUSE_S, Waiting
from waiting import wait_for

POINTS = ((1000, 0.0), (10_000, 0.5), (100_000, 1.0))

PERFTEST = """#!{python}
import os, socket, sys
begun = open({log!r} + ".begun", "a")
begun.write(f"{{os.getppid()}}\\n")
begun.close()
words, given = sys.argv[1:], {{}}
while words:
    word = words.pop(0)
    if word in ("-s", "-n", "-p", "-d"):
        given[word] = int(words.pop(0)) if word != "-d" else words.pop(0)
    elif word != "--report_gbits":
        given["peer"] = word
if "peer" not in given:
    server = socket.create_server(("127.0.0.1", given["-p"]))
    peer, _ = server.accept()
    while peer.recv(65536):
        pass
    sys.exit()
try:
    with socket.create_connection((given["peer"], given["-p"])) as peer:
        peer.sendall(b"x" * given["-s"] * given["-n"])
except OSError:
    print("Couldn't connect to", given["peer"])
    sys.exit(1)
with open({log!r}, "a") as log:
    log.write(f"{{given['-s'] * given['-n']}}\\n")
print(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
print(f" {{given['-s']}}  {{given['-n']}}   92.37   92.31   0.176067")
"""


def test_the_same_seed_draws_the_same_flows_of_a_poisson_process() -> None:
    flows = poisson_flows(1, 4, POINTS, 100.0, 30.0, 7)
    assert flows == poisson_flows(1, 4, POINTS, 100.0, 30.0, 7)
    assert flows.at_us != poisson_flows(2, 4, POINTS, 100.0, 30.0, 7).at_us
    assert flows.at_us != poisson_flows(1, 4, POINTS, 100.0, 30.0, 8).at_us
    gaps = np.diff([0, *flows.at_us]) / 1e6
    assert flows.n == pytest.approx(3000, abs=4 * np.sqrt(3000))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)  # as exponential ones are
    assert list(flows.at_us) == sorted(flows.at_us)
    assert max(flows.at_us) < 30e6
    assert set(flows.to) == {0, 2, 3}
    assert all(count(to == peer for to in flows.to) > 800 for peer in (0, 2, 3))
    exact = 0.5 * 5500 + 0.5 * 55_000  # the mean of a table that is linear between its points
    assert mean([float(size) for size in flows.bytes]) == pytest.approx(exact, rel=0.06)
    assert count(size <= 10_000 for size in flows.bytes) == pytest.approx(1500, abs=130)


def test_what_is_too_much_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"at most {MOST_FLOWS} of a host"):
        poisson_flows(0, 4, POINTS, 1000.0, 30.0, 7)
    with pytest.raises(ConfigError, match="two or more"):
        poisson_flows(0, 1, POINTS, 1.0, 30.0, 7)


@pytest.mark.parametrize("size", [1, 4, 5, 1001, 2**23 * 5, 2**23 * 5 + 1, 10**9])
def test_a_flow_is_whole_messages(size: int) -> None:
    message, n = messages_of(size)
    assert n >= 5
    assert message <= 2**23
    assert size <= message * n < size + n


RECORDED = """rdma_write_flows: 3 of 5 flows ended
#up_to_bytes flows failed bytes mean_ms p99_ms late_ms mean_gbps
10000 2 1 4000 1.500 2.000 0.250 12.500
100000 1 0 50000 3.000 3.000 40.000 90.000
"""


def test_recorded_output() -> None:
    small, large = results(FLOWS, RECORDED)
    assert small == MeasuredClass(10000, 2, 1, 4000, 1.5e-3, 2e-3, 0.25e-3, 12.5e9)
    assert large.late_s == pytest.approx(0.04)
    for text in (
        "",
        "Traceback\n",
        RECORDED.replace("12.500", "fast"),
        RECORDED.partition("2 1")[0],
    ):
        with pytest.raises(DeviceError, match="printed no results"):
            results(FLOWS, text)


def test_the_table_has_what_ended_and_what_failed() -> None:
    flows = [
        LoadFlow(1, 5000, 1.0, 1.5, 2.0, bps=8e9), LoadFlow(1, 6000, 1.0, 1.0, 2.0, bps=None),
        LoadFlow(2, 10_000, 2.0, 2.0, 2.1, bps=2e9), LoadFlow(2, 10_001, 2.0, 2.0, 2.2, bps=1e9),
    ]  # fmt: skip
    first, second, *empty = results(FLOWS, table(flows, 9))
    assert (first.flows, first.failed, first.bytes) == (3, 1, 15_000)
    assert first.mean_s == pytest.approx(0.3)
    assert first.late_s == pytest.approx(0.5 / 3, rel=0.01)
    assert first.mean_bps == pytest.approx(5e9)
    assert (second.flows, second.bytes, [row.flows for row in empty]) == (1, 10_001, [0, 0])


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[Path, dict[str, AgentServer]]]:
    """Two NICs whose agents may run the flows, with the played perftest."""
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "ib_write_bw"
    script.write_text(PERFTEST.format(python=sys.executable, log=str(tmp_path / "sent")))
    script.chmod(0o755)
    names = ["nic-0", "nic-1"]
    write_all(tmp_path / "certs", names, ["controller"])
    agents = {name: load_agent(nic_agent_file(tmp_path, name)) for name in names}
    try:
        for agent in agents.values():
            agent.loads = LoadJobs((FLOWS,), f"{programs}:/usr/bin:/bin")
            agent.start()
        file = fleet_of(agents).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        (tmp_path / "fleet.toml").write_text(toml_text(file))
        yield tmp_path, agents
    finally:
        for agent in agents.values():
            agent.close()


def test_flows_run_through_the_agents_and_are_counted(
    fleet: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = fleet
    nics = dict.fromkeys(agents, "127.0.0.1")
    jobs = jobs_of(nics, POINTS, 6.0, 1.0, 3, {"first_port": str(free_ports())})
    wanted = {name: job.flows for name, job in jobs.items()}
    assert all(len(flows.to) >= 2 for flows in wanted.values())
    with controller_of(folder, fleet_of(agents)) as controller:
        controller.agents.start_loads(jobs)
        with pytest.raises(StateError, match="still runs here"):
            controller.agents.start_loads(jobs)
        states: dict[str, pb.LoadState] = {}

        def ended() -> bool:  # each by itself, once its flows have and no others come
            states.update(controller.agents.ask_all("Load", pb.Nothing()))
            return not any(state.running for state in states.values())

        wait_for(ended, "every host is done")
        sent = (folder / "sent").read_text().split()
    exact = [a * b for flows in wanted.values() for a, b in map(messages_of, flows.bytes)]
    assert sorted(map(int, sent)) == sorted(exact)
    for name, state in states.items():
        rows = results(FLOWS, state.output)
        assert count(row.flows for row in rows) == len(wanted[name].to)
        assert count(row.failed for row in rows) == 0
        assert count(row.bytes for row in rows) == count(wanted[name].bytes)
        assert all(row.mean_bps == pytest.approx(92.31e9) for row in rows if row.flows)


SCENARIO = """
description = "two hosts"
[weights]
tp = 0.2
rtt = 0.5
pfc = 0.3
[topology]
kind = "dumbbell"
left = 1
right = 1
host_gbps = 25
bottleneck_gbps = 25
[[workloads]]
kind = "poisson"
cdf = "FB_Hadoop"
mean_gap_us = 1000.0
"""


def test_the_commands_start_show_and_stop_flows(fleet: tuple[Path, dict[str, AgentServer]]) -> None:
    folder, _ = fleet
    (folder / "two.toml").write_text(SCENARIO)
    given = ["--fleet", str(folder / "fleet.toml")]

    def typed(*words: str) -> str:
        done = CliRunner().invoke(app, ["hw", "load", *words], env={"COLUMNS": "200"})
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    said = typed(
        "flows", *given, "-s", str(folder / "two.toml"), "--seconds", "0.5", "--rate", "0.01",
        "--first-port", str(free_ports()), "--json",
    )  # fmt: skip
    assert {"nics": 2, "seconds": 0.5}.items() <= json.loads(said).items()
    assert "runs" in typed("show", *given, "--device", "nic-0")
    begun = folder / "sent.begun"  # whoever has begun a program of its own ends with a table
    wait_for(lambda: begun.exists() and len(set(begun.read_text().split())) == 2, "both begin")
    assert "2 devices: no load" in typed("stop", *given)
    assert json.loads(typed("stop", *given, "--json"))["stopped"] == ["nic-0", "nic-1"]
    assert "up to bytes" in typed("show", *given, "--device", "nic-0")
    facts = json.loads(typed("show", *given, "--device", "nic-0", "--json"))
    assert (facts["device"], facts["running"]) == ("nic-0", False)
    assert "up_to_bytes" in facts["results"][0]
    with pytest.raises(ConfigError, match="expected NIC=ADDRESS"):
        typed("flows", *given, "-s", str(folder / "two.toml"), "--rate", "0.01", "--address", "x")


def test_addresses_are_the_agents_unless_told() -> None:
    known = {"nic-a": "10.0.0.7:7443", "nic-b": "[fe80::1]:7443", "leaf": "10.0.0.1:1"}
    found = addresses(known, ["nic-a", "nic-b"], ["nic-a=192.168.0.1"])
    assert found == {"nic-a": "192.168.0.1", "nic-b": "fe80::1"}
    with pytest.raises(UnknownNameError, match="unknown NIC 'nic-c'"):
        addresses(known, ["nic-a", "nic-b"], ["nic-c=1"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"peers": ["a", "-x"]}, "peer '-x'"),
        ({"peers": ["a"]}, "1 peers"),
        ({"to": [5]}, "flows to one of the peers"),
        ({"at_us": []}, "columns of one length"),
        ({"seconds": 0.0}, "seconds up to a day"),
        ({"bytes": [0]}, "flows of 1 to"),
    ],
)
def test_a_schedule_that_cannot_be_followed_starts_nothing(
    change: dict[str, object], words: str
) -> None:
    jobs = LoadJobs((FLOWS,))
    good = {"peers": ["a", "b"], "seconds": 1.0, "to": [1], "bytes": [5], "at_us": [0]}
    with pytest.raises(ConfigError, match=words):
        jobs.start(FLOWS, {"own": "0"}, {**good, **change})
    with pytest.raises(ConfigError, match="a schedule is for"):
        jobs.start(FLOWS, {"own": "0"})
    assert jobs.state() == (False, 0, "")


def free_ports() -> int:
    """Return a port that is free, as is the next one."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = int(server.getsockname()[1])
            try:
                socket.create_server(("127.0.0.1", port + 1)).close()
            except OSError:
                continue
            return port


def test_a_host_waits_on_while_late_flows_of_others_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "ib_write_bw"
    script.write_text(PERFTEST.format(python=sys.executable, log=str(tmp_path / "sent")))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    port = free_ports()
    flows = LoadFlows(0, ["a", "b"], port, [], time.monotonic(), deque())

    def visited_once() -> bool:
        flows.step(time.monotonic())
        if flows._waiting.visited_s < 0:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port + 1)):
                pass
        return flows._waiting.visited_s > 0

    try:
        assert not flows.step(flows.until_s)  # nothing of its own, and nobody has come
        wait_for(visited_once, "a visit has been served")
        visited = flows._waiting.visited_s
        assert visited >= flows.until_s
        assert flows.step(visited + LINGER_S / 2)
        flows.close()  # so that nobody comes again
        assert not flows.step(flows._waiting.visited_s + LINGER_S)
    finally:
        flows.close()


def running(process: subprocess.Popen[str] | None) -> bool:
    return process is not None and process.poll() is None


def test_a_port_that_is_taken_is_tried_again_with_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("dcqcn_gym.hw.load.waiting.time", clock)
    script = tmp_path / "fails"
    script.write_text(f"#!/bin/sh\necho x >> {tmp_path}/starts\nexit 1\n")
    script.chmod(0o755)
    waiting = Waiting([str(script)], 5000, [1, 2])
    for starts, passed in ((2, 0.0), (2, PAUSE_S / 2), (4, PAUSE_S / 2)):
        clock.now += passed
        waiting.keep()
        wait_for(lambda: not any(map(running, waiting._processes.values())), "both have failed")
        waiting.keep()
        assert (tmp_path / "starts").read_text().count("x") == starts
    waiting.close()
    with pytest.raises(DeviceError, match="no-such-program cannot be started"):
        Waiting(["no-such-program"], 5000, [1]).keep()
