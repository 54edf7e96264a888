"""Load on a fleet: captured outputs, what may be started, and a job through an agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import controller_of, fleet_of, nic_agent_file

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError, UnknownNameError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.server import load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.load.jobs import LoadJobs, command, results
from dcqcn_gym.hw.load.outputs import bandwidths, collectives, latencies
from waiting import wait_for

RULE = "-" * 87
BANDWIDTH = f"""{RULE}
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
{RULE}
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             92.37              92.31  \t\t   0.176067
{RULE}
"""
LATENCY = f"""{RULE}
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]  \
t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 2       1000          1.03           4.36         1.06     \t  1.07   \t0.06   \t\t1.19  \t\t4.36
{RULE}
"""
NCCL = """# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor)
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
     1048576        262144     float     sum      -1   112.40    9.33   17.49      0   111.90
     2097152        524288     float     sum      -1   190.20   11.03   20.67      0   189.50
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 19.0800
"""


def test_captured_outputs() -> None:
    (row,) = bandwidths(BANDWIDTH)
    assert (row.message_bytes, row.iterations) == (65536, 5000)
    assert (row.peak_bps, row.mean_bps) == pytest.approx((92.37e9, 92.31e9))
    (delay,) = latencies(LATENCY)
    times = (delay.least_s, delay.median_s, delay.mean_s, delay.p99_s)
    assert times == pytest.approx((2.06e-6, 2.12e-6, 2.14e-6, 2.38e-6))  # whole round trips
    first, second = collectives(NCCL)
    assert first.message_bytes == 1048576
    assert second.time_s == pytest.approx(190.2e-6)
    assert first.bus_bps == pytest.approx(17.49 * 8e9)


@pytest.mark.parametrize(
    ("program", "text", "words"),
    [
        ("ib_write_bw", "Couldn't connect to 10.0.0.9:18515\n", "no results.*10.0.0.9"),
        ("ib_write_bw", BANDWIDTH.replace("Gb/sec", "MB/sec"), "no Gb/s"),
        ("ib_write_bw", BANDWIDTH.replace("92.31", "fast"), "no results"),
        ("ib_write_lat", BANDWIDTH, "no results"),
        ("ib_write_lat", "", "no results"),
        ("all_reduce_perf", "# nothing\n", "no results"),
        ("all_reduce_perf", NCCL.replace("17.49      0", "17.49      3"), "3 errors at 1048576"),
    ],
)
def test_other_texts_are_no_results(program: str, text: str, words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        results(program, text)


def test_only_known_programs_with_known_options() -> None:
    assert command("ib_write_bw", {"device": "mlx5_0", "bytes": "4096", "peer": "10.0.0.2"}) == [
        "ib_write_bw", "--report_gbits", "-d", "mlx5_0", "-s", "4096", "10.0.0.2",
    ]  # fmt: skip
    with pytest.raises(UnknownNameError, match="load"):
        command("sh", {})
    with pytest.raises(UnknownNameError, match="did you mean 'bytes'"):
        command("ib_write_bw", {"byte": "1"})
    for value in ("-x", "1; rm", "$(x)", "", "a" * 80):
        with pytest.raises(ConfigError, match="plain name"):
            command("ib_write_bw", {"peer": value})
    with pytest.raises(ConfigError, match="whole number"):
        command("ib_write_lat", {"bytes": "0"})
    with pytest.raises(StateError, match="permits no load"):
        LoadJobs(()).start("ib_write_bw", {})


def test_a_job_runs_through_an_agent_one_at_a_time(tmp_path: Path) -> None:
    write_all(tmp_path / "certs", ["nic-0"], ["controller"])
    agent = load_agent(nic_agent_file(tmp_path, "nic-0", 'loads = ["ib_write_bw"]'))
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "ib_write_bw"
    script.write_text(
        f"#!/bin/sh\necho \"$@\" >&2\ncat <<'E'\n{BANDWIDTH}E\n[ $# = 1 ] && exec sleep 60\n"
    )
    script.chmod(0o755)
    agent.loads = LoadJobs(("ib_write_bw",), f"{programs}:/usr/bin:/bin")
    agent.start()
    try:
        with controller_of(tmp_path, fleet_of({"nic-0": agent})) as controller:

            def ask(method: str, request: object) -> pb.LoadState:
                state: pb.LoadState = controller.agents.ask_all(method, request)["nic-0"]
                return state

            job = pb.LoadJob(program="ib_write_bw", options={"bytes": "65536"})
            ask("StartLoad", job)
            state = _ended(lambda: ask("Load", pb.Nothing()))
            assert state.output.startswith("--report_gbits -s 65536\n")
            assert results(state.program, state.output)[0].message_bytes == 65536
            ask("StartLoad", pb.LoadJob(program="ib_write_bw"))  # waits for a peer
            with pytest.raises(StateError, match="still runs here"):
                ask("StartLoad", job)
            with pytest.raises(StateError, match="may not run ib_write_lat"):
                ask("StartLoad", pb.LoadJob(program="ib_write_lat"))
            controller.rollback.stop(True, "an emergency")
            assert not ask("Load", pb.Nothing()).running
            with pytest.raises(StateError, match="was stopped by hand"):
                ask("StartLoad", job)
    finally:
        agent.close()


def _ended(look: object) -> pb.LoadState:
    assert callable(look)
    wait_for(lambda: not look().running, "the load ends")
    state: pb.LoadState = look()
    return state
