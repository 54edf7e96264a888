"""Measurements of nccl-tests and perftest: read, fitted, refused, and carried by answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

pytest.importorskip("dcqcn_gym._core")

from making import pcap, roce

from calibration_recovery import recover, recovered, scenario, write_files
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario, scenario_digest
from dcqcn_gym.extras.traffic.calibration.fitting import fit
from dcqcn_gym.extras.traffic.calibration.measured import (
    BANDWIDTH,
    LATENCY,
    ROWS,
    Measurement,
    read_measured,
)
from dcqcn_gym.extras.traffic.calibration.replay import Replay
from dcqcn_gym.extras.traffic.calibration.result import calibrate, error_text
from real_networks import FOLDER, NAMES, published, summary

ROOT = Path(__file__).parents[2]
NCCL = """\
[1,0]<stdout>:# Collective test starting: alltoall_perf
[1,0]<stdout>:# Using devices
[1,0]<stdout>:#  Rank  0 Group  0 Pid 1 on node-a device  0 [0x07] GPU
[1,0]<stdout>:#  Rank  1 Group  0 Pid 2 on node-b device  0 [0x07] GPU
[1,0]<stdout>:# size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
[1,0]<stdout>:  1024  16  float  none  -1  20.00  0.05  0.03  0  10.00  0.10  0.05  N/A
[1,0]<stdout>:  2048  32  float  none  -1  20.00  0.10  0.05  3  20.00  0.10  0.05  N/A
[1,0]<stdout>:  0  0  float  none  -1  3.00  0.00  0.00  0  3.00  0.00  0.00  N/A
"""
PERFTEST = """\
                    RDMA_Write BW Test
 Number of qps   : 2            Transport type : IB
 TX depth        : 128
 Mtu             : 1024[B]
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 1500.000000 != 3300.016000. CPU Frequency is not max.
 1048576    5000             0.00               1000.00            0.001
                    RDMA_Write Latency Test
 TX depth        : 1
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
 2       1000          1.42           1.93         1.47                1.50
                    RDMA_Write Bidirectional BW Test
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000           0.0                190.0                0.1
                    RDMA_Read BW Test
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000           0.0                90.0                 0.1
"""
JSON = {
    "version": 1,
    "args": ["./build/all_reduce_perf", "-b", "8"],
    "config": {
        "devices": [{"rank": r, "hostname": f"node-{r // 2}", "device": r % 2} for r in range(4)]
    },
    "results": [
        {"size": 8, "out_of_place": {"time": 9.5, "nwrong": 0}, "in_place": {"time": 9.4}},
        {"size": 16, "out_of_place": {"time": "x", "nwrong": 0}, "in_place": None},
        {"size": 32, "out_of_place": {"cpu_time": 9.0, "nwrong": 2.0}, "in_place": None},
    ],
}


def read(
    folder: Path, text: str, name: str = "out.txt"
) -> tuple[list[Measurement], dict[str, int]]:
    """Return the rows of a file, and what was left out; in is taken plus left out."""
    path = folder / name
    path.write_text(text)
    found = read_measured([path])
    account = found.tally.of(ROWS)
    assert account.came == account.taken + account.left_out.total()
    assert account.taken == len(found.rows)
    return found.rows, dict(account.left_out)


def test_nccl_tests_as_text(tmp_path: Path) -> None:
    rows, left = read(tmp_path, NCCL)
    assert [(r.kind, r.bytes, r.us, r.ranks, r.per_node) for r in rows] == [
        ("all-to-all", 1024, 20.0, 2, 1),
        ("all-to-all", 1024, 10.0, 2, 1),
        ("all-to-all", 2048, 20.0, 2, 1),
    ]
    assert rows[0].gigabytes == pytest.approx(1024 / 20 / 1e3 / 2)
    assert sorted(left.values()) == [1, 2]


def test_nccl_tests_as_json(tmp_path: Path) -> None:
    rows, left = read(tmp_path, json.dumps(JSON), "out.json")
    assert [(r.kind, r.bytes, r.us, r.ranks, r.per_node) for r in rows] == [
        ("all-reduce", 8, 9.5, 4, 2), ("all-reduce", 8, 9.4, 4, 2)
    ]  # fmt: skip
    assert rows[0].gigabytes == pytest.approx(8 / 9.5 / 1e3 * 1.5)
    assert sum(left.values()) == 2


def test_perftest(tmp_path: Path) -> None:
    rows, left = read(tmp_path, PERFTEST)
    assert [(r.kind, r.bytes, r.qps, r.mtu) for r in rows] == [
        (BANDWIDTH, 1048576, 2, 1024), (LATENCY, 2, 1, None)
    ]  # fmt: skip
    assert rows[0].us == pytest.approx(1000)  # 1000 MB of 2^20 bytes a second
    assert rows[1].us == 1.47
    assert len(left) == 2
    assert "Bidirectional" in "".join(left)
    assert "RDMA_Read" in "".join(left)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("hello\n", "out.txt"),
        ("{}", "results"),
        (NCCL.replace("node-b", "node-a"), "one node"),
        (NCCL.replace("#  Rank", "#  Bank"), "Rank"),
        (NCCL.replace("alltoall", "hypercube"), "hypercube"),
        ("1 2 3 4\n", "heading"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        read(tmp_path, text)


@pytest.mark.parametrize("case", [1, 2, 3])
def test_known_unknowns_are_recovered(case: int) -> None:
    values, found = recover(case)
    assert recovered(values, found), found.fitted


def test_what_measurements_cannot_tell_is_not_told(tmp_path: Path) -> None:
    hidden = {"message_us": 3.0, "launch_us": 20.0, "data_overhead_bytes": 200.0}
    nccl, wide, late = write_files(tmp_path, hidden, 1)
    _, collectives = calibrate(scenario(), read_measured([nccl]))
    alone = {"message_us", "launch_us"} & collectives.fitted.keys()
    assert len(alone) == 1  # all sizes have as many steps: one of the two, for a value of the other
    assert collectives.fitted[alone.pop()].given
    assert collectives.not_fitted.keys() >= {"cnp_delay_us"}
    _, bandwidths = calibrate(scenario(), read_measured([wide]))
    assert bandwidths.fitted.keys() == {"data_overhead_bytes"}
    assert "cannot tell" in bandwidths.not_fitted["message_us"]
    _, latencies = calibrate(scenario(), read_measured([late]))
    assert latencies.fitted["message_us"].low <= 3.0 <= latencies.fitted["message_us"].high


def test_the_delay_of_cnps_is_never_told_by_times() -> None:
    network = {
        "topology": {
            "kind": "leaf-spine", "tors": 2, "hosts_per_tor": 4, "oversubscription": 2,
            "host_delay_us": 0.5, "uplink_delay_us": 0.5,
        },
        "wire": {"payload_bytes": 4096},
        "workloads": [{"kind": "pairs", "pairs": [[0, 1, 1000]]}],
    }  # fmt: skip
    there = Scenario.model_validate(network)
    rows = [
        Measurement("all-to-all", size, size / 9000, ranks=8) for size in (3_000_000, 5_000_000)
    ]
    found = fit(there, rows, Replay(there))
    assert "bandwidths and latencies never tell it" in found.not_fitted["cnp_delay_us"]
    assert Replay(there).marked(rows[-1], {})


def marked_and_answered(hidden_us: float, case: int, marks: int = 12) -> bytes:
    """A capture at a receiver: bursts of marked packets, each first one answered, with noise."""
    draw, frames, now = Random(case), [], 0.0
    for _ in range(marks):
        now += draw.uniform(1_500, 5_000)  # us
        for i in range(draw.randrange(1, 6)):
            data = bytearray(roce("10.0.0.1", "10.0.0.2", 0x07, i, 1024))
            data[15] = data[15] & 0xFC | 3  # CE
            frames.append((now + 0.3 * i, bytes(data)))
        answer = roce("10.0.0.2", "10.0.0.1", 0x81, 0, 16)
        frames.append((now + max(hidden_us + draw.gauss(0, 0.1 * hidden_us), 2.0), answer))
        frames.append((now + 1_000, roce("10.0.0.1", "10.0.0.2", 0x07, 9, 1024)))
    return pcap([(round(us), data) for us, data in sorted(frames)])


def test_a_capture_tells_the_delay_of_cnps(tmp_path: Path) -> None:
    inside = 0
    for case in range(20):
        hidden = Random(900 + case).uniform(20, 150)
        path = tmp_path / "a.pcap"
        path.write_bytes(marked_and_answered(hidden, case))
        measured = read_measured([path])
        assert len(measured.cnp_delays) == 12
        _, found = calibrate(scenario(), measured)
        interval = found.fitted["cnp_delay_us"]
        inside += interval.low <= hidden <= interval.high
        assert interval.high - interval.low < 0.3 * hidden
        assert set(found.not_fitted) == {"message_us", "launch_us", "data_overhead_bytes"}
    assert inside >= 19
    out = tmp_path / "calibrated.toml"
    (tmp_path / "s.toml").write_text(SMALL)
    words = ["-s", str(tmp_path / "s.toml"), "--measured", str(path), "--out", str(out)]
    done = CliRunner().invoke(app, ["calibrate", *words])
    assert done.exit_code == 0, (done.output, done.exception)
    made = load_scenario(out)
    assert made.cnp.delay_us == pytest.approx(interval.value, rel=0.01)
    assert "no time was compared" in made.calibrated
    path.write_bytes(marked_and_answered(40, 1, marks=3))
    _, few = calibrate(scenario(), read_measured([path]))
    assert "3 marks were answered" in few.not_fitted["cnp_delay_us"]


SMALL = """
description = "four hosts"
monitor_interval_us = 100
weights = { tp = 0.4, rtt = 0.4, pfc = 0.2 }
wire = { payload_bytes = 4096 }
[topology]
kind = "single-switch"
hosts = 4
[[workloads]]
kind = "incast"
bytes = 50_000
"""


def port_counters(overhead: int, seconds: int = 12, share: float = 1.0) -> list[tuple[int, int]]:
    """Bytes and packets by second: idle, then full of packets of 4096 bytes, then idle."""
    draw, found, size, count = Random(5), [(10**9, 10**6)], 10**9, 10**6
    for second in range(seconds):
        full = 100e9 / 8 / (4096 + overhead) * (share if 2 <= second < seconds - 2 else 0.001)
        packets = round(full * draw.gauss(1, 0.002))
        size, count = size + packets * (4096 + 62), count + packets
        found.append((size, count))
    return found


def as_prometheus(rows: list[tuple[int, int]], **names: str) -> str:
    labels: dict[str, str] = {"device": "mlx5_0", "instance": "gpu1:9100"}
    wanted = list(names.values()) or [
        "node_infiniband_port_data_transmitted_bytes_total",
        "node_infiniband_port_packets_transmitted_total",
    ]
    series: list[dict[str, object]] = [
        {"metric": {"__name__": name, **labels},
         "values": [[1_700_000_000 + i, str(row[place])] for i, row in enumerate(rows)]}
        for place, name in enumerate(wanted)
    ]  # fmt: skip
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def as_ethtool(rows: list[tuple[int, int]], date: str = "{}.5") -> str:
    return "".join(
        f"{date.format(1_700_000_000 + i, 10 + i)}\nNIC statistics:\n     rx_packets: 5\n"
        f"     tx_packets_phy: {row[1]}\n     tx_bytes_phy: {row[0]}\n     tx_discards_phy: 0\n"
        for i, row in enumerate(rows)
    )


COUNTED: dict[str, Callable[[list[tuple[int, int]]], str]] = {
    "Prometheus": as_prometheus, "ethtool": as_ethtool,
    "date -Is": lambda rows: as_ethtool(rows, "2026-11-27T16:00:{1}+00:00"),
    "date": lambda rows: as_ethtool(rows, "Fri Nov 27 16:00:{1} UTC 2026"),
    "words": lambda rows: "".join(
        f"{1_700_000_000 + i}\nport_xmit_data: {row[0] // 4}\nport_xmit_packets: {row[1]}\n"
        for i, row in enumerate(rows)),
}  # fmt: skip


@pytest.mark.parametrize("form", COUNTED)
def test_counters_of_a_full_port_tell_what_a_packet_takes(form: str, tmp_path: Path) -> None:
    path = tmp_path / "counters"
    path.write_text(COUNTED[form](port_counters(150)))
    measured = read_measured([path])
    before, found = calibrate(scenario(), measured)
    assert len(before.rows) == 6  # of eight busy ones those within
    interval = found.fitted["data_overhead_bytes"]
    assert interval.low <= 150 <= interval.high < 200
    assert "cannot tell" in found.not_fitted["message_us"]
    assert found.not_fitted["launch_us"] == "no collective was measured"
    assert "never tell it" in found.not_fitted["cnp_delay_us"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (as_prometheus(port_counters(150, share=0.5)), "below 80% of its rate"),
        (as_prometheus(port_counters(150), a="node_network_transmit_bytes_total",
                       b="node_network_transmit_packets_total"), "the kernel's own traffic"),
        (as_prometheus(port_counters(150), a="tx_bytes_phy"), "no packets"),
        (as_prometheus(port_counters(150)).replace("__name__", "job"), "as rate\\(\\) gives"),
        (as_ethtool(port_counters(150), "Monday"), "stand below no time"),
        (as_ethtool([(10**12, 10**9), (5, 5)] * 5), "a counter went back"),
        (as_ethtool([(n * 10**9, n * 10**7) for n in range(9)]), "are not full ones of wire"),
    ],
)  # fmt: skip
def test_counters_that_cannot_tell_are_refused_by_name(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(ConfigError, match=words):
        calibrate(scenario(), read_measured([tmp_path / "x"]))


def test_rows_that_the_scenario_cannot_run_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps(JSON))
    with pytest.raises(ConfigError, match=r"\[servers\]"):
        calibrate(scenario(), read_measured([path]))
    servers = {"topology": {"kind": "servers", "servers": 2, "gpus": 2, "spines": 1},
               "servers": {"gpus": 2}}  # fmt: skip
    given = scenario().model_dump(exclude_unset=True)
    before, _ = calibrate(Scenario.model_validate({**given, **servers}), read_measured([path]))
    assert len(before.rows) == 2


def test_errors_in_words() -> None:
    rows = [(Measurement("all-reduce", size, 1.0), error) for size, error in
            ((1000, -0.4), (2000, 4.0), (70_000, 0.02), (2**20, 0.2))]  # fmt: skip
    words = error_text(rows)
    assert "up to 40 % low and up to 5 times below 64 KB" in words
    assert "within 2 % from 64 KB to 1 MB" in words
    assert "up to 20 % high at 1 MB and above" in words


def test_answers_carry_what_is_left(tmp_path: Path) -> None:
    out = tmp_path / "calibrated.toml"
    named = FOLDER / "connectx-5"
    words = ["--scenario", f"{named}.toml", "--measured", f"{named}.txt", "--out", str(out)]
    done = CliRunner().invoke(app, ["calibrate", *words])
    assert done.exit_code == 0, done.output
    made = load_scenario(out)
    assert made.calibration is not None
    assert made.transport.message_us == made.calibration.fitted["message_us"][0]
    assert made.calibration.sources[0].startswith("connectx-5.txt sha256:")
    note = made.calibrated
    assert "calibrated against 5 measurements" in note
    assert note in " ".join(done.output.split())
    run = ["tune", "-s", str(out), "--tuner", "random", "--intervals", "3", "--eval-seeds", "2"]
    done = CliRunner().invoke(app, [*run, "--eval-intervals", "2", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    best = json.loads((tmp_path / "run/best.json").read_text())
    assert best["answer"]["calibrated"] == note
    assert note in (tmp_path / "run/report.html").read_text()
    run = ["simulate", "-s", str(out), "--intervals", "2", "--out", str(tmp_path / "sim")]
    done = CliRunner().invoke(app, run)
    assert done.exit_code == 0, done.output
    assert note in (tmp_path / "sim/report.html").read_text()


def test_a_scenario_without_a_calibration_is_what_it_was() -> None:
    plain = scenario()
    assert "calibration" not in plain.model_dump(mode="json")
    note = {"measurements": 3, "error": "within 1 %"}
    other = Scenario.model_validate({**plain.model_dump(mode="json"), "calibration": note})
    assert Scenario.model_validate(other.model_dump(mode="json")) == other
    assert scenario_digest(other) != scenario_digest(plain)


@pytest.mark.slow
def test_the_page_is_what_the_command_prints() -> None:
    page = (ROOT / "docs/measured/real-networks.md").read_text(encoding="utf-8")
    beds = [published(name) for name in NAMES]
    assert summary(beds).markdown() in page
    for bed in beds:
        assert error_text(bed.after.errors()) in page
