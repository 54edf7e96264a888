"""Files of traffic, networks, settings and jobs, damaged: read in part, or refused.

Every reader asserts its balance: in = taken + left out.
"""

from __future__ import annotations

import gzip
import json
import pickle
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random

from fuzz_harness import Fuzzer, damage

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.extras.jobs.files import read_job
from dcqcn_gym.extras.traffic.calibration.measured import read_measured
from dcqcn_gym.extras.traffic.device_state import read_device_state
from dcqcn_gym.extras.traffic.diagnosis import diagnose
from dcqcn_gym.extras.traffic.dumps import read_dumps
from dcqcn_gym.extras.traffic.exchange.hpcc_folder import import_hpcc
from dcqcn_gym.extras.traffic.exchange.htsim import import_htsim
from dcqcn_gym.extras.traffic.exchange.ledger import Ledger
from dcqcn_gym.extras.traffic.importing import Source, flows_of, span_of
from dcqcn_gym.extras.traffic.nccl import read_nccl
from dcqcn_gym.extras.traffic.network.reading import read_networks
from dcqcn_gym.extras.traffic.network.writing import written
from dcqcn_gym.extras.traffic.reading import form_of
from dcqcn_gym.extras.traffic.records import Tally

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "traffic"))
import making
import run_folders

_FLOWS = [("10.0.0.1", "10.0.0.2", 1_000_000, 1000, 0), ("10.0.0.3", "10.0.0.2", 70_000, 70, 5)]
_PACKETS = [making.roce("10.0.0.1", "10.0.0.2", 0x0A, i, 64) for i in range(8)]
_CABLES = [("gpu-a", "tor", 25_000), ("gpu-b", "tor", 25_000), ("tor", "leaf", 100_000)]
_KINDS = {"tor": "ToRRouter", "leaf": "LeafRouter", "gpu-a": "Server", "gpu-b": "Server"}
_NCCL = (
    "gpu-a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 16 cudaDev 0 busId 1000 commId 0x2 - "
    "Init COMPLETE\n"
    "gpu-a:1:2 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1000 datatype 7 "
    "op 0 root 0 comm 0x1 [nranks=16] stream 0x3\n"
)


def _exported(*bodies: bytes, port: int = 2055) -> bytes:
    sent = (making.udp("192.0.2.1", "192.0.2.9", 2055, port, body) for body in bodies)
    return making.pcap(list(enumerate(sent)))


TRAFFIC: Mapping[str, bytes] = {
    "table": b"src,dst,bytes,start_us\ngpu-a,gpu-b,9000,0\ngpu-b,gpu-c,70,1.5\n" * 3,
    "roce": making.pcap(list(enumerate(_PACKETS))),
    "pcapng": making.pcapng(list(enumerate(_PACKETS))),
    "netflow5": _exported(making.netflow5(_FLOWS), making.netflow5(_FLOWS)),
    "netflow9": _exported(making.netflow9(_FLOWS), making.netflow9(_FLOWS)),
    "ipfix": _exported(making.ipfix(_FLOWS), making.ipfix(_FLOWS)),
    "samples": _exported(*(making.sflow("192.0.2.1", _PACKETS, 512) for _ in range(2)), port=6343),
    "nccl": _NCCL.encode(),
    "hpcc_flows": b"3\n0 1 3 100 9000 2.000001\n1 0 3 100 70000 2.00001\n2 0 3 100 50 2.0001\n",
    "htsim": b"Nodes 4\nConnections 2\n0->1 id 1 start 0 size 9000\n2->1 id 2 start 7 size 70\n",
    "own_flows": b"src,dst,bytes,start_ns\n6,0,9000,0\n0,6,70,15\n3,0,70,15\n" * 3,
    "json_list": b"[\n"
    + b",\n".join(
        b'{ "first": "2026-01-31T12:00:0%d.25",\n "src4_addr": "a",\n' % i
        + b' "dst4_addr": "b", "in_bytes": 9 }'
        for i in range(4)
    )
    + b"\n]\n",
    "cloud": b"srcaddr dstaddr bytes start\n" + b"10.0.0.1 10.0.0.2 9000 1769860800.5\n" * 4,
}
"""A sound file of each form of traffic."""

