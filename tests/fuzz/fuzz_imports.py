"""Files of traffic and networks, damaged: read in part, or refused."""

from __future__ import annotations

import gzip
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random

from fuzz_harness import Fuzzer, damage

from dcqcn_gym.core.errors import ConfigError
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
    "packed": gzip.compress(b"src,dst,bytes,start_us\n" + b"gpu-a,gpu-b,9000,0\n" * 90, mtime=0),
}
"""A sound file of each form of traffic."""

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


IMPORTS: dict[str, Fuzzer] = {
    "hpcc-run": _hpcc_run,
    "htsim-run": _htsim_run,
    **{name: partial(_traffic, data) for name, data in TRAFFIC.items()},
    **{name: partial(_network, *given) for name, given in NETWORKS.items()},
}
