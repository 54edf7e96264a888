"""Files of traffic and networks, damaged: read in part, or refused."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random

from fuzz_harness import Fuzzer, damage

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.extras.traffic.calibration.measured import read_measured
from dcqcn_gym.extras.traffic.importing import Source, flows_of, span_of
from dcqcn_gym.extras.traffic.nccl import read_nccl
from dcqcn_gym.extras.traffic.network.reading import read_networks
from dcqcn_gym.extras.traffic.network.writing import written
from dcqcn_gym.extras.traffic.reading import form_of
from dcqcn_gym.extras.traffic.records import Tally

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "traffic"))
import making

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
    "packed": gzip.compress(b"src,dst,bytes,start_us\n" + b"gpu-a,gpu-b,9000,0\n" * 90, mtime=0),
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
_ROW = '{"size": 8, "out_of_place": {"time": 9.5, "nwrong": 0}}'
MEASURED: Mapping[str, bytes] = {
    "text": _TABLE.encode(),
    "json": (
        '{"args": ["all_reduce_perf"], "config": {"devices": [{"hostname": "a"}, '
        '{"hostname": "b"}]}, "results": [' + _ROW + "]}"
    ).encode(),
}
"""Outputs of nccl-tests and perftest."""

_LEAF = [("e0", "gpu-a", False), ("e1", "gpu-b", False), ("e8", "spine", True)]
_EDGES = [("gpu-a", "tor", "200G"), ("tor", "gpu-b", "200G"), ("tor", "leaf", "400G")]
NETWORKS: Mapping[str, tuple[str, bytes]] = {
    "lldp": ("leaf.json", making.neighbours(_LEAF)),
    "minigraph": ("minigraph.xml", making.minigraph(_CABLES, _KINDS)),
    "graphml": ("net.graphml", making.graphml(_KINDS, _EDGES)),
}
"""A sound file of each form of network."""


def _traffic(data: bytes, random: Random, folder: Path) -> None:
    """Read it as ``traffic import`` and ``fit`` do."""
    file = folder / "given"
    file.write_bytes(damage(random, data) or b"\n")
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


def _measured(data: bytes, random: Random, folder: Path) -> None:
    """Read it as ``calibrate`` does."""
    file = folder / "given"
    file.write_bytes(damage(random, data) or b"\n")
    read_measured([file])


IMPORTS: dict[str, Fuzzer] = {
    **{f"measured-{name}": partial(_measured, data) for name, data in MEASURED.items()},
    **{name: partial(_traffic, data) for name, data in TRAFFIC.items()},
    **{name: partial(_network, *given) for name, given in NETWORKS.items()},
}