_TABLE = """# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] GPU
#  Rank  1 Group  0 Pid 2 on b device  0 [0x07] GPU
# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
1024 256 float sum -1 20.00 0.05 0.03 0 10.00 0.10 0.05 0
RDMA_Write Latency Test
 #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec]
 2 1000 1.42 1.93 1.47 1.50
"""
_DATA = making.roce("10.0.0.1", "10.0.0.2", 0x07, 1, 64)
_MARKED = _DATA[:15] + bytes([_DATA[15] | 3]) + _DATA[16:]
_ANSWER = making.roce("10.0.0.2", "10.0.0.1", 0x81, 0, 16)
_ROW = '{"size": 8, "out_of_place": {"time": 9.5, "nwrong": 0}}'
MEASURED: Mapping[str, bytes] = {
    "text": _TABLE.encode(),
    "json": (
        '{"args": ["all_reduce_perf"], "config": {"devices": [{"hostname": "a"}, '
        '{"hostname": "b"}]}, "results": [' + _ROW + "]}"
    ).encode(),
    "prometheus": json.dumps(
        {
            "data": {
                "resultType": "matrix",
                "result": [
                    {
                        "metric": {"__name__": f"tx_{kind}_phy"},
                        "values": [[1_700_000_000 + i, str(i * 10**9)] for i in range(9)],
                    }
                    for kind in ("bytes", "packets")
                ],
            }
        }
    ).encode(),
    "snapshots": "".join(
        f"{1_700_000_000 + i}\nNIC statistics:\n tx_bytes_phy: {i * 10**9}\n"
        f" tx_packets_phy: {i * 10**6}\n"
        for i in range(9)
    ).encode(),
    "cnps": making.pcap(
        [
            (i * 3000 + 40 * (frame is _ANSWER), frame)
            for i in range(6)
            for frame in (_MARKED, _ANSWER)
        ]
    ),
}
"""Outputs of nccl-tests and perftest, ports' counters, and marks with their CNPs."""

_LEAF = [("e0", "gpu-a", False), ("e1", "gpu-b", False), ("e8", "spine", True)]
_EDGES = [("gpu-a", "tor", "200G"), ("tor", "gpu-b", "200G"), ("tor", "leaf", "400G")]
_CONFIG_DB = {
    "PORT": {"Ethernet0": {"speed": "100000"}, "Ethernet4": {"speed": "100000"}},
    "DEVICE_NEIGHBOR": {"Ethernet0": {"name": "gpu-a", "port": "enp1"},
                        "Ethernet4": {"name": "gpu-b", "port": "enp1"}},
    "DEVICE_NEIGHBOR_METADATA": {"gpu-a": {"type": "Server"}, "gpu-b": {"type": "Server"}},
    "WRED_PROFILE": {"LOSSLESS": {"ecn": "ecn_all", "green_min_threshold": "250000",
                                  "green_max_threshold": "1048576"}},
    "QUEUE": {"Ethernet0|3-4": {"wred_profile": "LOSSLESS"}},
    "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3,4"}},
    "BUFFER_POOL": {"ingress_lossless_pool": {"size": "8000000"}},
    "BUFFER_PROFILE": {"pg_lossless": {"xoff": "55296", "dynamic_th": "-3",
                                       "pool": "ingress_lossless_pool"}},
    "BUFFER_PG": {"Ethernet0|3-4": {"profile": "pg_lossless"}},
    "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m"}},
}  # fmt: skip
_TOPOLOGY = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n"
NETWORKS: Mapping[str, tuple[str, bytes]] = {
    "config_db": ("leaf.json", json.dumps(_CONFIG_DB).encode()),
    "topology": ("topology.txt", _TOPOLOGY.encode()),
    "lldp": ("leaf.json", making.neighbours(_LEAF)),
    "minigraph": ("minigraph.xml", making.minigraph(_CABLES, _KINDS)),
    "graphml": ("net.graphml", making.graphml(_KINDS, _EDGES)),
}
"""A sound file of each form of network."""


SETTINGS: Mapping[str, bytes] = {
    "mlxconfig": b"RPG_AI_RATE_P1 50\nDCE_TCP_G_P1 0x3fb\nCLAMP_TGT_RATE_P1 True(1)\n",
    "show_ecn": b"green_max_threshold 2000000\ngreen_min_threshold 1000000\n",
    "wred": json.dumps(_CONFIG_DB).encode(),
    "junos": b"class-of-service {\n  drop-profiles {\n    a {\n      interpolate {\n"
    b"        fill-level [ 10 50 ];\n        drop-probability [ 0 80 ];\n",
    "nvue": b"qos:\n  congestion-control:\n    x:\n      traffic-class:\n        '3':\n"
    b"          min-threshold: 153600\n          max-threshold: 1536000\n",
    "eos": b"interface Ethernet1\n   tx-queue 3\n      random-detect ecn minimum-threshold 1 "
    b"kbytes maximum-threshold 2 kbytes max-mark-probability 7\n",
    "bnxt": b"min_time_bet_cnp=0x32\t# minimum time\nDcQcnAIRate : 7\nai_rate_incr=0x1\n",
}
"""A sound file of each form of setting."""
DUMPS: Mapping[str, bytes] = {
    "switch": json.dumps(_CONFIG_DB).encode(),
    "counters": b"link mlx5_0/1 rp_cnp_ignored 5 rp_cnp_handled 9 np_cnp_sent 0 out_of_sequence 1\n"
    b"     rx_prio3_pause: 12\n\tenabled     0   0   0   1   0   0   0   0\n",
}
"""A sound file of each form that is diagnosed."""

_CALL = {
    "process_group": ["0", "default_pg"], "collective_seq_id": 1,
    "profiling_name": "nccl:all_reduce", "time_created_ns": 10**18, "input_sizes": [[64, 2]],
    "input_dtypes": ["Float"], "output_sizes": [[64, 2]], "output_dtypes": ["Float"],
}  # fmt: skip
_DUMP = {"pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [_CALL, _CALL]}
JOBS: Mapping[str, tuple[str, bytes]] = {
    "recorder": ("rank_0", json.dumps(_DUMP).encode()),
    "recorder_pickle": ("rank_0", pickle.dumps(_DUMP)),
    "aicb": ("log.csv", b"comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,"
             b"_elapsed_time,algbw,busbw,count\n"
             + b"CommType.all_reduce,CommGroup.tp_group,2,4096,forward,,,,,,,1\n" * 3),
}  # fmt: skip
"""A sound file of each form of job that fuzz_jobs.py does not have."""


def _setting(checked: bool, data: bytes, random: Random, folder: Path) -> None:
    """Read it as ``settings import`` does, or as ``settings check`` does."""
    file = folder / "given"
    file.write_bytes(damage(random, data) or b"\n")
    if checked:
        found, _ = diagnose(read_dumps([file]))
        assert all(one.shown_by for one in found)
    else:
        read_device_state([file], 1e7).tables()


def _job(name: str, data: bytes, random: Random, folder: Path) -> None:
    """Read it as ``jobs`` does; of dumps the other rank's is sound."""
    (folder / name).write_bytes(damage(random, data) or b"{")
    if name.endswith("0"):
        (folder / name.replace("0", "1")).write_bytes(data)
    read_job(folder if name.endswith("0") else folder / name)


def _traffic(data: bytes, random: Random, folder: Path) -> None:
    """Read it as ``traffic import`` and ``fit`` do."""
    _read_traffic(folder, damage(random, data))


def _packed_traffic(data: bytes, random: Random, folder: Path) -> None:
    """Damage the packed file, which its checksum shows, or as often what is packed in it."""
    if random.random() < 0.5:
        _read_traffic(folder, damage(random, gzip.compress(data, mtime=0)))
    else:
        _read_traffic(folder, gzip.compress(damage(random, data), mtime=0))


def _read_traffic(folder: Path, data: bytes) -> None:
    file = folder / "given"
    file.write_bytes(data or b"\n")
    form = form_of(file, None)
    if form == "nccl":
        read_nccl(file, Tally())
        return
    source = Source(file, form)
    if not list(flows_of(source, span_of(source, _quiet), _quiet)):
        raise ConfigError("no flow is left")


def _quiet(done: int, total: int | None) -> None:
    """Show nothing."""


def _network(name: str, data: bytes, random: Random, folder: Path) -> None:
    """Read it and write a scenario of it as ``network import`` does."""
    file = folder / name
    file.write_bytes(damage(random, data) or b"{")
    written(read_networks([file]).settle(None, 100.0), name)


_MOST_CPU_S, _MOST_BYTES = 5.0, 256 * 2**20
"""What one damaged run folder may cost."""


def _hpcc_run(random: Random, folder: Path) -> None:
    """Read a run folder of HPCC's simulator of which one file or more is damaged."""
    run_folders.hpcc_folder(folder)
    names = ["config.txt", "topology.txt", "flow.txt", "WebSearch.txt"]
    for name in random.sample(names, random.choice((1, 1, 2, 4))):
        _damage_lines(random, folder / name)
    _import_within_bounds(import_hpcc, folder)


def _htsim_run(random: Random, folder: Path) -> None:
    """Read a run folder of htsim of which a file or both are damaged."""
    run_folders.htsim_folder(folder)
    for name in random.sample(["fabric.topo", "all.cm"], random.choice((1, 2))):
        _damage_lines(random, folder / name)
    _import_within_bounds(import_htsim, folder)


def _damage_lines(random: Random, file: Path) -> None:
    """Damage bytes, or a word of a line, or leave out, double or mix up lines."""
    lines = file.read_text().splitlines()
    at, how = random.randrange(len(lines)), random.randrange(5)
    words = lines[at].split() or [""]
    if how == 0:
        file.write_bytes(damage(random, file.read_bytes()))
        return
    if how == 1:
        words[random.randrange(len(words))] = random.choice(_WORDS)
        lines[at] = " ".join(words)
    elif how == 2:
        del lines[at]
    elif how == 3:
        lines.insert(at, lines[at])
    else:
        random.shuffle(lines)
    file.write_text("\n".join(lines))


_WORDS = ("0", "1", "-1", "99999999999", "1e308", "1e-9", "nan", "inf", "", "x", "9" * 5000, "0x10",
          "100Gbps", "3s", "=1+1", "\u0663", "16 17", "2.5")  # fmt: skip


def _import_within_bounds(
    read: Callable[[Path], tuple[dict[str, str], Ledger]], folder: Path
) -> None:
    """Read it, hold its balance, and see what that cost; both bounds are far from usual."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        _, said = read(folder)
    finally:  # a refusal may not cost more either
        spent = time.process_time() - begin
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert spent < _MOST_CPU_S, f"{spent:.1f} s"
        assert most < _MOST_BYTES, f"{most} bytes"
    for unit, balance in said.tally.balances.items():
        assert balance.missing == 0, f"{unit}: {balance}"


def _measured(data: bytes, random: Random, folder: Path) -> None:
    """Read it as ``calibrate`` does."""
    file = folder / "given"
    file.write_bytes(damage(random, data) or b"\n")
    found = read_measured([file])
    assert found.rows or found.packets or found.cnp_delays
    assert all(0 < r.us < 1e12 and r.bytes > 0 and r.ranks > 1 for r in found.rows)
    if not found.packets:  # what is busy is taken or left out with a scenario
        found.tally.check()


IMPORTS: dict[str, Fuzzer] = {
    **{f"measured-{name}": partial(_measured, data) for name, data in MEASURED.items()},
    "hpcc-run": _hpcc_run,
    "htsim-run": _htsim_run,
    **{name: partial(_traffic, data) for name, data in TRAFFIC.items()},
    "packed": partial(_packed_traffic, TRAFFIC["own_flows"]),
    **{name: partial(_network, *given) for name, given in NETWORKS.items()},
    **{name: partial(_setting, False, data) for name, data in SETTINGS.items()},
    **{name: partial(_setting, True, data) for name, data in DUMPS.items()},
    **{name: partial(_job, *given) for name, given in JOBS.items()},
}
